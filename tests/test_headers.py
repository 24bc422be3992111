"""What browsers are told to refuse, and what is not there; the page is made once."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import anyio
import brotli
import httpx
import pytest
from serving import Gate, serve
from starlette.responses import HTMLResponse, Response
from starlette.types import Message, Receive, Scope, Send

from seedgrid.storage.assets import assets_folder
from seedgrid.web.server.headers import SPACE_FRAMES, SecurityHeaders, page_policy
from seedgrid.web.server.packed import Packed
from seedgrid.web.server.page_head import PageHead


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve(tmp_path_factory.mktemp("library")) as address:
        yield address


def test_every_answer_is_hardened(address: str) -> None:
    """The page names its own scripts; nothing else the server sends may run any."""
    for path in (
        "",
        "config",
        "theme.css",
        "seedgrid/assets/base.js",
        "gradio_api/info",
        "nowhere",
    ):
        headers = httpx.get(address + path).headers
        assert headers["x-content-type-options"] == "nosniff", path
        assert headers["referrer-policy"] == "same-origin", path
        assert headers["x-frame-options"] == "SAMEORIGIN", path
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy, path
        assert ("script-src" in policy) == (path == ""), path


def test_the_policy_names_every_script_of_the_page(address: str) -> None:
    """Each by the hash of its text; `unsafe-inline` is for styles only."""
    answer = httpx.get(address)
    policy = answer.headers["content-security-policy"]
    scripts = re.findall(r"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", answer.text, re.DOTALL)
    assert len(scripts) > 2
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert "'unsafe-inline'" not in directives["script-src"]
    assert directives["frame-ancestors"] == "'self'"
    assert directives["object-src"] == "'none'"


def test_a_space_may_be_shown_by_hugging_face_only() -> None:
    """The page stands in a frame there."""
    assert page_policy(b"", frames=SPACE_FRAMES).endswith(f"frame-ancestors 'self' {SPACE_FRAMES}")
    headers = dict(_get(SecurityHeaders(_page, frames=SPACE_FRAMES), "/x")[0])
    assert b"x-frame-options" not in headers


renders = 0


async def _page(scope: Scope, receive: Receive, send: Send) -> None:
    global renders
    renders += 1
    await anyio.sleep(0.01)
    await HTMLResponse("<head></head><script>1</script>")(scope, receive, send)


def _get(app: object, path: str, host: bytes = b"a") -> tuple[list[tuple[bytes, bytes]], bytes]:
    return anyio.run(_got, app, path, host)


async def _got(
    app: object, path: str, host: bytes, encoding: bytes = b""
) -> tuple[list[tuple[bytes, bytes]], bytes]:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "scheme": "http", "query_string": b""}
    headers = [(b"host", host), (b"accept-encoding", encoding)]
    await app(scope | {"headers": headers}, receive, send)  # type: ignore[operator]
    return sent[0]["headers"], sent[1]["body"]


def test_the_page_is_made_once_for_all_who_come_at_once() -> None:
    """A hundred first visitors waited seconds for Gradio to render it a hundred times."""
    global renders
    renders = 0
    page = PageHead(_page, head="<meta>")

    async def crowd() -> list[bytes]:
        answers: list[bytes] = []

        async def come(number: int) -> None:
            answers.append((await _got(page, "/", b"a" if number % 2 else b"b"))[1])

        async with anyio.create_task_group() as group:
            for number in range(100):
                group.start_soon(come, number)
        return answers

    answers = anyio.run(crowd)
    assert set(answers) == {b"<head>\n<meta></head><script>1</script>"}
    assert renders == 2, "one for each name under which it was asked for"


def test_forged_names_make_nobodys_page_forgotten() -> None:
    """A client that sent another X-Forwarded-Host each time had the page made for everybody."""
    global renders
    page = PageHead(_page, head="<meta>")
    for _ in range(2):
        _get(page, "/", b"honest")
    for number in range(50):
        _get(page, "/", b"forged-%d" % number)
    renders = 0
    _get(page, "/", b"honest")
    assert renders == 0


def test_who_knows_a_page_waits_for_nobody_who_makes_another() -> None:
    """All were kept waiting while a page was made for one more name."""
    may_end = anyio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        if dict(scope["headers"])[b"host"] == b"slow":
            await may_end.wait()
        await _page(scope, receive, send)

    async def visit() -> None:
        page = PageHead(slow, head="<meta>")
        await _got(page, "/", b"known")
        async with anyio.create_task_group() as group:
            group.start_soon(_got, page, "/", b"slow")
            await anyio.wait_all_tasks_blocked()
            with anyio.fail_after(60):
                await _got(page, "/", b"known")
            may_end.set()

    anyio.run(visit)


def test_the_page_is_the_same_for_every_query(address: str) -> None:
    """What a link says is read by the browser and sent to the page's own events."""
    with ThreadPoolExecutor(8) as pool:
        paths = ["", "?__lang=ko", "?prompt=a+fox&seeds=1", "?deep_link=x"] * 4
        pages = set(pool.map(lambda path: httpx.get(address + path).text, paths))
    assert len(pages) == 1


def test_nobody_is_believed_about_where_they_come_from(tmp_path: Path) -> None:
    """A forged X-Forwarded-For makes no new address of a peer that is no trusted proxy."""
    public = {"SEEDGRID_MAX_RUNS_PER_ADDRESS": "2"}
    gate = Gate(tmp_path / "library")
    with serve(gate.library, public=public) as address, ThreadPoolExecutor(3) as pool:
        url = f"{address}gradio_api/call/v2/grid"
        body = {"prompt": "a fox that is held", "steps": 1, "size": "64x64"}
        forged = [{"X-Forwarded-For": f"198.51.100.{number}"} for number in range(3)]
        events = [httpx.post(url, json=body, headers=each).json()["event_id"] for each in forged]
        answers = [
            pool.submit(lambda event=event: httpx.get(f"{url}/{event}", timeout=60.0).text)
            for event in events
        ]
        # They start on threads of their own: any of the three may be the one who is last.
        refused = next(as_completed(answers)).result()
        gate.open()
        said = [answer.result() for answer in answers]
    assert "from your network" in refused
    assert sum("from your network" in each for each in said) == 1


async def _script(scope: Scope, receive: Receive, send: Send) -> None:
    global renders
    renders += 1
    await Response("let a = 1;" * 100, media_type="text/javascript")(scope, receive, send)


def test_a_script_is_packed_once() -> None:
    """Gradio packed two megabytes anew for every first visitor, before it answered anybody else."""
    global renders
    renders = 0
    packed = Packed(_script)
    plain = [_get(packed, "/assets/index-1.js") for _ in range(5)]
    assert {body for _, body in plain} == {b"let a = 1;" * 100}
    short = anyio.run(_got, packed, "/assets/index-1.js", b"a", b"gzip, br")
    assert brotli.decompress(short[1]) == b"let a = 1;" * 100
    assert dict(short[0])[b"content-encoding"] == b"br"
    assert renders == 1
    _get(packed, "/seedgrid/pictures/1.png")
    assert renders == 2


@pytest.mark.parametrize(
    "path", ["/assets/./index-1.js", "/assets//index-1.js", "/assets/x/../index-1.js"]
)
def test_a_script_has_one_name(path: str) -> None:
    """Each other name of it was packed and kept, until there was no room for anybody's scripts."""
    global renders
    packed, renders = Packed(_script), 0
    assert _get(packed, path)[1] == b"there is no such file"
    assert renders == 0


def test_a_part_of_a_script_is_the_whole(address: str) -> None:
    """For a Range Gradio packed the script anew, on the one thread that answers everybody."""
    url = f"{address}seedgrid/assets/base.js"
    whole, part = httpx.get(url), httpx.get(url, headers={"Range": "bytes=5-90"})
    assert (part.status_code, part.content) == (200, whole.content)


def test_a_number_of_many_digits_is_no_picture(address: str) -> None:
    """Python reads no number of 5,000 digits: HTTP 500 and a traceback."""
    assert httpx.get(f"{address}seedgrid/opening/{'1' * 5000}.jpg").status_code == 404
    assert httpx.get(f"{address}seedgrid/opening/1.jpg").status_code == 200


def test_what_is_packed_is_what_was_there(address: str) -> None:
    """A browser gets the very script, in a fraction of its size."""
    url = f"{address}seedgrid/assets/base.js"
    script = Path(assets_folder() / "base.js").read_bytes()
    for encoding in ("br", "gzip", "identity"):
        answer = httpx.get(url, headers={"Accept-Encoding": encoding})
        assert answer.content == script
