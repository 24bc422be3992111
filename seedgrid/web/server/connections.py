"""Connections that ask for nothing: what a server without a proxy holds for whoever opens them.

`OpenRequests` counts requests, and a request that never ends its first lines is none yet: uvicorn
waits for it for as long as its sender likes, and each takes a descriptor. Knows nothing of what is
asked for.

    bound_waiting(demo.server, limit=300)
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from typing import Any, Final

from uvicorn import Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from seedgrid.web.server.waiting import network_of

logger = logging.getLogger(__name__)

HEAD_S: Final = 20.0
"""So long may the first lines of a request take, however they come."""


class _Waiting(asyncio.Protocol):
    """A connection that is closed when it asks for nothing, or when others from there wait too."""

    limit: int
    waiting: defaultdict[str, dict[_Waiting, asyncio.TimerHandle]]
    cycle: Any = None
    """uvicorn's: the request that is answered, or was answered last."""
    _transport: asyncio.Transport
    _address: str

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._address = network_of((transport.get_extra_info("peername") or ("",))[0])
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Wait no longer once there is a whole request."""
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._wait()
        else:
            self._wait_no_more()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait(self) -> None:
        here = self.waiting[self._address]
        if self in here or self._transport.is_closing():
            return
        here[self] = asyncio.get_running_loop().call_later(HEAD_S, self._transport.abort)
        while len(here) > self.limit:
            oldest = next(iter(here))
            oldest._wait_no_more()
            oldest._transport.abort()

    def _wait_no_more(self) -> None:
        here = self.waiting[self._address]
        timer = here.pop(self, None)
        if timer is not None:
            timer.cancel()
        if not here:
            del self.waiting[self._address]


def bound_waiting(server: Server, limit: int | None) -> None:
    """Let so many connections of an address wait for their request to be whole, for a while.

    The newest wait on: of the others nobody who asks for anything is one.

    Args:
        server: It is serving; the connections that it has already stay as they are.
        limit: None is any number, for any time.
    """
    if limit is None:
        return
    protocol = server.config.http_protocol_class
    if not issubclass(protocol, H11Protocol) and not hasattr(protocol, "on_message_begin"):
        logger.warning("uvicorn's %s: nothing bounds who asks for nothing", protocol.__name__)
        return
    bounds = {"limit": limit, "waiting": defaultdict(dict)}
    server.config.http_protocol_class = type("Waiting", (_Waiting, protocol), bounds)
