"""Work beside painting is bounded: every address and every event says by what."""

from __future__ import annotations

import io
import threading
import zipfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
from fastapi import FastAPI
from lora_files import lora_bytes
from pictures import make_lineage, make_picture
from servers import client_of as client_of_page
from starlette.testclient import TestClient

from seedgrid.core.picture import Entry, new_id
from seedgrid.export import bundle
from seedgrid.library import Library
from seedgrid.models.loras import find_lora
from seedgrid.studio import Studio
from seedgrid.web.server import files
from seedgrid.web.server.files import export_routes
from seedgrid.web.server.routes import PageServices
from seedgrid.web.server.waiting import FileWork, FileWorkBounds
from seedgrid.web.state.snapshot import OneLibrary

FILE_WORK, ENGINE, UPLOADS, SMALL, OPEN = "file work", "engine", "uploads", "small", "open"

ROUTES: Final = {
    "/": SMALL,  # made once for each language
    "/healthz": SMALL,
    "/seedgrid/assets/{version}/{name:path}": SMALL,
    "/seedgrid/pictures/{picture_id}.png": SMALL,
    "/seedgrid/live/{recipe_id}.png": SMALL,  # from memory
    "/seedgrid/thumbs/{picture_id}.jpg": FILE_WORK,
    "/seedgrid/opening/{number}.webp": SMALL,  # four files
    "/seedgrid/drop": FILE_WORK,
    "/seedgrid/download/selected.zip": FILE_WORK,
    "/seedgrid/download/{picture_id}/{scope}.zip": FILE_WORK,
    "/seedgrid/export/{picture_id}/{scope}.{kind}": FILE_WORK,
    "/seedgrid/models": FILE_WORK,
    "/seedgrid/models/{action}": SMALL,  # on a public page what its owner lists
    "/seedgrid/models/file/{name}": UPLOADS,  # of this machine only
    **{
        f"/seedgrid/do/{action}": ENGINE
        for action in ("load", "generate", "refine", "subtle", "strong", "final", "final-4")
    },
    **{f"/seedgrid/do/{action}": ENGINE for action in ("again", "verify")},
    **{f"/seedgrid/do/live-{action}": ENGINE for action in ("generate", "refine")},
    "/seedgrid/do/follow": OPEN,
    # Small ones read a page of the visitor's own library at most.
    **{f"/seedgrid/do/{action}": SMALL for action in ("back", "go", "stop", "pick", "favourite")},
    **{f"/seedgrid/do/{action}": SMALL for action in ("note", "search", "open", "example")},
    **{f"/seedgrid/do/{action}": SMALL for action in ("empty", "trash", "mark")},
    **{f"/seedgrid/do/{action}": SMALL for action in ("offer", "advise", "queue")},
}
"""By what each address of ours is bounded; Gradio's are the four of the API (app.py)."""


def paths_of(routes: Iterable[Any]) -> Iterator[str]:
    """Give the addresses of routes, those of routers inside too."""
    for route in routes:
        inner = getattr(getattr(route, "original_router", None), "routes", None)
        if inner is None:
            yield route.path
        else:
            yield from paths_of(inner)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> tuple[Library, tuple[Entry, ...]]:
    library = Library(tmp_path_factory.mktemp("work"))
    same = {"work_id": new_id(), "round_id": new_id()}
    lineages = [make_lineage(cell=n, **same) for n in range(6)]
    added = [library.add(make_picture(seed=n, lineage=each)) for n, each in enumerate(lineages)]
    return library, tuple(added)


def client_of(library: Library, bounds: FileWorkBounds = FileWorkBounds()) -> TestClient:  # noqa: B008
    studio = cast("Studio", SimpleNamespace(library=library, verifier=None))
    services = SimpleNamespace(
        studio=studio, libraries=OneLibrary(studio), file_work=FileWork(bounds)
    )
    app = FastAPI()
    app.include_router(export_routes(cast("PageServices", services)))
    return TestClient(app)


def test_a_download_goes_out_piece_by_piece_and_whole(
    tmp_path: Path, work: tuple[Library, tuple[Entry, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No piece is larger than it may be, and every picture arrives byte for byte."""
    library, entries = work
    large = replace(entries[0], path=tmp_path / "large.png")
    large.path.write_bytes(bytes(3_000_000))
    monkeypatch.setattr(bundle, "_PIECE_BYTES", 50_000)
    assert max(map(len, bundle.packed_pictures([large]))) < 200_000
    with client_of(library) as client:
        answer = client.get(f"/seedgrid/download/{entries[0].id}/work.zip")
    assert answer.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        found = sorted(archive.read(name) for name in archive.namelist())
    assert found == sorted(entry.path.read_bytes() for entry in entries)


@pytest.mark.parametrize(
    "path", ["download/{}/work.zip", "export/{}/work.png", "export/{}/work.zip"]
)
def test_what_is_too_much_is_refused_in_a_sentence(
    path: str, work: tuple[Library, tuple[Entry, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By number and by size: a thousand large pictures were once packed for whoever asked."""
    library, entries = work
    address = "/seedgrid/" + path.format(entries[0].id)
    with client_of(library, FileWorkBounds(download_bytes=1000)) as client:
        answer = client.get(address)
        assert (answer.status_code, "MB together" in answer.text) == (413, True)
    monkeypatch.setattr(files, "MAX_PICTURES", 3)
    with client_of(library) as client:
        answer = client.get(address)
        assert (answer.status_code, "select fewer" in answer.text) == (413, True)


def test_one_address_has_so_much_in_work_and_no_more(
    work: tuple[Library, tuple[Entry, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third download at once is asked to wait; when one is done there is room again."""
    library, entries = work
    may_go, begun = threading.Event(), threading.Semaphore(0)

    def held(_: object) -> Iterator[bytes]:
        begun.release()
        may_go.wait(60)
        yield b"PK"

    monkeypatch.setattr(files, "packed_pictures", held)
    path = f"/seedgrid/download/{entries[0].id}/round.zip"
    with client_of(library, FileWorkBounds(address=2)) as client, ThreadPoolExecutor(2) as pool:
        going = [pool.submit(client.get, path) for _ in range(2)]
        for _ in going:
            assert begun.acquire(timeout=60)
        refused = client.get(path)
        may_go.set()
        assert [each.result().status_code for each in going] == [200, 200]
        assert client.get(path).status_code == 200
    assert (refused.status_code, "in work already" in refused.text) == (429, True)


def test_what_took_long_counts_for_its_address(work: tuple[Library, tuple[Entry, ...]]) -> None:
    """Small files may be huge pictures: what one address costs is measured, not guessed."""
    library, entries = work
    path = f"/seedgrid/export/{entries[0].id}/round.py"
    with client_of(library, FileWorkBounds(window_s=1e-6)) as client:
        assert client.get(path).status_code == 200
        refused = client.get(path)
    assert (refused.status_code, "took" in refused.text) == (429, True)


def test_a_bundle_gives_away_no_weights_that_are_not_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger's picture could name any LoRA of the owner's, and those it brought counted not."""
    monkeypatch.setenv("SEEDGRID_MODELS", str(tmp_path))
    monkeypatch.setenv("SEEDGRID_PUBLIC", "1")
    (tmp_path / "fox.safetensors").write_bytes(lora_bytes({"what": "x" * 20_000}))
    found = find_lora("fox")
    plain = make_picture()
    named = plain.recipe.replace(loras=(found,))
    library = Library(tmp_path / "library")
    entry = library.add(replace(plain, recipe=named))
    path = f"/seedgrid/export/{entry.id}/picture.zip"
    with client_of(library, FileWorkBounds(download_bytes=20_000)) as client:
        assert client.get(path).status_code == 413
    with client_of(library) as client:
        assert client.get(path).status_code == 200
        monkeypatch.setenv("SEEDGRID_ALLOWED_MODELS", "bundled")
        refused = client.get(path)
    assert (refused.status_code, "not offered" in refused.text) == (409, True)


def test_strangers_and_other_pages_change_no_model(
    services: PageServices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A public page tells what it offers, and refuses everything else."""
    monkeypatch.setenv("SEEDGRID_PUBLIC", "1")
    ask = {"json": {"name": "someone/foxes"}}
    client = client_of_page(services, tmp_path)
    told = client.get("/seedgrid/models").json()
    assert told["may"] == {"change": False, "download": False}
    assert told["first"] == []
    for action in ("download", "add", "delete", "discard"):
        assert client.post(f"/seedgrid/models/{action}", **ask).json()["wrong"], action
        headers = {"Origin": "http://elsewhere.example"}
        assert client.post(f"/seedgrid/models/{action}", headers=headers, **ask).is_error
    answer = client.put("/seedgrid/models/file/fox.safetensors", content=b"x")
    assert answer.json()["wrong"]
    monkeypatch.delenv("SEEDGRID_PUBLIC")
    assert client.put("/seedgrid/models/file/fox.safetensors").json()["wrong"]
