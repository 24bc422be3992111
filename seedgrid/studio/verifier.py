"""Verifier: runs recipes again and tests this machine, when no run needs the engine."""

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
    from seedgrid.verify import Claim, Verdict

_BATCH: Final = 64
"""So many pictures that are verified are in memory together."""


class Verifier:
    """Verifies pictures, films them, and tests the lock. Safe to use from any thread.

    Args:
        engine: What computes; runs go before.
        card: Reads the card of a model, the studio's own for None.
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
        """Run pictures' recipes again between two runs, and compare.

        Args:
            claims: The pictures and what they say of themselves.
            watch: Follows it, and may stop it.
            device: Where to compute; by default as their passports say.
            owner: Who asks: it counts as a run of theirs.
            address: Where from, as in `RunOptions`.

        Raises:
            SeedGridError: A recipe needs what a public page does not offer.
        """
        from seedgrid.verify import verify

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
        """Verify PNG files, those that may share a batch together, and the longest last.

        So one file of a stranger that asks for an hour holds up no verdict on the others.

        Yields:
            A verdict each, as soon as there is one; a file that cannot be read or holds no recipe
            is `impossible`.
        """
        from seedgrid.verify import batches, pixel_steps_of, read_claims

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
            watch.cancelled = True  # A caller that stopped reading waits for nothing.

    def start_film(self, entry: Entry) -> Future[Film]:
        """Have a picture painted again between two runs, and what is seen at each step kept."""
        from seedgrid.export.film import paint_film

        placement = replace(self._engine.placement, previews=True)
        return self._engine.submit_task(
            lambda backend: paint_film(entry, backend, placement, Unwatched()),
            recipes=[entry.recipe],
        )

    def probe(self, recipe: Recipe, placement: Placement) -> Future[ProbeReport | None]:
        """Test between two runs whether the lock holds for recipes like this one.

        It makes way as soon as somebody wants to paint.

        Returns:
            None where the backend cannot tell; `RunCancelled` where it made way.

        Raises:
            RunError: `engine_closed`.
        """
        watch = self._probe_watch = Unwatched()
        return self._engine.submit_task(lambda backend: backend.probe(recipe, placement, watch))

    def probe_request(self, request: Request, placement: Placement) -> ProbeReport:
        """Test whether the lock holds for what a request would give, and wait for the answer.

        A width that was left open is the model's own, whatever was found before.

        Raises:
            SeedGridError: As `Studio.resolve`; `run_unexpected` where the backend cannot tell.
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
        """Stop the probe that goes on or waits, if there is one."""
        self._probe_watch.cancelled = True

    def try_portable(self, model: str | None) -> Future[PortableTrial]:
        """Find out between two runs how portable arithmetic is computed here, and its cost.

        Raises:
            ModelError: The model cannot be read.
            RunError: `engine_closed`.
        """
        request = Request(prompt="a picture", seeds=(0,), portable=True)
        (recipe,) = resolve(request, self._card(model))
        trial = self._trials.get(recipe.model.id)
        if trial is None or trial.done():  # Others who ask meanwhile wait for the same one.
            trial = self._trials[recipe.model.id] = self._engine.submit_task(
                lambda backend: backend.try_portable(recipe, self._placement)
            )
        return trial
