"""Verifier: verifies pictures and probes this machine, between batches of the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seedgrid.core.card import ModelCard
from seedgrid.core.errors import RunError
from seedgrid.core.picture import Entry
from seedgrid.core.recipe import Recipe
from seedgrid.core.request import Request, resolve
from seedgrid.diffusion.backend import Placement, Unwatched, Watch, like_passport
from seedgrid.diffusion.probe_results import ProbeReport
from seedgrid.engine import Engine
from seedgrid.studio.resolving import check_offered

if TYPE_CHECKING:
    from seedgrid.export.film import Film
    from seedgrid.verify.claim import Claim
    from seedgrid.verify.judging import Verdict

_BATCH: Final = 64  # Number of pictures that are verified together


class Verifier:
    """Verifies pictures, makes films, probes the lock; a new run cancels a probe. Thread-safe."""

    def __init__(self, engine: Engine, card: Callable[[str | None], ModelCard]) -> None:
        self._engine = engine
        self._card = card
        self._probe_watch = Unwatched()

    def verify(
        self,
        claims: Sequence[Claim],
        watch: Watch | None = None,
        *,
        device: str | None = None,
        owner: str = "",
        address: str = "",
    ) -> Future[tuple[Verdict, ...]]:
        """Paint pictures again from their recipes and compare them, on behalf of `owner`.

        `watch` receives the progress, and can cancel; by default `device` is the passports' own.
        Raise if a public page does not offer what a recipe needs, or as `Engine.submit_task`.
        """
        from seedgrid.verify.verifying import verify

        recipes = [claim.recipe for claim in claims]
        check_offered(recipes, self._card)
        return self._engine.submit_task(
            lambda backend: verify(claims, backend, watch=watch, device=device),
            owner=owner,
            address=address,
            recipes=recipes,
        )

    def verify_files(
        self, paths: Sequence[Path], *, device: str | None = None
    ) -> Iterator[Verdict]:
        """Verify PNG files, in shared batches where possible, the quickest first.

        A file that cannot be read or has no recipe is `impossible`.
        """
        from seedgrid.verify.claim import pixel_steps_of
        from seedgrid.verify.verifying import batches, read_claims

        watch = Unwatched()
        paths = sorted(paths, key=pixel_steps_of)
        try:
            for start in range(0, len(paths), _BATCH):
                claims, unreadable = read_claims(paths[start : start + _BATCH])
                yield from unreadable
                for indices in batches(claims):
                    batch = [claims[index] for index in indices]
                    yield from self.verify(batch, watch, device=device).result()
        finally:
            watch.cancelled = True  # Also when the caller stops early

    def start_film(self, entry: Entry) -> Future[Film]:
        """Start painting a picture again; return a future of the previews of its steps."""
        from seedgrid.export.film import paint_film

        placement = replace(like_passport(self._engine.placement, entry.passport), previews=True)
        return self._engine.submit_task(
            lambda backend: paint_film(entry, backend, placement), recipes=[entry.recipe]
        )

    def probe(self, recipe: Recipe, placement: Placement) -> Future[ProbeReport | None]:
        """Probe whether the lock holds for recipes like this one; a new run cancels the probe.

        The report is None if the backend has no probe. Raise `engine_closed` or `engine_lost`; the
        future raises `RunCancelled` if the probe is cancelled.
        """
        watch = self._probe_watch = Unwatched()
        return self._engine.submit_task(
            lambda backend: backend.probe(recipe, placement, watch),
            recipes=[recipe] * recipe.lock_width,
        )

    def probe_request(self, request: Request, placement: Placement) -> ProbeReport:
        """Probe the lock for a request's recipe, and wait; without a width, at the model's.

        Raise as `Studio.resolve`, and `run_unexpected` if the backend has no probe.
        """
        recipe = resolve(request, self._card(request.model))[0]
        try:
            report = self.probe(recipe, placement).result()
        finally:
            self.stop_probing()
        if report is None:
            raise RunError("run_unexpected", reason="this backend has no probe")
        return report

    def stop_probing(self) -> None:
        """Cancel the probe that runs or waits, if any."""
        self._probe_watch.cancelled = True
