"""What is refused at the door: bodies too large, too deep, too full, whatever the path says."""

from __future__ import annotations

import json

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from seedgrid.web.server.json_bounds import MAX_DEPTH, MAX_VALUES, problem
from seedgrid.web.server.limits import MAX_BODY_BYTES, UPLOAD_ROUTE, BoundedBody

LARGE = b"[" + b"{}," * 1_000_000 + b"{}]"


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with how many bytes came."""
    total = 0
    async for part in Request(scope, receive).stream():
        total += len(part)
    await PlainTextResponse(str(total))(scope, receive, send)


def post(path: str, body: bytes, *, root_path: str = "") -> tuple[int, str]:
    """Send a body in pieces of 64 KB through the guard; return status and answer."""
    pieces = [body[i : i + 65536] for i in range(0, len(body), 65536)] or [b""]
    sent: list[Message] = []

    async def receive() -> Message:
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"content-length", str(len(body)).encode())]
    scope = {"type": "http", "method": "POST", "path": path, "root_path": root_path}
    anyio.run(BoundedBody(echo), scope | {"headers": headers}, receive, send)
    return sent[0]["status"], sent[1]["body"].decode()


@pytest.mark.parametrize(
    "path",
    [
        "/upload",
        "/upload/",
        "/gradio_api/run/upload",
        "/gradio_api/call/upload",
        "/gradio_api/call/v2/upload",
        "/gradio_api/api/upload",
        "/gradio_api/upload/",
        "/gradio_api//upload",
        "//gradio_api/upload",
        "/gradio_api/upload/upload",
        "/run/upload",
        "/seedgrid/upload",
        "/gradio_api/%75pload",
        "/x/gradio_api/upload",
        "/gradio_api/queue/join",
    ],
)
def test_only_the_upload_route_takes_a_large_body(path: str) -> None:
    """Sixty megabytes once passed by every path that ends in /upload and became gigabytes."""
    assert post(path, LARGE)[0] == 413


@pytest.mark.parametrize(
    ("path", "root_path"),
    [(UPLOAD_ROUTE, ""), (f"/art{UPLOAD_ROUTE}", "/art"), (UPLOAD_ROUTE, "/art")],
)
def test_the_upload_route_takes_files(path: str, root_path: str) -> None:
    """It is exempt under a proxy's prefix as well, which the router takes off."""
    assert post(path, LARGE, root_path=root_path) == (200, str(len(LARGE)))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"[" * 9_000, "deeper"),
        (b'{"a":' * 50 + b"1" + b"}" * 50, "deeper"),
        (b"[" + b"{}," * 600_000 + b"{}]", "values"),
        (b"[" + b"1," * MAX_VALUES + b"1]", "values"),
        (b'["' + b'","' * MAX_VALUES + b'"]', "values"),
        (b'{"a":' + b"9" * 5000 + b"}", "digits"),
        (b'["\\",{' + b'"' + b",{" * MAX_VALUES, "values"),
    ],
)
def test_json_is_bounded_before_it_is_built(body: bytes, reason: str) -> None:
    """Depth, values and digits: each once cost memory, a stack, or time without end."""
    assert len(body) < MAX_BODY_BYTES
    status, said = post("/gradio_api/queue/join", body)
    assert (status, reason in said) == (413, True)


@pytest.mark.parametrize("body", [b"[NaN]", rb'["\ud800"]'])
def test_what_nobody_can_read_is_not_called_too_much(body: bytes) -> None:
    """It is as wrong when it is sent again in pieces."""
    assert post("/gradio_api/queue/join", body)[0] == 400


def test_a_long_prompt_with_many_commas_passes() -> None:
    """Commas and brackets inside a text are no values."""
    body = json.dumps({"data": ["a, [b], {c}\\" * 9_000, '\\",' * 9_000]}).encode()
    assert post("/gradio_api/queue/join", body) == (200, str(len(body)))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(), inner, max_size=6),
    max_leaves=40,
)


@given(JSON)
def test_what_is_small_is_never_refused(value: object) -> None:
    """No text, whatever its quotes and backslashes, makes a small value look large."""
    assert problem(json.dumps(value).encode()) is None


@given(st.text(alphabet='"\\[{,'), st.integers(min_value=1, max_value=9))
def test_no_text_hides_a_nest(text: str, more: int) -> None:
    """What follows a text is counted as what it is."""
    nest: object = 0
    for _ in range(MAX_DEPTH + more):
        nest = [nest]
    assert problem(json.dumps([text, nest]).encode()) is not None


@pytest.mark.parametrize(
    ("text", "is_refused"),
    [
        (rb'["\ud800"]', True),
        (rb'["\uDC00 and \ud83d\ude00"]', True),
        (rb'["\ud83d\ud83d\ude00"]', True),
        (rb'["\ud83d\ude00"]', False),
        (rb'["\\ud800"]', False),
        (b"[NaN]", True),
        (b"[-Infinity]", True),
        (b'["NaN"]', False),
    ],
)
def test_what_could_not_be_written_again_is_refused(text: bytes, is_refused: bool) -> None:
    """Python's reader takes half a character and NaN; whoever writes them on would fail."""
    assert (problem(text) is not None) == is_refused
