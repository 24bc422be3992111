"""Finals by an upscaler network: what spandrel gives, tile by tile, and a recipe like any other.

A Compact network is computed without spandrel, as that of the bundled model is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from command import run_python
from lora_files import lora_bytes
from painting import PLACEMENT, check_bundle_reproduced, claims_of, one_thread
from PIL import Image
from refusing import code_of, refused
from safetensors.numpy import save_file
from safetensors.torch import load_file
from upscaler_files import PlainCompact, plain_pixels, save_upscaler
from watches import SilentWatch

from seedgrid.core.errors import ModelError, RunCancelled
from seedgrid.core.picture import Entry
from seedgrid.core.recipe import Recipe, Upscaler
from seedgrid.diffusion import upscaling
from seedgrid.diffusion.backend import Unwatched
from seedgrid.diffusion.deferred import DeferredBackend
from seedgrid.export.bundle import write_bundle
from seedgrid.formats import png
from seedgrid.models.shelf import UPSCALERS, known_upscalers
from seedgrid.models.shelf import needs_spandrel as needs_spandrel_for
from seedgrid.studio import Studio
from seedgrid.verify.verifying import verify

needs_spandrel = pytest.mark.skipif(
    find_spec("spandrel") is None or find_spec("torchvision") is None,
    reason="spandrel, with a torchvision that fits torch, is not here",
)


@pytest.fixture
def network(tmp_path: Path) -> Path:
    """A file that nobody has to load."""
    path = tmp_path / "2x-foxes.safetensors"
    save_file({"conv.weight": np.zeros((8, 3, 3, 3), np.float32)}, path)
    return path


@pytest.fixture
def picked(studio: Studio) -> Entry:
    return studio.grid("a fox", "3", width=192, height=160, num_inference_steps=4)[0]


def test_a_picture_enlarged_by_a_network_is_a_recipe(
    studio: Studio, picked: Entry, network: Path
) -> None:
    """By name and digest, alone in its batch, from the pixels that were picked."""
    run = studio.start_final(picked, 4, upscaler=str(network))
    (entry,) = run.result()
    recipe = entry.recipe
    assert recipe.upscaler == UPSCALERS.add(network)
    assert (recipe.width, recipe.height, recipe.lock_width) == (768, 640, 1)
    assert (recipe.start, recipe.prompt) == (picked.pixels_sha256, "a fox")
    assert entry.lineage.change == "768x640, 2x-foxes"
    assert run.notices == ()
    assert Recipe.model_validate_json(recipe.model_dump_json()) == recipe
    assert "upscaler" not in picked.recipe.model_dump()
    assert studio.final(picked, 4, upscaler="2x-foxes")[0].recipe == recipe  # By its name.
    assert known_upscalers() == ("2x-foxes",)


def test_refining_a_large_picture_refines_what_was_enlarged(
    studio: Studio, picked: Entry, network: Path, tmp_path: Path
) -> None:
    """No words made the large one: that is said, and refused where its parent is not there."""
    (large,) = studio.final(picked, 2, upscaler=str(network))
    runs = (studio.start_refine(large), studio.start_variations(large, weight=0.1))
    for run in runs:
        assert {entry.lineage.parent_id for entry in run.result()} == {picked.id}
        assert [notice.code for notice in run.notices] == ["upscaler_parent"]
    with Studio("bundled", tmp_path / "elsewhere") as elsewhere:
        assert code_of(elsewhere.refine, large.path) == "upscaler_words"
        own = large.lineage.model_copy(update={"parent_id": large.id})  # It went round for ever.
        forged = elsewhere.library.add_png(png.rewrite(large.path.read_bytes(), lineage=own))
        assert code_of(elsewhere.refine, forged) == "upscaler_words"


def test_what_cannot_be_enlarged_is_refused(
    studio: Studio, picked: Entry, network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a sentence, before anything is painted."""
    (large,) = studio.final(picked, 2, upscaler=str(network))
    assert code_of(studio.final, picked, 3, upscaler=str(network)) == "final_scale"
    assert code_of(studio.final, large, 8, upscaler=str(network)) == "final_scale"
    four = studio.final(large, 4, upscaler=str(network))[0]
    assert code_of(studio.final, four, 2, upscaler=str(network)) == "size_range"
    for name in ("nobody", "/nowhere/nobody.safetensors", "../foxes"):
        assert code_of(studio.final, picked, 2, upscaler=name) == "upscaler_missing"
    lora = network.with_name("lora.safetensors")
    lora.write_bytes(lora_bytes())
    assert code_of(studio.final, picked, 2, upscaler=str(lora)) == "upscaler_damaged"
    monkeypatch.setenv("SEEDGRID_PUBLIC", "1")
    monkeypatch.setenv("SEEDGRID_ALLOWED_MODELS", "bundled, fake")
    assert code_of(studio.final, picked, 2, upscaler="2x-foxes") == "upscaler_not_offered"
    assert code_of(studio.start_again, [large]) == "upscaler_not_offered"
    assert known_upscalers() == ()


def test_without_spandrel_one_sentence_says_what_to_install(
    network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network of another kind than Compact cannot be read without it."""
    monkeypatch.setitem(sys.modules, "spandrel", None)
    with refused(ModelError, "upscaler_library", match='pip install "spandrel'):
        upscaling.Enlarger().load(UPSCALERS.add(network), torch.device("cpu"))


@pytest.fixture
def painter(tmp_path: Path) -> Iterator[Studio]:
    """A studio with the bundled model."""
    with Studio("bundled", tmp_path / "library", placement=PLACEMENT) as studio:
        yield studio


def plain(path: Path, picture: Path, scale: int) -> np.ndarray:
    """Enlarge a picture of one tile as the network's own documentation does it."""
    if needs_spandrel_for(UPSCALERS.add(path)):
        import spandrel

        network = spandrel.ModelLoader(device="cpu").load_from_file(path).eval()
    else:
        network = PlainCompact(scale)
        network.load_state_dict(load_file(path))
    image = torch.from_numpy(np.asarray(Image.open(picture)).copy()).permute(2, 0, 1)[None] / 255
    with one_thread(), torch.inference_mode():
        pixels = plain_pixels(network, image).numpy()
    assert pixels.shape[0] == image.shape[2] * scale
    return pixels


@pytest.mark.parametrize("kind", [pytest.param("ESRGAN", marks=needs_spandrel), "Compact"])
def test_a_picture_equals_the_plain_network(painter: Studio, tmp_path: Path, kind: str) -> None:
    """Of one tile, bit for bit, and verified; a Compact one by torch alone."""
    path = save_upscaler(tmp_path / "4x-small.safetensors", scale=4, kind=kind)
    assert needs_spandrel_for(UPSCALERS.add(path)) == (kind == "ESRGAN")
    picked = painter.grid("a fox", "3", width=64, height=64, num_inference_steps=1)[0]
    (large,) = painter.final(picked, 4, upscaler=str(path))
    np.testing.assert_array_equal(np.asarray(large.image), plain(path, picked.path, 4))
    assert ("spandrel" in large.passport.model_dump()) == (kind == "ESRGAN")
    assert [each.verdict for each in verify(claims_of(large), painter.backend)] == ["identical"]


@pytest.mark.sweep
def test_pictures_come_out_again_in_a_new_process(
    painter: Studio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of four tiles, by its bundle and by verify: by the model's own network and by a file's."""
    path = save_upscaler(tmp_path / "4x-small.safetensors", scale=4)
    picked = painter.grid("a fox", "3", width=160, height=160, num_inference_steps=1)[0]
    (own,) = painter.final(picked, 4)
    (half,) = painter.final(picked, 2)  # Four times, and back by Lanczos.
    assert (own.image.size, half.image.size) == ((640, 640), (320, 320))
    (other,) = painter.final(picked, 2, upscaler=str(path))
    write_bundle([own, half, other], tmp_path / "art.zip")
    check_bundle_reproduced(tmp_path / "art.zip")
    assert "spandrel" not in (tmp_path / "art" / "requirements.txt").read_text()
    monkeypatch.setenv("SEEDGRID_LIBRARY", str(painter.library_folder))
    done = run_python("-m", "seedgrid", "verify", own.path, half.path, other.path)
    assert done.stdout.endswith("\n3 identical\n"), done.stdout + done.stderr


def test_the_bundled_model_has_a_network_of_its_own(
    painter: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It works without spandrel, wherever the model is offered, and is no other model's choice."""
    monkeypatch.setitem(sys.modules, "spandrel", None)
    picked = painter.grid("a fox", "3", width=64, height=64, num_inference_steps=1)[0]
    (large,) = painter.final(picked, 4)
    assert large.image.size == (256, 256)
    assert large.recipe.upscaler
    assert large.recipe.upscaler.id == "bundled-4x"
    assert code_of(painter.final, picked, 2, strengths=[0.3]) == "final_model"
    assert painter.model_manager.upscalers(painter.card())[0] == "bundled-4x"
    assert "bundled-4x" not in painter.model_manager.upscalers()
    monkeypatch.setenv("SEEDGRID_PUBLIC", "1")
    monkeypatch.setenv("SEEDGRID_ALLOWED_MODELS", "bundled")
    assert painter.final(picked, 2)[0].image.size == (128, 128)
    monkeypatch.setenv("SEEDGRID_ALLOWED_MODELS", "someone/foxes")
    assert code_of(painter.final, picked, 4, upscaler="bundled-4x") == "upscaler_not_offered"


def test_tiles_are_told_and_stop_is_heard_between_two(painter: Studio, tmp_path: Path) -> None:
    """Each is a step, of both times that a network of two goes over a picture for four."""
    path = save_upscaler(tmp_path / "2x-small.safetensors", kind="Compact")
    picked = painter.grid("a fox", "3", width=256, height=160, num_inference_steps=1)[0]
    (large,) = painter.final(picked, 4, upscaler=str(path))
    backend, whole, stopped = DeferredBackend(), SilentWatch(with_previews=True), SilentWatch(3)
    backend.paint([large.recipe], PLACEMENT, whole)
    assert whole.steps == [(number, 16) for number in range(1, 17)]  # 256x160, then 512x320.
    assert all(previews[0].ndim == 3 for previews in whole.previews)
    with pytest.raises(RunCancelled):
        backend.paint([large.recipe], PLACEMENT, stopped)
    assert len(stopped.steps) == 3
    assert backend.probe(large.recipe, PLACEMENT, Unwatched()) is None


def test_a_network_that_changed_or_is_none_is_to_blame(painter: Studio, tmp_path: Path) -> None:
    """No other weights, and no network that makes nothing larger."""
    path = save_upscaler(tmp_path / "2x-changed.safetensors")
    picked = painter.grid("a fox", "3", width=64, height=64, num_inference_steps=1)[0]
    (large,) = painter.final(picked, 2, upscaler=str(path))
    save_upscaler(path, seed=1)
    (found,) = verify(claims_of(large), painter.backend)
    assert found.verdict == "impossible"
    assert "other weights" in str(found.reasons[0])
    save_upscaler(path, scale=1)
    assert code_of(painter.final, picked, 2, upscaler=str(path)) == "upscaler_unknown"
    assert large.recipe.upscaler != Upscaler(id="2x-changed", weights_sha256="0" * 64)


@pytest.mark.parametrize(
    "layers",
    [{"layer": (20_000_000, 0, 3, 3)}, {str(number): (1,) for number in range(20_001)}],
    ids=["a layer of no values", "very many"],
)
def test_what_a_hostile_file_says_of_its_layers_is_not_believed(
    tmp_path: Path, layers: dict[str, tuple[int, ...]]
) -> None:
    """A layer of gigabytes stood in a file of three hundred bytes, and spandrel would make it."""
    path = tmp_path / "4x-foxes.safetensors"
    save_file({name: np.zeros(shape, np.float32) for name, shape in layers.items()}, path)
    assert code_of(UPSCALERS.add, path) == "upscaler_damaged"
