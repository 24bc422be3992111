"""Wait for a run or an errand of the engine without holding a thread, and say where from one asks.

Ninety callers that each held a thread while they waited once left none for anybody's click.

    await ended(run)
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress

from seedgrid.engine import Run


async def ended(run: Run) -> None:
    """Wait until a run has ended, as long as it takes."""
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def tell() -> None:
        with contextlib.suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            loop.call_soon_threadsafe(changed.set)

    run.when_changed(tell)
    try:
        while not run.has_ended:
            await changed.wait()
            changed.clear()
    finally:
        run.no_longer(tell)


def is_this_machine(address: str) -> bool:
    """Tell whether somebody asks from the machine that SeedGrid runs on."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def network_of(address: str | None) -> str:
    """Return what counts as one address: IPv6 hands 2**64 of them to every household."""
    try:
        found = ipaddress.ip_address(address or "")
    except ValueError:
        return address or ""
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)
