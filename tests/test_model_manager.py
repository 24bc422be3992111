"""Models: what is here, what is fetched beside, stopped, gone on with, deleted, allowed."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from hub import COMMIT, Hub
from lora_files import lora_bytes
from pictures import make_picture
from refusing import code_of
from reports import report_for

from seedgrid.core.errors import ModelError
from seedgrid.core.recipe import ModelRef
from seedgrid.diffusion.deferred import DeferredBackend
from seedgrid.diffusion.probe_results import ProbeReport, keep_report
from seedgrid.models import cards, registry, shelf
from seedgrid.models.files import ModelFiles
from seedgrid.studio.model_manager import ModelManager

FOXES = "someone/foxes"


def checkpoint(path: Path) -> Path:
    """Write what looks like a whole Stable Diffusion model in one file."""
    name = "cond_stage_model.transformer.text_model.embeddings.position_ids"
    path.write_bytes(lora_bytes(tensor=name))
    return path


def ids(manager: ModelManager) -> set[str]:
    return {managed.item.id for managed in manager.items()}


def test_a_fetched_model_is_described_and_deleted_with_its_size(manager: ModelManager) -> None:
    """Family, size, licence, formats and memory are told without reading its weights."""
    manager.download(FOXES)
    done = manager.downloads.wait(FOXES)
    assert (done.state, done.error) == ("done", None)
    assert done.num_bytes == done.total
    (found,) = [each for each in manager.items() if each.item.id == FOXES]
    item = found.item
    assert (item.kind, item.revision, item.licence) == ("hub", COMMIT, "apache-2.0")
    assert (item.family, item.width, item.formats) == ("StableDiffusionPipeline", 64, ("float32",))
    assert found.fits
    assert found.probe is None
    assert item.num_bytes == done.total
    assert manager.delete(FOXES) == done.total
    assert FOXES not in ids(manager)
    assert code_of(registry.find, FOXES) == "model_not_downloaded"


def test_tested_here_is_said_of_the_weights_that_were_tested(manager: ModelManager) -> None:
    """Other weights under the same name have not been; nor have those that nobody has read yet."""

    def lock() -> ProbeReport | None:
        return next(each.probe for each in manager.items() if each.item.id == FOXES)

    manager.download(FOXES)
    manager.downloads.wait(FOXES)
    picture = make_picture(model=registry.find(FOXES).card.ref)
    report = report_for(picture.recipe, tested=picture.recipe.lock_width)
    keep_report(picture.recipe, picture.passport, report)
    assert lock() is not None
    weights = next((registry.find(FOXES).path / "unet").glob("*.safetensors"))
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.unlink()  # The hub's cache links to what others may share.
    weights.write_bytes(data)
    assert lock() is None


def test_a_download_is_stopped_gone_on_with_and_given_up(hub: Hub, manager: ModelManager) -> None:
    """Another process sees what broke off, too."""
    hub.may_go.clear()
    manager.download(FOXES)
    while not manager.downloads.known()[0].num_bytes:
        assert manager.downloads.known()[0].goes_on
    manager.downloads.stop(FOXES)
    hub.may_go.set()
    assert manager.downloads.wait(FOXES).state == "stopped"
    (told,) = ModelManager().downloads.known()
    assert told.state == "stopped"
    assert 0 < told.num_bytes < told.total
    manager.discard(FOXES)
    assert manager.downloads.known() == ()
    manager.download(FOXES)
    assert manager.downloads.wait(FOXES).state == "done"


def test_what_waits_for_its_turn_ends_when_all_are_stopped(hub: Hub, manager: ModelManager) -> None:
    """A caller that waits for a download is told that it will not begin."""
    hub.may_go.clear()
    manager.download(FOXES)
    manager.downloads.start("test/waits")
    manager.downloads.close()
    hub.may_go.set()
    assert manager.downloads.wait("test/waits", timeout_s=30).state == "stopped"


def test_only_an_id_of_a_model_can_be_given_up(manager: ModelManager) -> None:
    """Anything else is refused as a name, not as a download that goes on."""
    assert code_of(manager.discard, "no id") == "model_name"


def test_a_download_that_fails_says_why(hub: Hub, manager: ModelManager) -> None:
    """The page shows it as the sentence of its error."""
    hub.repositories[FOXES].gated = True
    manager.download(FOXES)
    failed = manager.downloads.wait(FOXES)
    assert failed.state == "failed"
    assert failed.error is not None
    assert failed.error.code == "download_gated"


def test_a_dropped_file_is_checked_before_it_is_kept(manager: ModelManager, tmp_path: Path) -> None:
    """A whole model stays under its name; anything else leaves nothing."""
    whole = checkpoint(tmp_path / "fox.safetensors")
    with manager.receiving("fox.safetensors") as path:
        shutil.copyfile(whole, path)
    assert "fox.safetensors" in ids(manager)
    with pytest.raises(ModelError), manager.receiving("other.safetensors") as path:
        path.write_bytes(b"x" * 100)
    for name in ("fox.safetensors", "fox.ckpt", "../fox.safetensors", ".fox.safetensors"):
        assert code_of(lambda each=name: manager.receiving(each).__enter__())
    assert [each.name for each in shelf.own_folder().iterdir()] == ["fox.safetensors"]
    assert manager.delete("fox.safetensors") == whole.stat().st_size
    assert "fox.safetensors" not in ids(manager)


def test_a_dropped_file_gets_its_configurations_and_no_weights(
    hub: Hub, manager: ModelManager, sd: Path, tmp_path: Path
) -> None:
    """A few kilobytes of the family's repository, put beside it; the file then is a model."""
    family = "stable-diffusion-v1-5/stable-diffusion-v1-5"
    hub.add(family, sd)
    whole = checkpoint(tmp_path / "cat.safetensors")
    with manager.receiving("cat.safetensors") as path:
        shutil.copyfile(whole, path)
    (lacking,) = [each.item for each in manager.items() if each.item.id == "cat.safetensors"]
    assert lacking.problem is not None
    assert "models --configure FILE" in str(lacking.problem)
    hub.asked.clear()
    manager.configure("cat.safetensors")
    assert hub.starts() == []
    (found,) = [each.item for each in manager.items() if each.item.id == "cat.safetensors"]
    assert (found.problem, found.family) == (None, "StableDiffusionPipeline")
    assert family not in ids(manager)
    assert manager.delete("cat.safetensors") > whole.stat().st_size
    assert list(shelf.own_folder().iterdir()) == []
    del hub.repositories[family]


def test_what_a_model_takes_is_told_by_format_and_the_first_that_fits(
    manager: ModelManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where float32 and bfloat16 are too much, int8 may do."""
    manager.download(FOXES)
    manager.downloads.wait(FOXES)
    (found,) = [each for each in manager.items() if each.item.id == FOXES]
    assert list(found.item.needs) == ["float32", "bfloat16", "int8"]
    assert found.item.fitting == "float32"
    monkeypatch.setattr(cards, "memory_bytes", lambda: 1.2 * found.item.needs["int8"])
    assert found.item.fitting == "int8"
    monkeypatch.setattr(cards, "memory_bytes", lambda: 1)
    assert found.item.fitting is None


def test_what_no_memory_holds_is_refused_before_it_is_read_for_its_digest(
    sd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 42 GB it was said after three minutes; so it was when a picture was verified."""
    machine = SimpleNamespace(total=1000)
    memory = SimpleNamespace(virtual_memory=lambda: machine, swap_memory=lambda: machine)
    monkeypatch.setattr("seedgrid.models.cards.psutil", memory)
    read: list[ModelFiles] = []
    monkeypatch.setattr(ModelFiles, "digest", read.append)
    assert code_of(DeferredBackend().card, str(sd)) == "model_memory"
    ref = ModelRef(id=sd.name, revision="local", weights_sha256="0" * 64)
    assert code_of(registry.find_recorded, ref, "float32") == "model_memory"
    assert read == []


def test_a_folder_of_somebodys_own_is_known_and_never_deleted(
    manager: ModelManager, sd: Path, tmp_path: Path
) -> None:
    """It is taken where it lies."""
    folder = Path(shutil.copytree(sd, tmp_path / "my foxes"))
    assert manager.add(str(folder)).family == "StableDiffusionPipeline"
    assert "my foxes" in ids(manager)
    assert code_of(manager.delete, "my foxes") == "model_kept"
    assert code_of(manager.delete, "bundled") == "model_kept"
    assert code_of(manager.delete, "nobody") == "model_missing"
    assert folder.is_dir()


def test_a_public_page_does_what_its_owner_lists(
    manager: ModelManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is fetched, added or deleted by strangers but what the variable names."""
    monkeypatch.setenv("SEEDGRID_PUBLIC", "1")
    assert code_of(manager.download, FOXES) == "download_forbidden"
    assert manager.recommended() == ()
    monkeypatch.setenv("SEEDGRID_ALLOWED_MODELS", f"{FOXES}, bundled")
    manager.download(FOXES)
    assert manager.downloads.wait(FOXES).state == "done"
    assert ids(manager) == {FOXES, "bundled"}
    monkeypatch.setenv("SEEDGRID_ALLOWED_MODELS", FOXES)
    assert ids(manager) == {FOXES}
    for change in (manager.delete, manager.discard, manager.add):
        assert code_of(change, FOXES) == "download_forbidden"
    assert code_of(manager.receiving("fox.safetensors").__enter__) == "download_forbidden"
