"""Uploads are bounded by request, by address and together, and do not stay."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import anyio
import httpx
import pytest
from gradio_client import Client, handle_file
from serving import serve
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from seedgrid.web.server.limits import UPLOAD_ROUTE
from seedgrid.web.server.uploads import (
    HOUR_S,
    LEAST_BYTES,
    PRESSED_S,
    Copies,
    UploadBounds,
    UploadGate,
    file_arrives,
    sweep,
)

KB = 1000


class Gate:
    """The gate before a server that writes every upload into a file."""

    def __init__(self, folder: Path, **bounds: float) -> None:
        self.now_s = 10 * HOUR_S
        self.folder = folder
        self.num_files = 1
        self._gate = UploadGate(self._write, folder, UploadBounds(**bounds), lambda: self.now_s)

    async def _write(self, scope: Scope, receive: Receive, send: Send) -> None:
        for _ in range(self.num_files):
            file_arrives()
        size = int(dict(scope["headers"])[b"content-length"])
        path = self.folder / f"{len(list(self.folder.iterdir()))}.png"
        path.write_bytes(b"0" * size)
        os.utime(path, (self.now_s, self.now_s))
        await PlainTextResponse("there")(scope, receive, send)

    def upload(self, size: int | None, address: str = "192.0.2.7") -> int:
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        headers = [] if size is None else [(b"content-length", str(size).encode())]
        scope = {"type": "http", "method": "POST", "path": UPLOAD_ROUTE, "client": (address, 1)}
        anyio.run(self._gate, scope | {"headers": headers}, receive, send)
        headers = dict(sent[0]["headers"])
        assert (b"retry-after" in headers) == (sent[0]["status"] in (429, 507))
        return int(sent[0]["status"])


def test_one_upload_is_bounded(tmp_path: Path) -> None:
    """By what it says of itself: the server reads no more than that."""
    gate = Gate(tmp_path, request=100 * KB)
    assert [gate.upload(size) for size in (100 * KB, 101 * KB, None)] == [200, 413, 411]


def test_one_address_is_bounded_by_the_hour(tmp_path: Path) -> None:
    """Others go on, and so does the same one an hour later; refusals do not count."""
    gate = Gate(tmp_path, address=250 * KB)
    assert [gate.upload(100 * KB) for _ in range(4)] == [200, 200, 429, 429]
    assert gate.upload(100 * KB, "192.0.2.8") == 200
    assert gate.upload(20 * KB) == 200
    gate.now_s += HOUR_S + 1
    assert gate.upload(100 * KB) == 200


def test_small_files_count_for_what_they_take(tmp_path: Path) -> None:
    """A byte takes a block, and one for its folder; nothing at all is an upload, too."""
    gate = Gate(tmp_path, address=10 * LEAST_BYTES)
    gate.num_files = 8
    assert [gate.upload(1) for _ in range(3)] == [200, 200, 429]
    assert [gate.upload(0, "192.0.2.8") for _ in range(3)] == [200, 200, 429]


def test_all_uploads_together_are_bounded(tmp_path: Path) -> None:
    """By what lies on the disk; what nobody took in for an hour makes room."""
    gate = Gate(tmp_path, together=250 * KB)
    assert [gate.upload(100 * KB, f"192.0.2.{n}") for n in range(4)] == [200, 200, 507, 507]
    next(tmp_path.iterdir()).unlink()
    assert gate.upload(100 * KB) == 200
    gate.now_s += HOUR_S + 1
    assert gate.upload(100 * KB) == 200
    assert len(list(tmp_path.iterdir())) == 1


def test_what_was_left_lying_makes_room_for_who_needs_it(tmp_path: Path) -> None:
    """Four addresses once kept everybody from uploading anything for an hour."""
    gate = Gate(tmp_path, together=250 * KB)
    assert [gate.upload(100 * KB, f"192.0.2.{n}") for n in range(3)] == [200, 200, 507]
    gate.now_s += PRESSED_S + 1
    assert [gate.upload(size * KB) for size in (50, 100)] == [200, 200]
    assert len(list(tmp_path.iterdir())) == 2
    assert gate.upload(150 * KB) == 507


def test_copies_for_programs_leave_room_for_uploads(tmp_path: Path) -> None:
    """They lay there for a day, and whoever painted much let nobody upload any more."""
    copies = Copies(3 * LEAST_BYTES)
    paths = [tmp_path / str(number) / "picture.png" for number in range(5)]
    for path in [*paths, paths[2]]:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
        copies.add(path)
    assert [path.exists() for path in paths] == [False, False, True, True, True]
    assert [path.parent.exists() for path in paths] == [False, False, True, True, True]


def test_the_sweep_leaves_what_is_new(tmp_path: Path) -> None:
    """Old files go, and the folders that they leave empty."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.png").write_bytes(b"12345")
    for path in (tmp_path / "old" / "a.png", tmp_path / "old"):
        os.utime(path, (0, 0))
    now_s = (tmp_path / "new").stat().st_mtime
    assert sweep(tmp_path, now_s) == LEAST_BYTES
    os.utime(tmp_path / "old", (0, 0))
    assert sweep(tmp_path, now_s) == LEAST_BYTES
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


@pytest.fixture
def uploads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "uploads"
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(folder))
    monkeypatch.setenv("SEEDGRID_MAX_UPLOAD_MB", "1")
    return folder


def test_an_upload_is_deleted_when_it_was_read(uploads: Path, tmp_path: Path) -> None:
    """The API looks into a file once; nothing of it stays, and of a thousand little is let in."""
    bounds = {"SEEDGRID_MAX_UPLOADS_MB_PER_ADDRESS": "0.5"}
    with serve(tmp_path / "library", public=bounds) as address:
        client = Client(address, verbose=False)
        pictures, _ = client.predict("a red fox", "1", steps="1", api_name="/grid")
        mine = tmp_path / "mine.png"
        mine.write_bytes(Path(pictures[0]["image"]).read_bytes())
        assert client.predict(handle_file(str(mine)), api_name="/verify")["verdict"] == "identical"
        client.predict(handle_file(str(mine)), api_name="/recipe")
        assert list(uploads.rglob("mine.png")) == []
        many = [("files", (f"{n}.txt", b"%d" % n)) for n in range(100)]
        assert httpx.post(f"{address}gradio_api/upload", files=many).status_code == 200
        small = {"files": ("x.txt", b"x")}
        assert httpx.post(f"{address}gradio_api/upload", files=small).status_code == 429
        large = {"files": ("x.png", b"0" * 1_100_000, "image/png")}
        assert httpx.post(f"{address}gradio_api/upload", files=large).status_code == 413
