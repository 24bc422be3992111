"""Verify on the page: run a picture's recipe again, with progress, and give the verdict."""

from collections.abc import AsyncIterator
from contextlib import aclosing

from anyio import to_thread

from seedgrid.core.errors import LibraryError, RunCancelled, SeedGridError
from seedgrid.core.picture import Entry
from seedgrid.studio import Studio, check_starts
from seedgrid.verify.claim import Claim, read_claim
from seedgrid.verify.comparison import Reason, difference_picture, figures_of
from seedgrid.verify.judging import Verdict
from seedgrid.web.serializers import stage
from seedgrid.web.server.waiting import FileWork, StepWatch, steps_of
from seedgrid.web.server.who import Address, Id, Kept
from seedgrid.web.state.page_state import PageUpdate, read_page_state
from seedgrid.web.state.visitor_libraries import Libraries


class Checks:
    """The actions of the Verify button. Safe from any thread."""

    def __init__(self, studio: Studio, libraries: Libraries, file_work: FileWork) -> None:
        self._studio = studio
        self._libraries = libraries
        self._file_work = file_work
        self._going: set[tuple[str, StepWatch]] = set()  # with their visitors

    async def on_verify(
        self, picture_id: Id, kept: Kept, address: Address = ""
    ) -> AsyncIterator[PageUpdate]:
        """Verify a picture: yield the progress, then the verdict."""
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
            yield PageUpdate(verdict=base | {"error": stage.complain(state.epoch, error)})

    def stop(self, visitor: str) -> None:
        """Stop a visitor's verifications, waiting or working; their listeners see it."""
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


def _reason(reason: Reason) -> stage.Json:
    data = {name: str(value) for name, value in reason.data.items()}
    return {"key": f"reason_{reason.code}", "data": data, "is_difference": reason.is_difference}
