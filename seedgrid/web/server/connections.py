"""Connections that ask for nothing: what a server without a proxy holds for whoever opens them.

`OpenRequests` counts requests, and a request that never ends its first lines is none yet: uvicorn
waits for it for as long as its sender likes, and each takes a descriptor. It waits likewise for a
body, which takes memory or room beside. Knows nothing of what is asked for.

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


BODY_S: Final = 20.0
BODY_BYTES: Final = 100_000
"""A body comes whole in that time, or so much of it: else it is given up."""
LONGEST_S: Final = 1200.0
"""And whole in this time: as long as a full upload takes at half a megabit a second."""


class _Waiting(asyncio.Protocol):
    """A connection that is closed when it asks for nothing, or when others from there wait too.

    And when the body of what it asks for does not come.
    """

    limit: int
    waiting: defaultdict[str, dict[_Waiting, asyncio.TimerHandle]]
    cycle: Any = None
    """uvicorn's: the request that is answered, or was answered last."""
    flow: Any
    """uvicorn's: whether it reads at the moment."""
    _transport: asyncio.Transport
    _address: str
    _num_bytes = 0
    _body_timer: asyncio.TimerHandle | None = None
    _body_since_s = 0.0

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
        self._num_bytes += len(data)
        if self.cycle is None or self.cycle.response_complete:
            self._wait()
        else:
            self._wait_no_more()
            if self._body_timer is None:
                self._body_since_s = asyncio.get_running_loop().time()
                self._look_at_body()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._wait_no_more()
        if self._body_timer is not None:
            self._body_timer.cancel()
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

    def _look_at_body(self, num_before: int | None = None) -> None:
        """Close it where nearly nothing came since the last look, though it was listened to."""
        self._body_timer = None
        if self.cycle.response_complete or not self.cycle.more_body:
            return
        loop = asyncio.get_running_loop()
        is_slow = num_before is not None and self._num_bytes < num_before + BODY_BYTES
        is_late = loop.time() > self._body_since_s + LONGEST_S
        if is_late or (is_slow and not self.flow.read_paused):
            self._transport.abort()
            return
        self._body_timer = loop.call_later(BODY_S, self._look_at_body, self._num_bytes)

    def _wait_no_more(self) -> None:
        here = self.waiting[self._address]
        timer = here.pop(self, None)
        if timer is not None:
            timer.cancel()
        if not here:
            del self.waiting[self._address]


def bound_waiting(server: Server, limit: int | None) -> None:
    """Let so many connections of an address wait for their first lines to be whole, for a while.

    No body is waited for that does not come.

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
