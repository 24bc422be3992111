"""Who opens connections and asks for nothing holds few of them, and not for long."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Iterator
from functools import partial

import httpx
import pytest
from serving import serve
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Send
from uvicorn import Config, Server
from uvicorn.server import ServerState

from seedgrid.web.server import connections
from seedgrid.web.server.limits import MAX_BODY_BYTES, MAX_IN_WORK_BYTES

LIMIT = 8
SOON_S = 60.0


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    public = {"SEEDGRID_MAX_OPEN_PER_ADDRESS": str(LIMIT)}
    with serve(tmp_path_factory.mktemp("library") / "library", public=public) as address:
        yield address


def opened(address: str, begin: bytes = b"") -> socket.socket:
    url = httpx.URL(address)
    connection = socket.create_connection((url.host, url.port or 80), timeout=SOON_S)
    connection.sendall(begin)
    return connection


def is_closed(connection: socket.socket) -> bool:
    """Wait for the other side to say anything; it says nothing but that it has gone."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("begin", [b"", b"GET / HTTP/1.1\r\nHost: 127"])
def test_many_that_ask_for_nothing_make_room_for_who_asks(address: str, begin: bytes) -> None:
    """A thousand half requests of one address took all descriptors, for as long as it liked."""
    held = [opened(address, begin) for _ in range(3 * LIMIT)]
    assert all(is_closed(connection) for connection in held[: 2 * LIMIT])
    assert httpx.get(f"{address}healthz", timeout=SOON_S).status_code == 200
    for connection in held:
        connection.close()


def test_who_was_answered_and_asks_for_half_is_counted_too(address: str) -> None:
    """A connection that was good for one answer waited without an end for the next request."""
    host = httpx.URL(address).netloc
    held = []
    for _ in range(2 * LIMIT):
        connection = opened(address, b"GET /healthz HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
        answer = b""
        while b"waiting" not in answer:
            answer += connection.recv(65536)
        connection.sendall(b"GET / HT")
        held.append(connection)
    assert all(is_closed(connection) for connection in held[:LIMIT])
    for connection in held:
        connection.close()


def test_nobody_waits_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slowly its first lines come, a request has so long for all of them."""
    monkeypatch.setattr(connections, "HEAD_S", 0.05)

    class Plain(asyncio.Protocol):
        def on_message_begin(self) -> None: ...

    async def drip() -> None:
        server = _Plain(Plain)
        connections.bound_waiting(server, limit=99)  # type: ignore[arg-type]
        loop = asyncio.get_running_loop()
        listening = await loop.create_server(server.config.http_protocol_class, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        ended = asyncio.ensure_future(_end_of(reader))
        while not ended.done():
            writer.write(b"G")
            await asyncio.sleep(0.01)
        assert ended.result()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        listening.close()

    asyncio.run(asyncio.wait_for(drip(), SOON_S))


@pytest.mark.parametrize(
    ("rate", "longest_s", "may_end"), [(1, 60, False), (1000, 60, True), (1000, 0.1, False)]
)
def test_a_body_that_does_not_come_is_given_up(
    monkeypatch: pytest.MonkeyPatch, rate: int, longest_s: float, may_end: bool
) -> None:
    """Uploads that never ended held their room, and half bodies their memory, for ever."""
    monkeypatch.setattr(connections, "LONGEST_S", longest_s)
    monkeypatch.setattr(connections, "BODY_S", 0.5 if may_end else 0.05)
    monkeypatch.setattr(connections, "BODY_BYTES", 40)
    length = 60_000 if may_end else 10**6
    bodies: list[int] = []

    async def app(_scope: object, receive: Receive, send: Send) -> None:
        came = 0
        while (message := await receive())["type"] == "http.request":
            came += len(message["body"])
            if not message["more_body"]:
                break
        bodies.append(came)
        await PlainTextResponse("read")(_scope, receive, send)  # type: ignore[arg-type]

    async def drip() -> None:
        config = Config(app, log_level="critical", lifespan="off")
        config.load()
        server = Server(config)
        connections.bound_waiting(server, limit=99)
        protocol = partial(config.http_protocol_class, config, ServerState(), {})
        listening = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % length)
        ended = asyncio.ensure_future(reader.read(4))
        sent = 0
        while not ended.done() and sent < length:
            writer.write(b"x" * rate)
            sent += rate
            await asyncio.sleep(0.01)
        with contextlib.suppress(ConnectionError):
            assert await ended == (b"HTTP" if may_end else b"")
        writer.close()
        listening.close()

    asyncio.run(asyncio.wait_for(drip(), SOON_S))
    assert bodies == [length] if may_end else bodies[0] < length


def test_one_address_holds_few_half_bodies(address: str) -> None:
    """Two hundred half bodies of one address took 390 MB of memory."""
    head = b"POST /gradio_api/queue/join HTTP/1.1\r\nHost: " + httpx.URL(address).netloc
    head += b"\r\nContent-Length: %d\r\n\r\n" % MAX_BODY_BYTES
    num_held = MAX_IN_WORK_BYTES // MAX_BODY_BYTES
    assert num_held < LIMIT
    held = [opened(address, head) for _ in range(num_held)]
    assert _until_answered(address, 429) == 429
    for connection in held:
        connection.close()
    assert _until_answered(address, 400) == 400


def _until_answered(address: str, status: int) -> int:
    """Post until it is answered so: the server may not know yet of what was opened or closed."""
    end_s = time.monotonic() + SOON_S
    while True:
        answer = httpx.post(f"{address}gradio_api/queue/join", content=b"[NaN]").status_code
        if answer == status or time.monotonic() > end_s:
            return answer
        time.sleep(0.02)


async def _end_of(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


class _Config:
    def __init__(self, protocol: type[asyncio.Protocol]) -> None:
        self.http_protocol_class = protocol


class _Plain:
    def __init__(self, protocol: type[asyncio.Protocol]) -> None:
        self.config = _Config(protocol)
