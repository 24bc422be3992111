"""Weights of fewer bits: int8 while loading, SDNQ's and GGUF's as they are stored."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from painting import PLACEMENT, check_script_reproduced, paint, recipes_for
from refusing import refused
from safetensors.numpy import load_file

from seedgrid.core.errors import InputError, ModelError
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.models import cards, registry
from seedgrid.models.files import read_folder
from seedgrid.studio import Studio
from seedgrid.verify.claim import read_claim

BUNDLED = Path(__file__).resolve().parents[1] / "assets" / "model"
SIZE = {"width": 256, "height": 256, "num_inference_steps": 1}


@pytest.fixture
def backend() -> DiffusersBackend:
    return DiffusersBackend()


@pytest.fixture
def gguf_folder(model_folder: Callable[[str], Path], tmp_path: Path) -> Path:
    """A Flux whose transformer is a GGUF file of 8 bits."""
    folder = shutil.copytree(model_folder("flux"), tmp_path / "flux-gguf")
    plain = next((folder / "transformer").glob("*.safetensors"))
    writer = gguf.GGUFWriter(str(folder / "transformer" / "flux-Q8_0.gguf"), arch="flux")
    kind = gguf.GGMLQuantizationType.Q8_0
    for name, values in load_file(plain).items():
        if values.ndim == 2 and values.shape[1] % 32 == 0:
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    plain.unlink()
    return folder


def test_int8_is_locked_and_nearly_the_plain_picture(backend: DiffusersBackend) -> None:
    """Beside other words not one bit changes, and what is seen is the same."""
    recipes = recipes_for(backend, BUNDLED, ("a cat",) * 4, dtype="int8", **SIZE)
    assert recipes[0].dtype == "int8-float32"
    found = paint(backend, recipes)
    beside = [each.replace(prompt=words) for each, words in zip(recipes[1:], "abc", strict=True)]
    np.testing.assert_array_equal(paint(backend, [recipes[0], *beside])[0], found[0])
    plain = paint(backend, [each.replace(dtype="float32") for each in recipes])
    error = np.abs(plain[0].astype(float) - found[0]).mean()
    assert 0 < error < 6
    assert backend.prepare(recipes[0], PLACEMENT).model_dump()["sdnq"] == "0.2.8"


@pytest.mark.sweep
def test_int8_is_verified_in_the_studio_and_by_the_script(tmp_path: Path) -> None:
    """A program with nothing of SeedGrid makes the same bits."""
    with Studio(library=tmp_path / "library", placement=PLACEMENT) as studio:
        entries = studio.grid("a moon", "1-2", dtype="int8")
        (verdict,) = studio.verifier.verify([read_claim(entries[0].path)]).result()
        assert verdict.verdict == "identical"
    check_script_reproduced(entries, tmp_path, BUNDLED)


def test_what_is_stored_by_sdnq_is_what_int8_makes(
    backend: DiffusersBackend, tmp_path: Path
) -> None:
    """A folder with a `quantization_config` is loaded as it is, bit for bit."""
    recipes = recipes_for(backend, BUNDLED, ("a cat",) * 2, dtype="int8", **SIZE)
    made = paint(backend, recipes)
    folder = shutil.copytree(BUNDLED, tmp_path / "stored")
    backend.load(recipes[0], PLACEMENT).save_pretrained(folder)
    assert read_folder(folder).quantiser == "sdnq"
    stored = recipes_for(backend, folder, ("a cat",) * 2, **SIZE)
    np.testing.assert_array_equal(paint(backend, stored), made)
    with pytest.raises(InputError, match="“sdnq” and number format int8 do not go together"):
        backend.prepare(stored[0].replace(dtype="int8-float32"), PLACEMENT)


def test_a_gguf_file_in_a_models_folder_is_its_transformer(
    backend: DiffusersBackend, gguf_folder: Path, tmp_path: Path
) -> None:
    """It paints, locked; its bytes are part of the model's digest; the script reads it, too."""
    recipes = recipes_for(backend, gguf_folder, num_inference_steps=2)
    found = paint(backend, recipes)
    np.testing.assert_array_equal(paint(backend, recipes[:1])[0], found[0])
    assert backend.prepare(recipes[0], PLACEMENT).model_dump()["gguf"]
    with Studio(str(gguf_folder), tmp_path / "library", placement=PLACEMENT) as studio:
        entries = studio.grid("a fox", "1", num_inference_steps=2, width=64, height=64)
    check_script_reproduced(entries, tmp_path, gguf_folder)


def test_a_damaged_gguf_file_is_said_to_be(backend: DiffusersBackend, gguf_folder: Path) -> None:
    """One that is cut off when it is loaded; one that is something else when it is looked at."""
    file = gguf_folder / "transformer" / "flux-Q8_0.gguf"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(ModelError, match="damaged"):
        backend.prepare(recipes_for(backend, gguf_folder)[0], PLACEMENT)
    file.write_bytes(bytes(1000))
    with pytest.raises(ModelError, match="damaged"):
        read_folder(gguf_folder)


def test_a_recipe_of_int8_from_elsewhere_says_what_it_needs(
    backend: DiffusersBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library that makes it may not be installed here: that is no damage of the model."""
    (recipe,) = recipes_for(backend, BUNDLED, ("a cat",), **SIZE)
    monkeypatch.setattr("seedgrid.core.checks.find_spec", lambda _: None)
    with pytest.raises(InputError, match='pip install "sdnq'):
        backend.prepare(recipe.replace(dtype="int8-float32"), PLACEMENT)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"quant_method": "nobodys"}, "model_quantiser"),
        ({"quant_method": "bitsandbytes"}, "model_library"),
    ],
)
def test_what_stored_weights_need_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], code: str
) -> None:
    """A way of storing that is not read, or whose library is not here, is a sentence."""
    folder = shutil.copytree(BUNDLED, tmp_path / "stored")
    config = folder / "unet" / "config.json"
    told = json.loads(config.read_text()) | {"quantization_config": change}
    config.write_text(json.dumps(told))
    monkeypatch.setattr("seedgrid.models.files.find_spec", lambda _: None)
    with refused(ModelError, code):
        read_folder(folder)


def test_what_int8_cannot_be_is_said(tmp_path: Path) -> None:
    """A lone GGUF file, and a model that fits in int8 alone."""
    with pytest.raises(ModelError, match="one part of a model"):
        registry.find(str(tmp_path / "flux-Q4_K.gguf"))
    with pytest.raises(ModelError, match="choose int8"):
        cards.check_room("x", lambda dtype: 1 if dtype.startswith("int8") else 10**15, "float32")
