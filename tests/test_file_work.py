"""Work beside painting is bounded: every address and every event says by what."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final, cast

import anyio
import pytest
from gradio.data_classes import FileData, ListFiles
from lora_files import lora_bytes
from pictures import make_lineage, make_picture
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from seedgrid.core.picture import Entry, new_id
from seedgrid.core.recipe import Lora
from seedgrid.export import pictures
from seedgrid.library import Library
from seedgrid.models.loras import find_lora
from seedgrid.studio import Studio
from seedgrid.web.components.files import paths_only
from seedgrid.web.server import downloads
from seedgrid.web.server.downloads import download_routes
from seedgrid.web.server.file_work import FileWork, FileWorkBounds
from seedgrid.web.server.guard import is_listed
from seedgrid.web.server.looking import looking_routes
from seedgrid.web.server.open_requests import OpenRequests
from seedgrid.web.state.visitor_libraries import OneLibrary

ROOT: Final = Path(__file__).parent.parent
FILE_WORK, ENGINE, UPLOADS, SMALL, OPEN = "file work", "engine", "uploads", "small", "open"

ROUTES: Final = {
    # Ours.
    "/seedgrid/follow": OPEN,
    "/seedgrid/download/selected.zip": FILE_WORK,
    "/seedgrid/download/{id}/{scope}.zip": FILE_WORK,
    "/seedgrid/export/{id}/{scope}.{kind}": FILE_WORK,
    "/seedgrid/thumbs/{id}.jpg": FILE_WORK,
    "/seedgrid/opening/{number}.jpg": SMALL,  # four files
    "/seedgrid/pictures/{id}.png": SMALL,
    "/seedgrid/assets/{name:path}": SMALL,
    "/seedgrid/assets/later.js": SMALL,
    "/seedgrid/assets/first-{language:str}.js": SMALL,
    "/seedgrid/assets/first.css": SMALL,
    "/healthz": SMALL,
    "/metrics": SMALL,
    "/seedgrid/cluster": SMALL,
    "/seedgrid/tree/{id}.png": FILE_WORK,
    "/seedgrid/tree/{id}.json": FILE_WORK,
    "/seedgrid/film/{id}.json": SMALL,
    "/seedgrid/film": ENGINE,
    "/seedgrid/models": FILE_WORK,
    "/seedgrid/models/{action}": SMALL,  # on a public page what its owner lists
    "/seedgrid/models/file/{name}": UPLOADS,  # of this machine only
    "/seedgrid/openapi.json": SMALL,
    "/seedgrid/api": SMALL,
    "/gradio_api/mcp": ENGINE,
    "/gradio_api/mcp/": ENGINE,
    # Gradio's: its events are in the other table.
    "/gradio_api/run/{api_name}": ENGINE,
    "/gradio_api/api/{api_name}": ENGINE,
    "/gradio_api/call/{api_name}": ENGINE,
    "/gradio_api/call/v2/{api_name}": ENGINE,
    "/gradio_api/queue/join": ENGINE,
    "/gradio_api/upload": UPLOADS,
    "/gradio_api/queue/data": OPEN,
    "/gradio_api/heartbeat/{session_hash}": OPEN,
    "/gradio_api/upload_progress": OPEN,
    "/gradio_api/call/{api_name}/{event_id}": OPEN,
    "/gradio_api/call/v2/{api_name}/{event_id}": OPEN,
    "/": SMALL,  # made once (PageHead)
    "/static/{path:path}": SMALL,  # packed once (Packed)
    "/assets/{path:path}": SMALL,
}
"""By what each address is bounded; what is not here answers from what it has in memory."""

IN_MEMORY: Final = {
    *("/config", "/favicon.ico", "/theme.css", "/robots.txt", "/manifest.json"),
    *(f"/gradio_api/{name}" for name in ("info", "openapi.json", "app_id", "startup-events")),
    *(f"/gradio_api/{name}" for name in ("theme.css", "cancel", "reset")),
}

EVENTS: Final = {
    **dict.fromkeys(("on_load", "on_arrive", "on_generate", "on_click", "on_again"), ENGINE),
    **dict.fromkeys(("on_verify", "grid", "refine", "verify"), ENGINE),
    "on_portable": ENGINE,  # one for each model, whoever asks
    "on_drop": FILE_WORK,
    "recipe": FILE_WORK,
    **dict.fromkeys(("on_back", "on_go", "on_stop", "on_pick", "on_favourite", "on_note"), SMALL),
    **dict.fromkeys(("on_turbo", "on_model", "on_advise", "on_choose", "on_folder"), SMALL),
    **dict.fromkeys(("on_search", "on_open", "on_trash", "on_mark", "on_empty"), SMALL),
    "on_example": SMALL,  # four files
}
"""By what each event is bounded: small ones read a page of the visitor's own library at most."""


_PAGE: Final = """
import json, sys
from gradio.routes import App
from seedgrid.studio import Studio
from seedgrid.testing.fake import FakeBackend
from seedgrid.web import launch
from seedgrid.web.page import build_app, make_answers

answers = make_answers(Studio(library=sys.argv[1], backend=FakeBackend()))
demo = build_app(answers)
options = launch.launch_options(answers, language=None, host="127.0.0.1")
app = App.create_app(demo, app_kwargs=options["app_kwargs"])
paths = []
for route in app.routes:
    inner = getattr(getattr(route, "original_router", None), "routes", [route])
    paths += [each.path for each in inner]
events = [each.fn.__name__ for each in demo.fns.values() if each.fn is not None]
print(json.dumps([paths, events]))
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], set[str]]:
    """The addresses and the events of the page; in a child: Gradio leaves event loops open."""
    command = [sys.executable, "-W", "ignore", "-c", _PAGE, str(tmp_path_factory.mktemp("library"))]
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths, events = json.loads(told.splitlines()[-1])
    return set(paths), set(events)


def test_every_address_says_by_what_it_is_bounded(page: tuple[set[str], set[str]]) -> None:
    """A new one, ours or Gradio's, has no place in the table: think of a stranger first."""
    found = {path if path == "/" else path.rstrip("/") for path in page[0]}
    known = {path if path == "/" else path.rstrip("/") for path in ROUTES}
    there = {each for each in found if any(is_listed(way, each) for way in ("GET", "POST", "PUT"))}
    assert there - known - IN_MEMORY == set()
    assert known - found == set()


def test_every_event_says_by_what_it_is_bounded(page: tuple[set[str], set[str]]) -> None:
    """As the addresses: nothing is wired that nobody thought of."""
    assert page[1] == EVENTS.keys()


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> tuple[Library, tuple[Entry, ...]]:
    library = Library(tmp_path_factory.mktemp("work"))
    same = {"work_id": new_id(), "round_id": new_id()}
    lineages = [make_lineage(cell=n, **same) for n in range(6)]
    added = [library.add(make_picture(seed=n, lineage=each)) for n, each in enumerate(lineages)]
    return library, tuple(added)


class _Libraries(OneLibrary):
    def __init__(self, library: Library) -> None:
        self._studio = type("Holder", (), {"library": library})()  # type: ignore[assignment]


def client_of(library: Library, bounds: FileWorkBounds = FileWorkBounds()) -> TestClient:  # noqa: B008
    app = Starlette(routes=download_routes(_Libraries(library), FileWork(bounds)))
    return TestClient(app)


def test_a_download_goes_out_piece_by_piece_and_whole(
    tmp_path: Path, work: tuple[Library, tuple[Entry, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No piece is larger than it may be, and every picture arrives byte for byte."""
    library, entries = work
    large = replace(entries[0], path=tmp_path / "large.png")
    large.path.write_bytes(bytes(3_000_000))
    monkeypatch.setattr(pictures, "_PIECE_BYTES", 50_000)
    assert max(map(len, pictures.packed_pictures([large]))) < 200_000
    with client_of(library) as client:
        answer = client.get(f"/seedgrid/download/{entries[0].id}/work.zip")
    assert answer.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        found = sorted(archive.read(name) for name in archive.namelist())
    assert found == sorted(entry.path.read_bytes() for entry in entries)


def test_a_picture_that_goes_meanwhile_takes_no_other_with_it(
    tmp_path: Path,
) -> None:
    """Deleting and downloading at once leaves a good archive of what is there."""
    library = Library(tmp_path)
    first, second = (library.add(make_picture(seed=n)) for n in (0, 1))
    pieces = pictures.packed_pictures([first, second])
    begun = next(pieces)
    second.path.unlink()
    with zipfile.ZipFile(io.BytesIO(begun + b"".join(pieces))) as archive:
        assert archive.testzip() is None
        assert len(archive.namelist()) == 1


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
    monkeypatch.setattr(downloads, "MAX_PICTURES", 3)
    with client_of(library) as client:
        answer = client.get(address)
        assert (answer.status_code, "select fewer" in answer.text) == (413, True)


def test_the_slides_of_a_work_are_counted_too(work: tuple[Library, tuple[Entry, ...]]) -> None:
    """A thousand pictures with long words are megabytes, made for whoever asked, at any rate."""
    library, entries = work
    spent = FileWork(FileWorkBounds(address=0))
    routes = looking_routes(cast("Studio", None), _Libraries(library), spent)
    with TestClient(Starlette(routes=routes)) as client:
        assert client.get(f"/seedgrid/tree/{entries[0].id}.json").status_code == 429


def test_one_work_is_looked_up_once_however_often_it_is_named(
    work: tuple[Library, tuple[Entry, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred names of one work once meant reading it two hundred times."""
    library, entries = work
    reads = []
    read = library.work
    monkeypatch.setattr(library, "work", lambda work_id: (reads.append(work_id), read(work_id))[1])
    names = ",".join(f"{entry.id}*" for entry in entries * 20)
    with client_of(library) as client:
        assert client.get(f"/seedgrid/download/selected.zip?ids={names}").status_code == 200
    assert len(reads) == 1


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

    monkeypatch.setattr(downloads, "packed_pictures", held)
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


def test_what_took_long_counts_for_its_address(
    work: tuple[Library, tuple[Entry, ...]],
) -> None:
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
    named = plain.recipe.replace(loras=(Lora(id=found.id, weights_sha256=found.sha256),))
    with Library(tmp_path / "library") as library:
        entry = library.add(replace(plain, recipe=named))
        path = f"/seedgrid/export/{entry.id}/picture.zip"
        with client_of(library, FileWorkBounds(download_bytes=20_000)) as client:
            assert client.get(path).status_code == 413
        with client_of(library) as client:
            assert client.get(path).status_code == 200
            monkeypatch.setenv("SEEDGRID_ALLOWED_MODELS", "bundled")
            refused = client.get(path)
    assert (refused.status_code, "not offered" in refused.text) == (409, True)


def test_a_file_field_leaves_nothing_behind(tmp_path: Path) -> None:
    """Gradio once left an empty file for each time that an upload was named."""
    file = tmp_path / "a.png"
    file.write_bytes(b"1")
    named = [FileData(path=str(file))] * 50
    many, one = (
        type("Field", (), {"file_count": count, "preprocess": None})()
        for count in ("multiple", "single")
    )
    assert paths_only(many).preprocess(ListFiles(root=named)) == [str(file)]
    assert paths_only(one).preprocess(named[0]) == str(file)
    assert paths_only(one).preprocess(None) is None


def test_one_address_has_so_many_requests_open() -> None:
    """A stream that is left open counts until it is closed; other addresses go on."""
    may_go, begun = threading.Event(), threading.Event()

    async def held(_: Request) -> Response:
        begun.set()
        while not may_go.is_set():
            await anyio.sleep(0.01)
        return PlainTextResponse("there")

    app = Starlette(routes=[Route("/held", held)], middleware=[Middleware(OpenRequests, limit=1)])
    with TestClient(app) as client, ThreadPoolExecutor(1) as pool:
        going = pool.submit(client.get, "/held")
        assert begun.wait(60)
        assert client.get("/").status_code == 429
        may_go.set()
        assert going.result().status_code == 200
        assert client.get("/").status_code == 404
