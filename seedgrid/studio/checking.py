"""What a studio finds out between two runs: of pictures, of the lock, of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seedgrid.core.recipe import Recipe
from seedgrid.core.request import Request, resolve
from seedgrid.diffusion.backend import Placement, Unwatched, Watch
from seedgrid.diffusion.portable_trial import PortableTrial
from seedgrid.diffusion.probe_results import ProbeReport
from seedgrid.studio.parts import Parts

if TYPE_CHECKING:
    from seedgrid.verify import Claim, Verdict

_AT_ONCE: Final = 64
"""So many pictures that are verified are in memory together."""


class Checking(Parts):
    """A studio that verifies pictures and tests this machine, when no run needs the engine."""

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
        """
        from seedgrid.verify import verify

        self.check_offered([claim.recipe for claim in claims])
        return self.engine.borrow(
            lambda backend: verify(claims, backend, watch=watch, device=device),
            owner=owner,
            address=address,
            recipes=[claim.recipe for claim in claims],
        )

    def verify_files(
        self, paths: Sequence[Path], *, device: str | None = None
    ) -> Iterator[Verdict]:
        """Verify PNG files, those that may share a batch together, and what asks for most last.

        So one file of a stranger that asks for an hour holds up no verdict on the others.

        Yields:
            A verdict each, as soon as there is one; a file that cannot be read or holds no recipe
            is `impossible`.
        """
        from seedgrid.verify import asked_by, batches, read_claims

        watch = Unwatched()
        paths = sorted(paths, key=asked_by)
        try:
            for start in range(0, len(paths), _AT_ONCE):
                claims, unreadable = read_claims(paths[start : start + _AT_ONCE])
                yield from unreadable
                for places in batches(claims):
                    batch = [claims[place] for place in places]
                    yield from self.verify(batch, watch, device=device).result()
        finally:
            watch.cancelled = True  # Who has gone waits for nothing.

    def probe(self, recipe: Recipe, placement: Placement) -> Future[ProbeReport | None]:
        """Test between two runs whether the lock holds for recipes like this one.

        It makes way as soon as somebody wants to paint.

        Returns:
            None where the backend cannot tell; `RunCancelled` where it made way.

        Raises:
            RunError: `engine_closed`.
        """
        watch = self._probe_watch = Unwatched()
        return self.engine.borrow(lambda backend: backend.probe(recipe, placement, watch))

    def try_portable(self, model: str | None) -> Future[PortableTrial]:
        """Find out between two runs how portable arithmetic is computed here, and its cost.

        Raises:
            ModelError: As `card`.
            RunError: `engine_closed`.
        """
        request = Request(prompt="a picture", seeds=(0,), portable=True)
        (recipe,) = resolve(request, self.card(model))
        with self._making:
            going = self._trials.get(recipe.model.id)
            if going is None or going.done():  # Who asks again meanwhile waits for the same one.
                going = self._trials[recipe.model.id] = self.engine.borrow(
                    lambda backend: backend.try_portable(recipe, self.placement)
                )
            return going

    def stop_probing(self) -> None:
        """Stop the probe that goes on or waits, if there is one."""
        self._probe_watch.cancelled = True
