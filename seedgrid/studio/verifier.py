"""Verifier: verifies pictures and probes this machine, between runs of the engine."""

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
from seedgrid.diffusion.backend import Placement, Unwatched, Watch
from seedgrid.diffusion.probe_results import ProbeReport
from seedgrid.engine import Engine
from seedgrid.portable import PortableTrial
from seedgrid.studio.resolving import check_offered

if TYPE_CHECKING:
    from seedgrid.export.film import Film
    from seedgrid.verify.claim import Claim
    from seedgrid.verify.judging import Verdict

_BATCH: Final = 64  # Number of pictures that are verified together


class Verifier:
    """Verifies pictures, records films, and probes the lock. Safe to use from any thread.

    Args:
        engine: Runs have priority over what is submitted here.
        card: Returns the card of a model; of the studio's own for None.
        placement: Where to compute.
    """

    def __init__(
        self, engine: Engine, card: Callable[[str | None], ModelCard], placement: Placement
    ) -> None:
        self._engine = engine
        self._card = card
        self._placement = placement
        self._probe_watch = Unwatched()
        self._trials: dict[str, Future[PortableTrial]] = {}  # by model

    def verify(
        self,
        claims: Sequence[Claim],
        watch: Watch | None = None,
        *,
        device: str | None = None,
        owner: str = "",
        address: str = "",
    ) -> Future[tuple[Verdict, ...]]:
        """Paint pictures again from their recipes, and compare.

        Args:
            claims: The pictures and what their files say.
            watch: Receives its progress, and can cancel it.
            device: Where to compute; by default as their passports say.
            owner: It counts as a run of this owner.
            address: As in `RunOptions`.

        Raises:
            SeedGridError: A public page does not offer what a recipe needs.
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

        So a file that takes an hour does not delay the others' verdicts.

        Yields:
            A verdict for each as soon as it is known; `impossible` for a file that cannot be read
            or has no recipe.
        """
        from seedgrid.verify.claim import pixel_steps_of
        from seedgrid.verify.verifying import batches, read_claims

        watch = Unwatched()
        paths = sorted(paths, key=pixel_steps_of)
        try:
            for start in range(0, len(paths), _BATCH):
                claims, unreadable = read_claims(paths[start : start + _BATCH])
                yield from unreadable
                for places in batches(claims):
                    batch = [claims[place] for place in places]
                    yield from self.verify(batch, watch, device=device).result()
        finally:
            watch.cancelled = True  # The caller has stopped reading.

    def start_film(self, entry: Entry) -> Future[Film]:
        """Paint a picture again between two runs, and keep the previews of its steps."""
        from seedgrid.export.film import paint_film

        placement = replace(self._engine.placement, previews=True)
        return self._engine.submit_task(
            lambda backend: paint_film(entry, backend, placement, Unwatched()),
            recipes=[entry.recipe],
        )

    def probe(self, recipe: Recipe, placement: Placement) -> Future[ProbeReport | None]:
        """Probe between two runs whether the lock holds for recipes like this one.

        It is cancelled when a run is submitted.

        Returns:
            The report; None if the backend has no probe. Raises `RunCancelled` if cancelled.

        Raises:
            RunError: `engine_closed`.
        """
        watch = self._probe_watch = Unwatched()
        return self._engine.submit_task(lambda backend: backend.probe(recipe, placement, watch))

    def probe_request(self, request: Request, placement: Placement) -> ProbeReport:
        """Probe whether the lock holds for a request's recipe, and wait for the report.

        An open width is the model's own, whatever earlier probes found.

        Raises:
            SeedGridError: As `Studio.resolve`; `run_unexpected` if the backend has no probe.
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

    def try_portable(self, model: str | None) -> Future[PortableTrial]:
        """Measure portable arithmetic on this machine between two runs.

        Raises:
            ModelError: The model cannot be read.
            RunError: `engine_closed`.
        """
        request = Request(prompt="a picture", seeds=(0,), portable=True)
        (recipe,) = resolve(request, self._card(model))
        trial = self._trials.get(recipe.model.id)
        if trial is None or trial.done():  # Concurrent callers wait for the same one.
            trial = self._trials[recipe.model.id] = self._engine.submit_task(
                lambda backend: backend.try_portable(recipe, self._placement)
            )
        return trial
