"""LoRAs on this machine: what is told of them, dropped, fetched from the hub, deleted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from hub import Hub, Repository
from lora_files import lora_bytes
from refusing import code_of
from starlette.testclient import TestClient

from seedgrid.models import shelf
from seedgrid.models.loras import LORAS, LoraItem, describe_lora, find_lora
from seedgrid.studio import Studio
from seedgrid.studio.model_manager import ModelManager
from seedgrid.verify.claim import read_claim
from seedgrid.web.server.models import hub_name, model_routes
from seedgrid.web.server.waiting import FileWork, FileWorkBounds

FOXES = "someone/ink-foxes"
GENERIC = "pytorch_lora_weights.safetensors"


@pytest.fixture
def published(hub: Hub) -> Iterator[Repository]:
    """A LoRA on the hub, as diffusers' own scripts publish them."""
    hub.repositories[FOXES] = Repository({GENERIC: lora_bytes(), "README.md": b"foxes"})
    hub.repositories[FOXES].card = {"instance_prompt": "an inkfox, ink on paper"}
    yield hub.repositories[FOXES]
    del hub.repositories[FOXES]


def drop(manager: ModelManager, name: str, content: bytes) -> None:
    with manager.receiving(name) as path:
        path.write_bytes(content)


def described(folder: Path, said: dict[str, str]) -> LoraItem:
    path = folder / "fox.safetensors"
    path.write_bytes(lora_bytes(said))
    return describe_lora(path)


def test_a_dropped_lora_is_kept_among_loras_and_found_by_its_name(manager: ModelManager) -> None:
    """It is no broken model, another of its name is refused, and deleting says what it frees."""
    content = lora_bytes({"modelspec.trigger_phrase": "inkfox"})
    drop(manager, "Ink fox.safetensors", content)
    (item,) = manager.loras()
    assert (item.id, item.words, item.deletable) == ("Ink fox", ("inkfox",), True)
    assert LORAS.recorded(find_lora("Ink fox")) == item.path
    assert [each.item.id for each in manager.items()] == ["bundled"]
    assert code_of(manager.receiving("Ink fox.safetensors").__enter__) == "model_there"
    assert manager.delete("Ink fox") == len(content)
    assert manager.loras() == ()
    assert code_of(find_lora, "Ink fox") == "lora_missing"


def test_somebodys_own_folder_is_listed_and_never_deleted(
    manager: ModelManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside models or in `loras` there; a file given by its path is known from then on."""
    (tmp_path / "mine" / "loras").mkdir(parents=True)
    for name in ("mine/loras/a", "mine/b", "c", "epoch=4"):
        (tmp_path / f"{name}.safetensors").write_bytes(lora_bytes())
    monkeypatch.setenv("SEEDGRID_MODELS", str(tmp_path / "mine"))
    manager.add_lora(str(tmp_path / "c.safetensors"))
    assert [(each.id, each.deletable) for each in manager.loras()] == [
        ("a", False),
        ("b", False),
        ("c", False),
    ]
    assert [each.item.id for each in manager.items()] == ["bundled"]
    assert code_of(manager.delete, "b") == "model_kept"
    (named,) = manager.find_loras([str(tmp_path / "epoch=4.safetensors")])
    assert (named.id, named.scale) == ("epoch=4", 1.0)


def test_a_lora_of_the_hub_is_found_by_its_name_and_by_its_id(
    manager: ModelManager, published: Repository
) -> None:
    """A file without a name of its own gets that of its repository; nothing is left beside."""
    assert code_of(find_lora, FOXES) == "lora_not_downloaded"
    manager.download(FOXES)
    done = manager.downloads.wait(FOXES)
    assert (done.state, done.error) == ("done", None)
    assert done.num_bytes == done.total == len(published.files[GENERIC])
    (item,) = manager.loras()
    assert (item.id, item.hub_id, item.licence) == ("ink-foxes", FOXES, "apache-2.0")
    assert item.words == ("an inkfox", "ink on paper")
    assert find_lora(FOXES) == find_lora("ink-foxes")
    assert LORAS.recorded(find_lora(FOXES)) == item.path
    assert [path.name for path in shelf.own_folder().rglob("*.*")] == ["ink-foxes.safetensors"]
    manager.download(FOXES)
    assert manager.downloads.wait(FOXES).state == "done"
    assert len(manager.loras()) == 1
    manager.delete("ink-foxes")
    assert code_of(find_lora, FOXES) == "lora_missing"


def test_of_several_loras_one_is_named_and_what_is_none_is_refused(
    hub: Hub, manager: ModelManager, published: Repository
) -> None:
    """Before a byte of it is kept."""
    published.files |= {"red.safetensors": lora_bytes(), "plain.safetensors": lora_bytes(None, "x")}
    published.files["rubbish.safetensors"] = b"x" * 5000
    hub.repositories["someone/empty"] = Repository({"README.md": b""})
    for asked, code in (
        (FOXES, "lora_which"),
        (f"{FOXES}/plain.safetensors", "model_not_one"),
        (f"{FOXES}/green.safetensors", "model_not_one"),
        (f"{FOXES}/rubbish.safetensors", "model_not_one"),
        ("someone/empty", "model_not_one"),
    ):
        manager.download(asked)
        failed = manager.downloads.wait(asked).error
        assert failed is not None
        assert (asked, failed.code) == (asked, code)
    manager.download(f"{FOXES}/red.safetensors@main")
    assert manager.downloads.wait(f"{FOXES}/red.safetensors@main").state == "done"
    assert [each.id for each in manager.loras()] == ["red"]


def test_trigger_words_are_read_as_trainers_write_them(tmp_path: Path) -> None:
    """A phrase, or the tags of at least half of the pictures; what is no such thing is nothing."""
    tags = {"10_fox": {"inkfox": 20, "tree": 10, "snow": 9}, "5_red": {"inkfox": 5, "tree": 3}}
    assert described(tmp_path, {"ss_tag_frequency": json.dumps(tags)}).words == ("inkfox", "tree")
    named = {"modelspec.trigger_phrase": " ink  fox, <lora:x>, red\n", "ss_tag_frequency": "{}"}
    assert described(tmp_path, named).words == ("ink fox", "lora:x", "red")
    made_for = {"modelspec.architecture": "stable-diffusion-xl-v1-base/lora"}
    assert described(tmp_path, made_for).made_for == "stable-diffusion-xl-v1-base"
    for nonsense in ("{", "[]", '{"a": 3}', '{"a": {"b": "c"}}', "[" * 5000, '{"a": {"b": NaN}}'):
        assert described(tmp_path, {"ss_tag_frequency": nonsense}).words == ()
    assert described(tmp_path, {"ss_base_model_version": "x" * 500}).made_for.endswith("…")


def test_a_public_page_tells_and_fetches_what_its_owner_lists(
    manager: ModelManager,
    published: Repository,  # noqa: ARG001 (it could be fetched)
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By name or by hub id."""
    drop(manager, "fox.safetensors", lora_bytes())
    monkeypatch.setenv("SEEDGRID_PUBLIC", "1")
    assert [each.id for each in manager.loras()] == ["fox"]
    assert code_of(manager.delete, "fox") == "download_forbidden"
    assert code_of(manager.add_lora, "/x/fox.safetensors") == "download_forbidden"
    assert code_of(manager.download, FOXES) == "download_forbidden"
    monkeypatch.setenv("SEEDGRID_ALLOWED_MODELS", f"bundled, {FOXES}")
    manager.download(FOXES)
    assert manager.downloads.wait(FOXES).state == "done"
    assert [each.id for each in manager.loras()] == ["ink-foxes"]


def test_a_stranger_paints_with_what_the_owner_lists(
    manager: ModelManager, studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a prompt names a LoRA, or a picture that is gone on from or verified has it."""
    drop(manager, "fox.safetensors", lora_bytes())
    painted = studio.grid("a fox <lora:fox:0.8>", "0")[0]
    claim = read_claim(painted.path)
    monkeypatch.setenv("SEEDGRID_PUBLIC", "1")
    studio.grid("a fox <lora:fox:0.5>", "0")
    monkeypatch.setenv("SEEDGRID_ALLOWED_MODELS", "bundled, ink")
    assert code_of(studio.grid, "a fox <lora:fox:0.7>", "0") == "lora_not_offered"
    assert code_of(studio.grid, "a fox <lora:nobody>", "0") == "lora_not_offered"
    assert code_of(studio.refine, painted) == "lora_not_offered"
    assert code_of(studio.verifier.verify, [claim]) == "lora_not_offered"
    monkeypatch.setenv("SEEDGRID_ALLOWED_MODELS", "bundled, fox")
    studio.grid("a fox <lora:fox:0.7>", "0")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("org/foxes", "org/foxes"),
        ("https://huggingface.co/org/foxes/", "org/foxes"),
        (
            "https://huggingface.co/org/foxes/blob/v2/a/f.safetensors",
            "org/foxes/a/f.safetensors@v2",
        ),
        ("org/foxes/resolve/main/f.safetensors?download=true", "org/foxes/f.safetensors@main"),
        ("/home/me/blob/f.safetensors", "/home/me/blob/f.safetensors"),
        ("/home/foxes", "/home/foxes"),  # a folder that is not there is no name on the hub
    ],
)
def test_the_address_of_a_page_of_the_hub_names_its_file(text: str, name: str) -> None:
    """What is copied from a browser's bar is what `seedgrid models --download` takes."""
    assert hub_name(text) == name


def test_looking_at_models_is_file_work(manager: ModelManager, studio: Studio) -> None:
    """Every look reads what all files say of themselves, and any stranger may look."""
    del manager
    app = FastAPI()
    app.include_router(model_routes(studio, FileWork(FileWorkBounds(window_s=1e-9))))
    with TestClient(app) as client:
        assert client.get("/seedgrid/models").status_code == 200
        refusal = client.get("/seedgrid/models")
    assert refusal.status_code == 429
    assert refusal.json()["wrong"]
