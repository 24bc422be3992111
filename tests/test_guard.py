"""What is answered at all: the page's own routes under its own names, and no address is fetched."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from serving import serve
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from seedgrid.web.server.guard import Guard, NoAddresses


async def echo(request: Request) -> Response:
    """Answer with what came, as the framework would see it."""
    told = await request.json() if request.method == "POST" else None
    return JSONResponse(told, headers={"Access-Control-Allow-Origin": "*"})


def client(files: Path, host: str | None = None) -> TestClient:
    """A program that answers everything, behind the guard."""
    app = Starlette(routes=[Route("/{path:path}", echo, methods=["GET", "POST", "PUT"])])
    return TestClient(Guard(NoAddresses(app), files=files, host=host), base_url="http://127.0.0.1")


@pytest.mark.parametrize(
    "path",
    [
        "/gradio_api/file=http://127.0.0.1:9/x",
        "/gradio_api/file=https://example.com/x",
        "/gradio_api/file=http%3A%2F%2Fexample.com",
        "/gradio_api/file=//example.com/x",
        "/gradio_api/file=/etc/passwd",
        "/gradio_api/file/etc/passwd",
        "/gradio_api/proxy=http://example.com",
        "/gradio_api/custom_component/1/client/component/a%0aFORGED",
        "/gradio_api/run/predict",
        "/gradio_api/dev/reload",
        "/gradio_api/deep_link",
        "/gradio_api/stream/1/1/1/playlist.m3u8",
        "/monitoring",
        "/login",
    ],
)
def test_what_no_page_or_program_needs_is_not_there(tmp_path: Path, path: str) -> None:
    """Gradio fetched `file=http…` for whoever asked, without limits of size or time."""
    assert client(tmp_path).get(path).status_code == 404


def test_a_file_of_the_page_is_there_and_a_way_out_of_its_folder_is_not(tmp_path: Path) -> None:
    """Copies for programs lie in one folder."""
    files = tmp_path / "files"
    files.mkdir()
    assert client(files).get(f"/gradio_api/file={files}/a/b.png").status_code == 200
    assert client(files).get(f"/gradio_api/file={files}/../b.png").status_code == 404


@pytest.mark.parametrize(
    "value",
    [
        {"path": "http://example.com/x", "meta": {"_type": "gradio.FileData"}},
        {"path": " HTTP://example.com/x"},
        {"path": "//example.com/x"},
        {"path": "\\\\example.com\\x"},
        {"path": "ftp://example.com"},
        {"url": "http://example.com/x"},
        [[{"deep": [{"path": "http://example.com/x"}]}]],
        json.dumps({"path": "http://example.com/x"}),
        json.dumps([json.dumps({"url": "file:///etc/passwd"})]),
    ],
    ids=str,
)
@pytest.mark.parametrize("path", ["queue/join", "call/grid", "call/v2/grid"])
def test_no_address_is_fetched_for_a_caller(tmp_path: Path, path: str, value: object) -> None:
    """Gradio downloaded it before a line of ours ran: 1.5 GB on the disk for 1.4 MB sent."""
    answer = client(tmp_path).post(f"/gradio_api/{path}", json={"data": [value]})
    assert answer.status_code == 400


def test_no_address_is_fetched_for_an_agent(tmp_path: Path) -> None:
    """Gradio's tools take any text for a file that begins like an address."""
    told = {"method": "tools/call", "params": {"name": "recipe", "arguments": {"picture": ""}}}
    for picture, status in (("http://example.com/x", 400), ("a.png", 200), ("data:,x", 200)):
        told["params"]["arguments"]["picture"] = picture  # type: ignore[index]
        assert client(tmp_path).post("/gradio_api/mcp/", json=told).status_code == status


def test_an_uploaded_file_keeps_its_path_and_loses_its_address(tmp_path: Path) -> None:
    """The address beside it is the page's own, and nobody needs it."""
    file = {"path": "a.png", "meta": {}, "url": "http://localhost/gradio_api/file=a.png"}
    answer = client(tmp_path).post("/gradio_api/queue/join", json={"data": [file, "a {fox}"]})
    assert answer.json() == {"data": [{"path": "a.png", "meta": {}}, "a {fox}"]}


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:7860", 200),
        ("192.168.1.5", 200),
        ("[::1]:7860", 200),
        ("localhost:1", 200),
        ("studio.lan", 200),
        ("atelier.local", 200),
        ("evil.example", 400),
        ("127.0.0.1.evil.example", 400),
        ("x.hf.space", 400),
        ("", 400),
    ],
)
def test_a_page_is_asked_under_its_own_names_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, status: int
) -> None:
    """A name that somebody else points here (DNS rebinding) is refused on every address."""
    monkeypatch.setenv("SEEDGRID_HOSTS", "studio.lan, other.lan")
    answer = client(tmp_path, host="atelier.local").get("/", headers={"Host": host})
    assert answer.status_code == status


def test_other_sites_read_nothing_and_change_nothing(tmp_path: Path) -> None:
    """No answer says that another origin may read it."""
    answer = client(tmp_path).get("/", headers={"Origin": "https://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        refused = client(tmp_path).post("/gradio_api/queue/join", json={}, headers=headers)
        assert refused.status_code == 403


@pytest.fixture(scope="module")
def listener() -> Iterator[tuple[int, list[bytes]]]:
    """A server that notes who asks it."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def listen() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                heard.append(b"somebody")
                connection.close()

        threading.Thread(target=listen, daemon=True).start()
        yield server.getsockname()[1], heard


def test_the_running_page_asks_no_other_server(
    tmp_path: Path, listener: tuple[int, list[bytes]]
) -> None:
    """Whatever a caller names, on every address that takes data."""
    port, heard = listener
    address = f"http://127.0.0.1:{port}/x.png"
    file = {"path": address, "url": address, "meta": {"_type": "gradio.FileData"}}
    with serve(tmp_path / "library") as page:
        for path in (f"file={address}", f"proxy={address}"):
            assert httpx.get(f"{page}gradio_api/{path}").status_code == 404
        body = {"data": [file], "fn_index": 0, "session_hash": "a"}
        for path in ("queue/join", "call/recipe"):
            assert httpx.post(f"{page}gradio_api/{path}", json=body).status_code == 400
        told = {"picture": file}
        answer = httpx.post(f"{page}gradio_api/call/v2/recipe", json=told)
        assert answer.status_code == 400
    assert heard == []
