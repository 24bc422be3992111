"""What is answered at all: the page's own routes under its own names, and no address is fetched."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from serving import listening, serve, serve_process
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from seedgrid.web.api import PARAMETERS
from seedgrid.web.server.app import Guard, SecurityHeaders
from seedgrid.web.server.calls import CheckedApiCalls, LogUnexpectedErrors, refuse_call


async def echo(request: Request) -> Response:
    """Answer with what came, as the framework would see it."""
    told = await request.json() if request.method == "POST" else None
    return JSONResponse(told, headers={"Access-Control-Allow-Origin": "*"})


def client(files: Path, host: str | None = None) -> TestClient:
    """A program that answers everything, behind the guard."""
    app = Starlette(routes=[Route("/{path:path}", echo, methods=["GET", "POST", "PUT"])])
    return TestClient(
        SecurityHeaders(Guard(CheckedApiCalls(app, files, PARAMETERS), files=files, host=host)),
        base_url="http://127.0.0.1",
    )


@pytest.mark.parametrize(
    "path",
    [
        "/gradio_api/file=http://127.0.0.1:9/x",
        "/gradio_api/file=http%3A%2F%2Fexample.com",
        "/gradio_api/file=//example.com/x",
        "/gradio_api/file=/etc/passwd",
        "/gradio_api/file/etc/passwd",
        "/gradio_api/proxy=http://example.com",
        "/gradio_api/custom_component/1/client/component/a%0aFORGED",
        "/gradio_api/run/predict",
        "/gradio_api/stream/1/1/1/playlist.m3u8",
        "/monitoring",
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
        {"path": "//example.com/x"},
        {"path": "\\\\example.com\\x"},
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
    path = tmp_path / "a.png"
    path.write_bytes(b"")
    file = {"path": str(path), "meta": {}, "url": "http://localhost/gradio_api/file=a.png"}
    answer = client(tmp_path).post("/gradio_api/queue/join", json={"data": [file, "a {fox}"]})
    assert answer.json() == {"data": [{"path": str(path), "meta": {}}, "a {fox}"]}


@pytest.mark.parametrize("place", ["/etc/passwd", "gone.png", "a\0.png", "a\nERROR: forged.png", 7])
def test_a_file_is_one_that_was_uploaded_here(tmp_path: Path, place: object) -> None:
    """Others ended in a traceback, which held what was sent, with its line ends and escapes."""
    answer = client(tmp_path).post("/gradio_api/call/v2/recipe", json={"picture": {"path": place}})
    assert answer.status_code == 400
    assert "uploaded" in answer.text


@pytest.mark.parametrize(
    ("path", "call", "status"),
    [
        ("call/v2/grid", {"promt": "x"}, 422),
        ("call/grid", {"data": ["x"]}, 422),
        ("call/paint", {"data": []}, 404),
        ("call/v2/x\nINFO: forged", {}, 404),
    ],
)
def test_a_wrong_call_is_told_what_an_endpoint_takes(
    tmp_path: Path, path: str, call: object, status: int
) -> None:
    """A typing error was an error of the server's: no reason, and sixty lines of its log."""
    answer = client(tmp_path).post(f"/gradio_api/{quote(path)}", json=call)
    assert (answer.status_code, "takes" in answer.text) == (status, True)


def test_a_call_has_a_depth(tmp_path: Path) -> None:
    """Five hundred lists in each other ended in the framework's own recursion."""
    deep = json.loads("[" * 500 + "]" * 500)
    answer = client(tmp_path).post("/gradio_api/call/v2/recipe", json={"picture": deep})
    assert answer.status_code == 400


def test_what_fails_all_the_same_is_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """A name in an address wrote lines of its own, with colours, into the log."""

    async def fail(request: Request) -> Response:
        raise KeyError(request.url.path)

    routes = [Route("/gradio_api/call/{name}", fail)]
    app = LogUnexpectedErrors(Starlette(routes=routes, exception_handlers={Exception: refuse_call}))
    answer = TestClient(app).get("/gradio_api/call/x%0aINFO: FORGED%1b[31m")
    assert (answer.status_code, "info" in answer.text) == (400, True)
    (line,) = [record.getMessage() for record in caplog.records if "FORGED" in record.getMessage()]
    assert "\n" not in line
    assert "\x1b" not in line


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:7860", 200),
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
    for headers in (
        *({"Origin": each} for each in ("https://evil.example", "http://[")),
        {"Sec-Fetch-Site": "cross-site"},
    ):
        refused = client(tmp_path).post("/gradio_api/queue/join", json={}, headers=headers)
        assert refused.status_code == 403


def test_the_running_page_asks_no_other_server(tmp_path: Path) -> None:
    """Whatever a caller names, on every address that takes data; no line of its log is forged.

    Nor does another site read it: Gradio's own layer stood in front of the guard.
    """
    log = tmp_path / "log"
    with listening() as (place, heard), serve_process(tmp_path / "library", log=log) as (page, _):
        address = f"{place}/x.png"
        for path in (f"file={address}", f"proxy={address}", "custom_component/a%0aFORGED"):
            assert httpx.get(f"{page}gradio_api/{path}").status_code == 404
        assert httpx.get(f"{page}seedgrid/pictures/a%0aFORGED.png").status_code == 404
        file = {"path": address, "url": address, "meta": {"_type": "gradio.FileData"}}
        body = {"data": [file], "fn_index": 0, "session_hash": "a"}
        for path in ("queue/join", "call/recipe"):
            assert httpx.post(f"{page}gradio_api/{path}", json=body).status_code == 400
        answer = httpx.post(f"{page}gradio_api/call/v2/recipe", json={"picture": file})
        assert answer.status_code == 400
        for method, path in (("GET", "gradio_api/info"), ("OPTIONS", "seedgrid/do/load")):
            asked = {"Access-Control-Request-Method": "POST"} if method == "OPTIONS" else {}
            for host in ("192.168.1.5:7860", "localhost:7860"):
                headers = {"Host": host, "Origin": "http://evil.example"} | asked
                answer = httpx.request(method, f"{page}{path}", headers=headers)
                assert answer.status_code == (403 if asked else 200)
                assert not [name for name in answer.headers if name.startswith("access-control")]
    assert heard == []
    assert "\nFORGED" not in log.read_text()


@pytest.mark.sweep
def test_a_model_is_asked_for_by_its_name_and_no_path_is_told_apart(tmp_path: Path) -> None:
    """Anybody in a home's network could learn what lies on its disk."""
    with serve(tmp_path / "library", real=True) as page:
        keys = {
            httpx.post(f"{page}seedgrid/do/offer", json={"model": model}).json()["status"]["key"]
            for model in ("/etc", "/nonexistent", "../main", "tests", r"\\evil\share", "C:/x")
        }
    assert keys == {"error_model_not_offered"}
