"""A model's files are changed, replaced or moved while people paint: nobody is told anything wrong.

A file of weights is mapped into memory, so whoever writes into it changes a model that is loaded.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lora_files import lora_bytes
from test_loras import make_lora

from seedgrid.core.errors import ModelError
from seedgrid.core.picture import Entry
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.models import registry
from seedgrid.studio import Studio
from seedgrid.verify.judging import Verdict

SMALL = {"width": 64, "height": 64, "num_inference_steps": 2}


@pytest.fixture
def model(sd: Path, tmp_path: Path) -> Path:
    """A copy that may be spoilt."""
    # Places are remembered by name: each test has one of its own.
    return Path(shutil.copytree(sd, tmp_path / f"soon other {tmp_path.name}"))


@pytest.fixture
def studio(painter: DiffusersBackend, model: Path, tmp_path: Path) -> Iterator[Studio]:
    with Studio(str(model), library=tmp_path / "library", backend=painter) as studio:
        yield studio


@pytest.fixture(scope="module")
def any_lora(sd: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_lora(sd, tmp_path_factory.mktemp("lora") / "any.safetensors")


@pytest.fixture
def lora(any_lora: Path, tmp_path: Path) -> Path:
    """A copy that may be spoilt."""
    return Path(shutil.copy(any_lora, tmp_path / f"lora {tmp_path.name}.safetensors"))


def weights_of(model: Path, part: str = "unet") -> Path:
    return next((model / part).glob("*.safetensors"))


def write_into(path: Path) -> None:
    """Change a quarter of the weights in place, and put the time of the writing back."""
    before = path.stat()
    num_bytes = before.st_size // 16 * 4
    with path.open("r+b") as file:
        file.seek(-num_bytes, os.SEEK_END)
        numbers = bytearray(file.read())
        numbers[3::4] = b"\x3d" * (num_bytes // 4)  # About as large as they were, none below zero.
        file.seek(-num_bytes, os.SEEK_END)
        file.write(numbers)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def other_weights(model: Path) -> None:
    """Put another file in the place of the first."""
    path = weights_of(model)
    copy = path.with_name("copy")
    shutil.copy2(path, copy)
    write_into(copy)
    copy.replace(path)


def another_name(model: Path) -> None:
    model.rename(model.with_name("elsewhere"))


def in_more_files(model: Path) -> None:
    """Save the same numbers in several files, as many programs do."""
    import diffusers

    pipeline = diffusers.DiffusionPipeline.from_pretrained(model)
    pipeline.save_pretrained(model, max_shard_size="200KB")
    weights_of(model).parent.joinpath("diffusion_pytorch_model.safetensors").unlink()


def verdict_on(studio: Studio, picture: Entry) -> Verdict:
    (verdict,) = studio.verifier.verify_files([picture.path])
    return verdict


CHANGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "written into": (lambda model: write_into(weights_of(model)), "are not those that made this"),
    "replaced": (other_weights, "are not those that made this"),
    "renamed": (another_name, "There is no model “soon other"),
    "in more files": (in_more_files, "are not those that made this"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_picture_of_a_model_that_changed_is_not_blamed(
    studio: Studio, model: Path, change: str
) -> None:
    """The model is loaded, and so may the change be: it is said that the model is to blame."""
    (picture,) = studio.grid("a fox", "7", **SMALL)
    assert verdict_on(studio, picture).verdict == "identical"
    spoil, sentence = CHANGES[change]
    spoil(model)
    verdict = verdict_on(studio, picture)
    assert verdict.verdict == "impossible"
    assert sentence in str(verdict.reasons[0])


def test_what_was_painted_before_is_no_memory_of_the_model_that_is_there_now(
    studio: Studio, model: Path
) -> None:
    """The same words are painted with the new weights, and an old recipe is refused."""
    (before,) = studio.grid("a fox", "7", **SMALL)
    write_into(weights_of(model))
    (after,) = studio.grid("a fox", "7", **SMALL)
    assert after.recipe.id != before.recipe.id
    assert after.pixels_sha256 != before.pixels_sha256
    assert verdict_on(studio, after).verdict == "identical"
    with pytest.raises(ModelError, match="are not those that made this"):
        studio.refine(before, [", artsy"])


def test_a_lora_that_changed_is_to_blame(studio: Studio, lora: Path) -> None:
    """It is loaded, and its file is another now: the recipe names the one before."""
    (picture,) = studio.grid("a fox", "7", loras=[str(lora)], **SMALL)
    assert verdict_on(studio, picture).verdict == "identical"
    write_into(lora)
    verdict = verdict_on(studio, picture)
    assert verdict.verdict == "impossible"
    assert "LoRA" in str(verdict.reasons[0])


def test_what_a_model_can_do_is_read_again_only_when_a_file_of_it_has_changed(model: Path) -> None:
    card = registry.find(str(model)).card

    assert registry.find(str(model)).card is card

    scheduler = model / "scheduler" / "scheduler_config.json"
    scheduler.write_text(
        scheduler.read_text().replace('"num_train_timesteps": 1000', '"num_train_timesteps": 100')
    )
    assert registry.find(str(model)).card.max_steps == 99

    (model / "seedgrid.json").write_text('{"suffixes": [", at dusk"]}')
    assert registry.find(str(model)).card.suffixes == (", at dusk",)


def test_a_single_file_is_another_model_with_other_configurations(sd: Path, tmp_path: Path) -> None:
    """They lie beside it, and what is painted depends on them."""
    path = tmp_path / f"fox {tmp_path.name}.safetensors"
    path.write_bytes(lora_bytes(tensor="cond_stage_model.transformer.weight"))
    beside = shutil.copytree(sd, path.with_suffix(""))
    before = registry.find(str(path)).card.ref
    scheduler = beside / "scheduler" / "scheduler_config.json"
    scheduler.write_text(scheduler.read_text().replace(": 1000", ": 100"))
    assert registry.find(str(path)).card.ref.weights_sha256 != before.weights_sha256
