"""Verify on the page: run a picture's recipe again, tell how far it is, and give the verdict.

The work is lent to the engine's own thread between two runs. Knows no component.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from anyio import to_thread

from seedgrid.core.entry import Entry
from seedgrid.core.errors import LibraryError, RunCancelled, SeedGridError
from seedgrid.diffusion.backend import PreviewMaker
from seedgrid.studio import Studio
from seedgrid.verify import Claim, Reason, Verdict, difference_picture, read_claim
from seedgrid.web.serializers import stage
from seedgrid.web.state.page_state import read_page_state
from seedgrid.web.state.visitor_libraries import Libraries

_POLL_S: Final = 0.2


class Checks:
    """The answers of the Verify button. Safe from any thread."""

    def __init__(self, studio: Studio, libraries: Libraries) -> None:
        self._studio = studio
        self._libraries = libraries
        self._going: dict[str, set[_VerifyWatch]] = {}  # by visitor

    async def on_verify(
        self, picture_id: object, kept: object, address: str = ""
    ) -> AsyncIterator[stage.Json]:
        """Verify a picture: first how far it is, at the end the verdict. No thread waits for it."""
        state = read_page_state(kept)
        base = {"id": str(picture_id)}
        try:
            entry, claim = await to_thread.run_sync(self._claim, state.visitor, str(picture_id))
            async for news in self._verify(claim, state.visitor, address):
                if news.pop("confirms", False) and not entry.checked:
                    await to_thread.run_sync(self._libraries.of(state.visitor).confirm, entry.id)
                yield base | news
        except SeedGridError as error:
            yield base | {"error": stage.complain(state.epoch, error)}

    def stop(self, visitor: str) -> None:
        """Stop what a visitor has verified, waiting or working; whoever looks on is told."""
        for watch in tuple(self._going.get(visitor, ())):
            watch.stop()

    def _claim(self, visitor: str, picture_id: str) -> tuple[Entry, Claim]:
        entry = self._libraries.of(visitor).get(picture_id)
        if entry.lost:
            raise LibraryError("picture_lost", value=entry.id)
        return entry, read_claim(entry.path)

    async def _verify(self, claim: Claim, visitor: str, address: str) -> AsyncIterator[stage.Json]:
        watch = _VerifyWatch()
        future = self._studio.verify([claim], watch, owner=visitor, address=address)
        watch.when_stopped(future.cancel)
        self._going.setdefault(visitor, set()).add(watch)
        waited = asyncio.wrap_future(future)
        said: stage.Json = {}
        try:
            while not waited.done():
                if said != watch.news():
                    said = watch.news()
                    yield said
                await asyncio.wait({waited}, timeout=_POLL_S)
        finally:
            watch.stop()
            self._going[visitor].discard(watch)
            if not self._going[visitor]:
                del self._going[visitor]
        if waited.cancelled():
            raise RunCancelled("run_cancelled")
        (verdict,) = waited.result()
        yield await to_thread.run_sync(_shown, claim, verdict)


class _VerifyWatch:
    """Follows the steps; stops the work when nobody looks any more."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._step = (0, 0)
        self._on_stop: Callable[[], object] = lambda: None

    def when_stopped(self, on_stop: Callable[[], object]) -> None:
        """Call this when it is to be stopped, for what has not begun yet."""
        self._on_stop = on_stop

    @property
    def cancelled(self) -> bool:
        return self._stopped.is_set()

    def noise(self, previews: PreviewMaker) -> None:
        """Only the end of a check is looked at."""

    def step(self, number: int, total: int, previews: PreviewMaker) -> None:  # noqa: ARG002 (none wanted)
        self._step = (number, total)

    def freed(self) -> None:
        """It begins anew; the steps say so."""

    def stop(self) -> None:
        self._stopped.set()
        self._on_stop()

    def news(self) -> stage.Json:
        number, total = self._step
        return {"working": True, "number": number, "total": total}


def _shown(claim: Claim, verdict: Verdict) -> stage.Json:
    differs = verdict.pixels is not None and verdict.max_abs_diff
    difference = None
    if differs and verdict.pixels is not None:
        difference = stage.preview_uri(difference_picture(claim.pixels, verdict.pixels))
    return {
        "verdict": verdict.verdict,
        "confirms": verdict.confirms,
        "max_abs_diff": verdict.max_abs_diff,
        "psnr_db": verdict.psnr_db,
        "differing_pixels": verdict.differing_pixels,
        "reasons": [_reason(each) for each in verdict.reasons],
        "difference": difference,
    }


def _reason(said: Reason) -> stage.Json:
    data: dict[str, Any] = {name: str(value) for name, value in said.data.items()}
    return {"key": f"reason_{said.code}", "data": data, "is_difference": said.is_difference}
