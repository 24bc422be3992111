"""The shelf: what is here, what is fetched beside, stopped, gone on with, deleted, allowed."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hub import COMMIT, Hub

from seedgrid.core.errors import ModelError
from seedgrid.models import own, registry
from seedgrid.models.catalogue import first_models
from seedgrid.models.families import FAMILIES
from seedgrid.models.memory import check_room
from seedgrid.studio.shelf import Shelf

FOXES = "someone/foxes"


@pytest.fixture
def shelf(hub_home: Path) -> Iterator[Shelf]:  # noqa: ARG001 (the cache)
    shelf = Shelf()
    yield shelf
    shelf.close()


def checkpoint(path: Path) -> Path:
    """Write what looks like a whole Stable Diffusion model in one file."""
    name = "cond_stage_model.transformer.text_model.embeddings.position_ids"
    header = json.dumps({name: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    return path


def ids(shelf: Shelf) -> set[str]:
    return {shelved.item.id for shelved in shelf.items()}


def refused(call: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(ModelError) as caught:
        call(*arguments)
    return caught.value.code


def test_a_fetched_model_is_described_and_deleted_with_its_size(shelf: Shelf) -> None:
    """Family, size, licence, formats and memory are told without reading its weights."""
    shelf.download(FOXES)
    done = shelf.wait(FOXES)
    assert (done.state, done.error) == ("done", None)
    assert done.num_bytes == done.total
    (found,) = [each for each in shelf.items() if each.item.id == FOXES]
    item = found.item
    assert (item.kind, item.revision, item.licence) == ("hub", COMMIT, "apache-2.0")
    assert (item.family, item.width, item.formats) == ("StableDiffusionPipeline", 64, ("float32",))
    assert found.fits
    assert found.lock is None
    assert item.num_bytes == done.total
    assert shelf.delete(FOXES) == done.total
    assert FOXES not in ids(shelf)
    assert refused(registry.find, FOXES) == "model_not_downloaded"


def test_a_download_is_stopped_gone_on_with_and_given_up(hub: Hub, shelf: Shelf) -> None:
    """Another process sees what broke off, too."""
    hub.may_go.clear()
    shelf.download(FOXES)
    while not shelf.downloads()[0].num_bytes:
        assert shelf.downloads()[0].goes_on
    shelf.stop(FOXES)
    hub.may_go.set()
    assert shelf.wait(FOXES).state == "stopped"
    (told,) = Shelf().downloads()
    assert told.state == "stopped"
    assert 0 < told.num_bytes < told.total
    shelf.discard(FOXES)
    assert shelf.downloads() == ()
    shelf.download(FOXES)
    assert shelf.wait(FOXES).state == "done"


def test_a_download_that_fails_says_why(hub: Hub, shelf: Shelf) -> None:
    """The page shows it as the sentence of its error."""
    hub.repositories[FOXES].gated = True
    shelf.download(FOXES)
    failed = shelf.wait(FOXES)
    assert failed.state == "failed"
    assert failed.error is not None
    assert failed.error.code == "download_gated"


def test_a_dropped_file_is_checked_before_it_is_kept(shelf: Shelf, tmp_path: Path) -> None:
    """A whole model stays under its name; anything else leaves nothing."""
    whole = checkpoint(tmp_path / "fox.safetensors")
    with shelf.taking("fox.safetensors") as path:
        shutil.copyfile(whole, path)
    assert "fox.safetensors" in ids(shelf)
    with pytest.raises(ModelError), shelf.taking("other.safetensors") as path:
        path.write_bytes(b"x" * 100)
    for name in ("fox.safetensors", "fox.ckpt", "../fox.safetensors", ".fox.safetensors"):
        assert refused(lambda each=name: shelf.taking(each).__enter__())
    assert [each.name for each in own.own_folder().iterdir()] == ["fox.safetensors"]
    assert shelf.delete("fox.safetensors") == whole.stat().st_size
    assert "fox.safetensors" not in ids(shelf)


def test_a_dropped_file_gets_its_configurations_and_no_weights(
    hub: Hub, shelf: Shelf, model_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    """A few kilobytes of the family's repository, put beside it; the file then is a model."""
    family = "stable-diffusion-v1-5/stable-diffusion-v1-5"
    hub.add(family, model_folder("sd"))
    whole = checkpoint(tmp_path / "cat.safetensors")
    with shelf.taking("cat.safetensors") as path:
        shutil.copyfile(whole, path)
    (lacking,) = [each.item for each in shelf.items() if each.item.id == "cat.safetensors"]
    assert lacking.problem is not None
    assert "models --configure FILE" in str(lacking.problem)
    hub.asked.clear()
    shelf.configure("cat.safetensors")
    assert hub.starts() == []
    (found,) = [each.item for each in shelf.items() if each.item.id == "cat.safetensors"]
    assert (found.problem, found.family) == (None, "StableDiffusionPipeline")
    assert family not in ids(shelf)
    assert shelf.delete("cat.safetensors") > whole.stat().st_size
    assert list(own.own_folder().iterdir()) == []
    del hub.repositories[family]


def test_weights_that_no_memory_holds_are_refused_before_they_are_read() -> None:
    """The system would end the whole program."""
    check_room("foxes", 1000, "float32")
    with pytest.raises(ModelError, match=r"needs 4000000\.0 GB of memory"):
        check_room("foxes", 10**15, "float32")


def test_a_folder_of_somebodys_own_is_known_and_never_deleted(
    shelf: Shelf, model_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    """It is taken where it lies."""
    folder = Path(shutil.copytree(model_folder("sd"), tmp_path / "my foxes"))
    assert shelf.add(str(folder)).family == "StableDiffusionPipeline"
    assert "my foxes" in ids(shelf)
    assert refused(shelf.delete, "my foxes") == "model_kept"
    assert refused(shelf.delete, "bundled") == "model_kept"
    assert refused(shelf.delete, "nobody") == "model_missing"
    assert folder.is_dir()


def test_a_public_page_does_what_its_owner_lists(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is fetched, added or deleted by strangers but what the variable names."""
    monkeypatch.setenv("SEEDGRID_PUBLIC", "1")
    assert refused(shelf.download, FOXES) == "download_forbidden"
    assert shelf.first() == ()
    monkeypatch.setenv("SEEDGRID_ALLOWED_MODELS", f"{FOXES}, bundled")
    shelf.download(FOXES)
    assert shelf.wait(FOXES).state == "done"
    assert ids(shelf) == {FOXES, "bundled"}
    monkeypatch.setenv("SEEDGRID_ALLOWED_MODELS", FOXES)
    assert ids(shelf) == {FOXES}
    for change in (shelf.delete, shelf.discard, shelf.add):
        assert refused(change, FOXES) == "download_forbidden"
    assert refused(shelf.taking("fox.safetensors").__enter__) == "download_forbidden"


def test_the_first_models_are_of_known_families_and_pinned() -> None:
    """A commit each, and one model a family."""
    families = [each.family for each in first_models()]
    assert len(set(families)) == len(families) >= 6
    assert set(families) <= set(FAMILIES)
    assert all(len(each.revision) == 40 for each in first_models())
