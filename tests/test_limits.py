"""What is refused at the door: bodies too large, without a length, and uploads without room."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from seedgrid.web import launch
from seedgrid.web.server.calls import MAX_BODY_BYTES, BoundedBody, delete_old_files

UPLOADS = ("/gradio_api/upload", "/seedgrid/drop")


async def echo(request: Request) -> Response:
    """Answer with how many bytes came."""
    return PlainTextResponse(str(len(await request.body())))


def client(
    folder: Path, *, upload: float | None = None, together: float | None = None
) -> TestClient:
    app = Starlette(routes=[Route("/{path:path}", echo, methods=["GET", "POST", "PUT"])])
    return TestClient(BoundedBody(app, folder, upload, together))


@pytest.mark.parametrize(
    "path", ["/seedgrid/do/generate", "/gradio_api/queue/join", "/seedgrid/drop/x", "/x/upload"]
)
def test_only_uploads_have_large_bodies(tmp_path: Path, path: str) -> None:
    """Sixty megabytes once passed by every path that ends in /upload and became gigabytes."""
    guarded = client(tmp_path, upload=1e6)
    assert guarded.post(path, content=b"1" * (MAX_BODY_BYTES + 1)).status_code == 413
    assert guarded.post(path, content=b"1" * MAX_BODY_BYTES).text == str(MAX_BODY_BYTES)


@pytest.mark.parametrize("path", UPLOADS)
def test_an_upload_is_bounded(tmp_path: Path, path: str) -> None:
    """One by its own size, all by what lies on the disk."""
    guarded = client(tmp_path, upload=1e6, together=2e6)
    assert guarded.post(path, content=b"1" * 900_000).status_code == 200
    assert guarded.post(path, content=b"1" * 1_100_000).status_code == 413
    (tmp_path / "lying.png").write_bytes(bytes(1_500_000))
    code = 507 if path == UPLOADS[0] else 200  # What is dropped is kept nowhere.
    assert guarded.post(path, content=b"1" * 900_000).status_code == code


def test_a_body_says_how_long_it_is(tmp_path: Path) -> None:
    """What comes in pieces without a length may have no end."""
    pieces = (part for part in (b"1", b"2"))
    answer = client(tmp_path).post("/seedgrid/do/load", content=pieces)
    assert answer.status_code == 411


def test_what_lies_for_an_hour_goes(tmp_path: Path) -> None:
    """An upload that nobody took in, and a copy that nobody fetched; newer ones stay."""
    old, new = tmp_path / "a" / "old.png", tmp_path / "b" / "new.png"
    for path in (old, new):
        path.parent.mkdir()
        path.write_bytes(bytes(100_000))
    os.utime(old, (time.time() - 4000,) * 2)
    assert delete_old_files(tmp_path, 3600.0) == 100_000
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [new]
    assert not old.parent.exists()


def test_other_programs_files_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody's `GRADIO_TEMP_DIR` may be any folder of theirs."""
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    assert launch._uploads_folder().parent == tmp_path
    assert Path(os.environ["GRADIO_TEMP_DIR"]).parent == tmp_path
