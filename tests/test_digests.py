"""Digests of weights: read once, and again whenever anything about the file has changed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pictures import make_recipe

from seedgrid.core.errors import ModelError
from seedgrid.core.recipe import Lora
from seedgrid.models import digests, registry
from seedgrid.models.digests import files_digest
from seedgrid.models.loras import recorded_lora, take_lora

SIZE = (1 << 20) + 8


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEEDGRID_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "weights.safetensors"
    path.write_bytes(bytes(SIZE))
    return path


def flip(path: Path) -> None:
    """Change one bit and put the time of the writing back."""
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(SIZE // 2)
        file.write(b"\1")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (SIZE, before.st_mtime_ns)


def test_a_changed_bit_with_the_old_time_restored_is_another_model(weights: Path) -> None:
    """The same name, size and time gave the same digest, and one recipe id meant two models."""
    before = files_digest({"w": weights})
    flip(weights)
    assert files_digest({"w": weights}) != before


def test_a_file_is_read_once(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gigabytes are not hashed at every start, also not under another name."""
    before = files_digest({"w": weights})
    link = weights.with_name("another.safetensors")
    monkeypatch.setattr("hashlib.file_digest", None)
    assert files_digest({"w": weights}) == before
    link.symlink_to(weights)
    assert files_digest({"w": link}) == before


def test_forgetting_reads_again(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--rehash`: for systems that keep no honest times."""
    state = digests._state(weights)
    before = files_digest({"w": weights})
    flip(weights)
    monkeypatch.setattr(digests, "_state", lambda _: state)
    assert files_digest({"w": weights}) == before
    assert files_digest({"w": weights}, anew=True) != before
    digests.forget()
    assert files_digest({"w": weights}) != before


def test_a_model_whose_weights_changed_is_named(model_folder: Callable[[str], Path]) -> None:
    """Before anybody is blamed every byte is compared with what the recipe names."""
    ref = registry.find(str(model_folder("ddim"))).card.ref
    recipe = make_recipe(model=ref)
    registry.rehash(recipe)
    with pytest.raises(ModelError):
        registry.rehash(make_recipe(model=ref.model_copy(update={"weights_sha256": "0" * 64})))


def test_a_lora_whose_weights_changed_is_named(
    model_folder: Callable[[str], Path], weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a system keeps no honest times."""
    num_bytes = SIZE - 8 - 200
    layer = {"dtype": "U8", "shape": [num_bytes], "data_offsets": [0, num_bytes]}
    header = json.dumps({"x.lora_A.weight": layer}).ljust(200).encode()
    weights.write_bytes(len(header).to_bytes(8, "little") + header + bytes(num_bytes))
    honest, state = digests._state, digests._state(weights)
    monkeypatch.setattr(digests, "_state", lambda path: state if path == weights else honest(path))
    lora = Lora(id="weights", weights_sha256=take_lora(weights).sha256)
    recipe = make_recipe(model=registry.find(str(model_folder("ddim"))).card.ref, loras=(lora,))
    flip(weights)
    assert recorded_lora(lora) == weights
    with pytest.raises(ModelError, match="LoRA"):
        registry.rehash(recipe)
