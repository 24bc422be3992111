"""The catalog: find, check and describe models without loading them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lora_files import lora_bytes
from refusing import code_of, refused

from seedgrid.core.errors import ModelError
from seedgrid.models import catalogue, registry
from seedgrid.models.files import configuration_source


@pytest.fixture
def folder(sd: Path, tmp_path: Path) -> Path:
    """A copy of a small Stable Diffusion model, to be damaged."""
    return Path(shutil.copytree(sd, tmp_path / "copy"))


def edit_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("name", "width", "multiple", "scheduler", "negative"),
    [
        ("sd", 64, 8, "DDIM", True),
        ("sdxl", 64, 8, "Euler", True),
        ("sd3", 64, 8, "Flow Euler", True),
        ("flux", 256, 8, "Flow Euler", False),
        ("pixart", 32, 8, "DPM++ 2M", True),
        ("lcm", 64, 8, "LCM", False),
        ("ddpm", 32, 1, "DDPM", False),
        ("ddim", 32, 1, "DDIM", False),
        ("pixart-sigma", 32, 8, "DPM++ 2M", True),
        ("sana", 32, 32, "Flow Euler", True),
        ("stable-unclip", 64, 8, "DDIM", True),
    ],
)
def test_a_card_says_what_a_model_can_do(
    model_folder: Callable[[str], Path],
    name: str,
    width: int,
    multiple: int,
    scheduler: str,
    negative: bool,  # a column of the table
) -> None:
    """Size, scheduler and words come from the configurations in the model's folder."""
    card = registry.find(str(model_folder(name))).card
    assert (card.width, card.height, card.size_multiple) == (width, width, multiple)
    assert card.scheduler == card.schedulers[0] == scheduler
    assert card.has_negative_prompt == negative


def test_a_local_model_is_named_by_its_folder_and_found_again_by_name(folder: Path) -> None:
    """Recipes hold a name, never a path; of two folders of one name the latest used is meant."""
    older = folder.parent / "older" / "copy"
    shutil.copytree(folder, older)
    for path in (folder, older, folder):
        model = registry.find(str(path))
        assert model.id == "copy"
        assert registry.find("copy").path == path
    assert registry.find_recorded(model.card.ref).path == folder


@pytest.mark.parametrize("name", ["bundled", "copy"])
def test_a_model_without_revisions_is_of_no_other_one(folder: Path, name: str) -> None:
    """A recipe could name any release of it, and was verified as identical."""
    ref = registry.find(str(folder) if name == "copy" else name).card.ref
    with refused(ModelError, "model_missing"):
        registry.find_recorded(ref.model_copy(update={"revision": "the one of that artist"}))


def test_models_that_begin_from_the_same_noise_are_named(
    model_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its own family first; none that is damaged, a LoRA, or begins from noise of another shape."""
    monkeypatch.setenv("SEEDGRID_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    for name in ("lcm", "sd", "sd-v", "sd3"):
        shutil.copytree(model_folder(name), shelf / name)
    monkeypatch.setenv("SEEDGRID_MODELS", str(shelf))
    (shelf / "fox.safetensors").write_bytes(lora_bytes())
    card = registry.find("sd").card
    assert catalogue.alike(card, registry.installed()) == ("sd-v", "lcm")
    assert catalogue.alike(card, registry.installed(), is_family=True) == ("sd-v",)
    (shelf / "sd-v" / "model_index.json").write_text("{}")
    assert catalogue.alike(card, registry.installed()) == ("lcm",)


def test_one_changed_byte_is_another_model(folder: Path) -> None:
    """Diffusers loads a flipped byte in silence; the digest tells."""
    folder = folder.rename(folder.with_name("only one of this name"))
    before = registry.find(str(folder)).card.ref
    weights = folder / "unet" / "diffusion_pytorch_model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    assert registry.find(str(folder)).card.ref.weights_sha256 != before.weights_sha256
    with refused(ModelError, "model_changed"):
        registry.find_recorded(before)


def test_the_publishers_defaults_and_hints_are_used(folder: Path) -> None:
    """A `seedgrid.json` beside the model says what suits it; it is not part of the digest."""
    before = registry.find(str(folder)).card
    side = {
        "name": "a model",
        "defaults": {"num_inference_steps": 9, "guidance_scale": 3.0, "scheduler": "UniPC"},
        "hints": {"subjects": ["fox"]},
    }
    (folder / "seedgrid.json").write_text(json.dumps(side))
    card = registry.find(str(folder)).card
    assert (card.num_inference_steps, card.guidance_scale) == (9, 3.0)
    assert card.schedulers[0] == card.scheduler == "UniPC"
    assert card.hints == {"subjects": ("fox",)}
    assert card.ref == before.ref


@pytest.mark.parametrize("side", ["{", '{"defaults": {"scheduler": "Nonsense"}}', "[]"])
def test_a_damaged_side_file_is_an_error(folder: Path, side: str) -> None:
    """Defaults that cannot be read are not quietly left out."""
    (folder / "seedgrid.json").write_text(side)
    assert code_of(registry.card_here, str(folder)) == "model_damaged"


def test_a_model_that_is_not_there_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub id that was not downloaded says how to; nothing is fetched by itself."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelError, match="seedgrid models --download nobody/nothing"):
        registry.find("nobody/nothing")


@pytest.mark.parametrize(
    "name", ["nothing", "../../../../etc", "..", "a b c", "-rf", "http://x/y", "x" * 2000, "a\0b"]
)
def test_names_that_are_no_model_are_refused(name: str) -> None:
    """Whatever is typed, the answer is a sentence about the model."""
    assert code_of(registry.card_here, name) in {"model_missing", "model_name", "model_not_one"}


@pytest.mark.parametrize("name", ["model.ckpt", "weights.pt", "pytorch_model.bin", "/x/y.pth"])
def test_pickled_checkpoints_are_refused_by_name(name: str) -> None:
    """They can run code when they are opened, so they are not even looked at."""
    assert code_of(registry.card_here, name) == "model_pickle"


def test_a_folder_with_pickled_weights_is_refused(folder: Path) -> None:
    """A pickle is not used where safetensors are missing."""
    weights = folder / "unet" / "diffusion_pytorch_model.safetensors"
    weights.rename(weights.with_suffix(".bin"))
    assert code_of(registry.card_here, str(folder)) == "model_pickle"


def test_a_pickle_beside_safetensors_is_ignored(folder: Path) -> None:
    """Many published folders hold both; only the safe one counts."""
    before = registry.find(str(folder)).card.ref
    (folder / "unet" / "diffusion_pytorch_model.bin").write_bytes(b"\x80\x04.")
    assert registry.find(str(folder)).card.ref == before


@pytest.mark.parametrize("library", ["subprocess", "pipeline", "os", "my_module"])
def test_a_model_that_brings_code_is_refused(folder: Path, library: str) -> None:
    """A component from anywhere but diffusers and transformers is foreign code."""
    edit_json(folder / "model_index.json", unet=[library, "Popen"])
    assert code_of(registry.card_here, str(folder)) == "model_code"


def test_a_model_without_a_part_that_it_needs_is_refused(folder: Path) -> None:
    """Some are published without their text encoder; Python's own words for it are many."""
    edit_json(folder / "model_index.json", text_encoder=[None, None])
    with refused(ModelError, "model_part", match="comes without its text_encoder"):
        _ = registry.find(str(folder)).card


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
PICKLE = b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00cos\nsystem\n."
DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "a pointer": lambda path: path.write_text(POINTER),
    "a pickle": lambda path: path.write_bytes(PICKLE),
    "not there": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_weights_are_refused(folder: Path, damage: str) -> None:
    """A cut download, a placeholder or a disguised file is found before it is loaded."""
    DAMAGES[damage](folder / "vae" / "diffusion_pytorch_model.safetensors")
    assert code_of(registry.card_here, str(folder)) == "model_damaged"


@pytest.mark.parametrize(
    "name", ["model_index.json", "unet/config.json", "scheduler/scheduler_config.json"]
)
@pytest.mark.parametrize("text", ["", "{", "[1]", "[" * 5000])
def test_damaged_configurations_are_refused(folder: Path, name: str, text: str) -> None:
    """Bad JSON is an error with the file's name, not a stack trace."""
    (folder / name).write_text(text)
    assert code_of(registry.card_here, str(folder)) == "model_damaged"


def test_a_snapshot_of_the_hub_cache_is_known_by_its_id(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A model in the Hugging Face cache is found by id and revision, without a network."""
    repository = tmp_path / "hub" / "models--someone--foxes"
    commit = "0123456789abcdef0123456789abcdef01234567"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    (repository / "snapshots").mkdir()
    folder.rename(repository / "snapshots" / commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    card = registry.find("someone/foxes").card
    assert (card.ref.id, card.ref.revision) == ("someone/foxes", commit)
    assert registry.find(f"someone/foxes@{commit}").card == card
    assert registry.find_recorded(card.ref).card == card
    assert "someone/foxes" in {model.id for model in registry.installed()}


def test_a_single_file_is_recognised_by_its_tensors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without configurations beside it, the message names the repository that has them."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    path = tmp_path / "fox.safetensors"
    name = "cond_stage_model.transformer.text_model.embeddings.position_ids"
    path.write_bytes(lora_bytes(tensor=name))
    with pytest.raises(ModelError, match="of stable-diffusion-v1-5/stable-diffusion-v1-5: run"):
        _ = registry.find(str(path)).card


def test_a_single_file_without_its_text_encoders_says_so(
    model_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    """Stable Diffusion 3 is published as files with two, three and none of them."""
    path = tmp_path / "sd3_medium.safetensors"
    path.write_bytes(lora_bytes(tensor="model.diffusion_model.joint_blocks.0.weight"))
    shutil.copytree(model_folder("sd3"), path.with_suffix(""))
    assert code_of(registry.card_here, str(path)) == "model_part"


@pytest.mark.parametrize(
    ("tensor", "hub_id"),
    [
        ("0.x_block.mlp.fc1.weight", "stabilityai/stable-diffusion-3-medium-diffusers"),
        ("0.x_block.attn2.qkv.weight", "stabilityai/stable-diffusion-3.5-medium"),
        ("37.x_block.mlp.fc1.weight", "stabilityai/stable-diffusion-3.5-large"),
    ],
)
def test_a_single_file_of_stable_diffusion_3_asks_for_its_own_configurations(
    tmp_path: Path, tensor: str, hub_id: str
) -> None:
    """Medium, 3.5 medium and 3.5 large are told apart by the blocks that only one of them has."""
    path = tmp_path / "sd3.safetensors"
    path.write_bytes(lora_bytes(tensor=f"model.diffusion_model.joint_blocks.{tensor}"))
    assert configuration_source(path) == hub_id


def test_an_inpainting_denoiser_is_refused(folder: Path) -> None:
    """Nine channels, a picture and a mask beside the noise: it cannot paint from noise alone."""
    edit_json(folder / "unet" / "config.json", in_channels=9)
    with refused(ModelError, "model_inpainting", match="9"):
        registry.find(str(folder)).card  # noqa: B018 (reading it raises)
