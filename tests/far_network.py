"""A network between the browser and the page on which every request is late.

A wait that is already true before the answer comes passes on a quick machine and fails on a busy
one. With `SEEDGRID_TEST_LATENCY_S=0.5` every page under test is reached through `far`, and such a
wait fails each time.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def far(server_port: int, latency_s: float, port: int = 0) -> Iterator[int]:
    """Give a port whose bytes reach `server_port` so many seconds late; answers come at once.

    Args:
        server_port: Where the server is, on this machine.
        latency_s: How late each request is, in seconds.
        port: Where to listen; 0 takes a free one.
    """
    command = [sys.executable, __file__, str(server_port), str(latency_s), str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.terminate()


async def _listen(server_port: int, latency_s: float, port: int) -> None:
    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", server_port)
        except OSError:  # the server is away: whoever asks finds nobody
            writer.transport.abort()
            return
        answering = asyncio.create_task(_carry(server_reader, writer, 0.0))
        asking = asyncio.create_task(_carry(reader, server_writer, latency_s))
        await asyncio.wait({answering, asking}, return_when=asyncio.FIRST_COMPLETED)
        for end in (writer, server_writer):
            end.close()

    server = await asyncio.start_server(connect, "127.0.0.1", port)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


async def _carry(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, latency_s: float
) -> None:
    """Carry bytes over, each the same time late and in their order."""
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
            carried.put_nowait((loop.time() + latency_s, data))

    with contextlib.suppress(OSError):
        await asyncio.gather(take(), deliver())


if __name__ == "__main__":
    asyncio.run(_listen(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])))
