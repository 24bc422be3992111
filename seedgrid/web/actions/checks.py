"""Verify on the page: run a picture's recipe again, tell how far it is, and give the verdict.

The work is lent to the engine's own thread between two runs. Knows no component.
"""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from anyio import to_thread

from seedgrid.core.errors import LibraryError, RunCancelled, SeedGridError
from seedgrid.core.picture import Entry
from seedgrid.studio import Studio, check_starts
from seedgrid.verify import Claim, Reason, Verdict, difference_picture, figures_of, read_claim
from seedgrid.web.serializers import stage
from seedgrid.web.server.waiting import FileWork, StepWatch, steps_of
from seedgrid.web.server.who import Address, Id, Kept
from seedgrid.web.state.page_state import PageUpdate, read_page_state
from seedgrid.web.state.visitor_libraries import Libraries


class Checks:
    """The answers of the Verify button. Safe from any thread."""

    def __init__(self, studio: Studio, libraries: Libraries, file_work: FileWork) -> None:
        self._studio = studio
        self._libraries = libraries
        self._file_work = file_work
        self._going: set[tuple[str, StepWatch]] = set()  # whose they are

    async def on_verify(
        self, picture_id: Id, kept: Kept, address: Address = ""
    ) -> AsyncIterator[PageUpdate]:
        """Verify a picture: first how far it is, at the end the verdict. No thread waits for it."""
        state = read_page_state(kept)
        base = {"id": str(picture_id)}
        try:
            entry, claim = await self._file_work.do(
                address, lambda: self._claim(state.visitor, str(picture_id))
            )
            async for news in self._verify(claim, state.visitor, address):
                if news.pop("confirms", False) and not entry.checked:
                    await to_thread.run_sync(self._libraries.of(state.visitor).confirm, entry.id)
                yield PageUpdate(verdict=base | news)
        except SeedGridError as error:
            wrong = {"error": stage.complain(state.epoch, error)}
            yield PageUpdate(verdict=base | wrong)

    def stop(self, visitor: str) -> None:
        """Stop what a visitor has verified, waiting or working; all who follow it are told."""
        for owner, watch in tuple(self._going):
            if owner == visitor:
                watch.stop()

    def _claim(self, visitor: str, picture_id: str) -> tuple[Entry, Claim]:
        entry = self._libraries.of(visitor).get(picture_id)
        if entry.lost:
            raise LibraryError("picture_lost", value=entry.id)
        claim = read_claim(entry.path)
        check_starts([claim.recipe], self._libraries.of(visitor))
        return entry, claim

    async def _verify(self, claim: Claim, visitor: str, address: str) -> AsyncIterator[stage.Json]:
        watch = StepWatch()
        future = self._studio.verifier.verify([claim], watch, owner=visitor, address=address)
        self._going.add((visitor, watch))
        try:
            async with aclosing(steps_of(future, watch)) as steps:
                async for number, total in steps:
                    yield {"working": True, "number": number, "total": total}
        finally:
            self._going.discard((visitor, watch))
        if future.cancelled():
            raise RunCancelled("run_cancelled")
        (verdict,) = future.result()
        yield await self._file_work.run(lambda: _shown(claim, verdict))


def _shown(claim: Claim, verdict: Verdict) -> stage.Json:
    difference, figures = None, figures_of(verdict.comparison)
    if figures["max_abs_diff"] and claim.pixels is not None and verdict.pixels is not None:
        difference = stage.preview_uri(difference_picture(claim.pixels, verdict.pixels))
    return {
        "verdict": verdict.verdict,
        "confirms": verdict.confirms,
        **figures,
        "reasons": [_reason(each) for each in verdict.reasons],
        "difference": difference,
    }


def _reason(said: Reason) -> stage.Json:
    data: dict[str, Any] = {name: str(value) for name, value in said.data.items()}
    return {"key": f"reason_{said.code}", "data": data, "is_difference": said.is_difference}
