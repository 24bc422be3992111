"""Who opens connections and asks for nothing holds few of them, and not for long."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import httpx
import pytest
from serving import serve

from seedgrid.web.server import connections

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
        server = _Server(Plain)
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


async def _end_of(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


class _Config:
    def __init__(self, protocol: type[asyncio.Protocol]) -> None:
        self.http_protocol_class = protocol


class _Server:
    def __init__(self, protocol: type[asyncio.Protocol]) -> None:
        self.config = _Config(protocol)
