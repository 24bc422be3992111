"""A network between the browser and the page on which every question and every answer is late.

A wait that is already true before the answer comes passes on a quick machine and fails on a busy
one. With `SEEDGRID_TEST_LATENCY=7` every page under test is reached through `far`: each question,
and each piece of an answer, takes up to a second more, drawn from that seed. Scripts and styles
come at once, as they do to whoever comes again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator

_MOST_S = 1.0
_AT_ONCE = re.compile(rb"GET \S*(/assets/|/static/|[.](js|css|woff2|svg)\b)|GET / ")
_ASKS = re.compile(rb"(GET|POST|PUT|DELETE) ")


def latency_seed() -> str | None:
    """Return the seed of the network's latency, where the tests run on such a one."""
    return os.environ.get("SEEDGRID_TEST_LATENCY") or None


@contextlib.contextmanager
def far(server_port: int, seed: str, port: int = 0) -> Iterator[int]:
    """Give a port whose bytes reach `server_port`, and come back, some moments late.

    Args:
        server_port: Where the server is, on this machine.
        seed: Of the moments.
        port: Where to listen; 0 takes a free one.
    """
    command = [sys.executable, __file__, str(server_port), seed, str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.terminate()


class _Connection:
    """How late the next bytes of one connection are, which carries one question at a time."""

    def __init__(self, seed: str) -> None:
        self._chance = random.Random(seed)  # noqa: S311 (keeps no secret)
        self._is_late = True

    def asking_s(self, data: bytes) -> float:
        if _ASKS.match(data):
            self._is_late = not _AT_ONCE.match(data)
        return self.answering_s(data)

    def answering_s(self, _data: bytes) -> float:
        return self._chance.uniform(0.0, _MOST_S) if self._is_late else 0.0


async def _listen(server_port: int, seed: str, port: int) -> None:
    number = 0

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal number
        number += 1
        connection = _Connection(f"{seed} {number}")
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", server_port)
        except OSError:  # the server is away: whoever asks finds nobody
            writer.transport.abort()
            return
        answering = asyncio.create_task(_carry(server_reader, writer, connection.answering_s))
        asking = asyncio.create_task(_carry(reader, server_writer, connection.asking_s))
        await asyncio.wait({answering, asking}, return_when=asyncio.FIRST_COMPLETED)
        for end in (writer, server_writer):
            end.close()

    server = await asyncio.start_server(connect, "127.0.0.1", port)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


async def _carry(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, late_s: Callable[[bytes], float]
) -> None:
    """Carry bytes over, late and in their order."""
    loop = asyncio.get_running_loop()
    carried: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def deliver() -> None:
        while True:
            due, data = await carried.get()
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            if not data:
                return
            writer.write(data)
            await writer.drain()

    async def take() -> None:
        data = b"."
        while data:
            data = await reader.read(65536)
            carried.put_nowait((loop.time() + late_s(data), data))

    with contextlib.suppress(OSError):
        await asyncio.gather(take(), deliver())


if __name__ == "__main__":
    asyncio.run(_listen(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
