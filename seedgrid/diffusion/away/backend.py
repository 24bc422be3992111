"""AwayBackend: the Backend protocol over another process or another machine. Needs no torch here.

AwayBackend(ZeroGpu(), InstalledBackend())
"""

import contextlib
from collections.abc import Generator, Sequence
from typing import Final, NoReturn, Protocol

from seedgrid.core.card import ModelCard
from seedgrid.core.errors import RunCancelled, RunError
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.diffusion.away.computing import Batch, Message
from seedgrid.diffusion.backend import Backend, LoadWatch, Outcome, Placement, Watch

_MAX_PASSPORTS: Final = 256


class RemoteWorker(Protocol):
    """Where `computing.compute` runs."""

    def compute(self, batch: Batch) -> Generator[Message]:
        """Run it there and yield its messages; closing the generator stops it within a step.

        `("quiet",)` among them tells nothing; the listener may close the generator then.

        Raises:
            RunError: `remote_failed`: it did not do its part. `worker_lost`: it is gone.
        """

    def close(self) -> None:
        """Let go of what it holds."""


class AwayBackend:
    """Paints with a remote worker; see `Backend` for what each method promises.

    The passport is the computing process's.
    """

    def __init__(self, worker: RemoteWorker, cards: Backend) -> None:
        self.painted_s = 0.0
        self._worker = worker
        self._cards = cards
        self._passports: dict[tuple[str, Placement], Passport] = {}

    def card(self, model: str | None) -> ModelCard:
        """Find a model and say what it can do, without loading it."""
        return self._cards.card(model)

    def prepare(
        self,
        recipe: Recipe,
        placement: Placement,
        watch: LoadWatch | None = None,  # noqa: ARG002 (what is loaded elsewhere is not told)
    ) -> Passport:
        """Say under which passport the worker computes; it is asked once."""
        if not self.is_ready(recipe, placement):
            self._ask([recipe], placement, None)
        return self._passports[recipe.batch_key, placement]

    def is_ready(self, recipe: Recipe, placement: Placement) -> bool:
        """Tell whether the worker has said so before."""
        return (recipe.batch_key, placement) in self._passports

    def paint(
        self, recipes: Sequence[Recipe], placement: Placement, watch: Watch
    ) -> tuple[Outcome, ...]:
        """Have a batch painted there.

        Raises:
            RunCancelled: `watch.cancelled` became true.
            RunError: `remote_changed`: the worker computes under another passport than it said.
        """
        promised = self.prepare(recipes[0], placement)
        outcomes = self._ask(recipes, placement, watch)
        if self._passports[recipes[0].batch_key, placement] != promised:
            raise RunError("remote_changed")
        return outcomes

    def probe(self, recipe: Recipe, placement: Placement, watch: Watch) -> None:
        """Tell nothing: a machine that is lent is not kept busy with questions."""

    def try_portable(self, recipe: Recipe, placement: Placement) -> NoReturn:  # noqa: ARG002 (protocol)
        """Raise `remote_failed`: nobody has asked for a picture, whose time would it be?"""
        raise RunError("remote_failed", reason="portable arithmetic is not tried there")

    def close(self) -> None:
        """Let go of the worker."""
        self._worker.close()

    def _ask(
        self, recipes: Sequence[Recipe], placement: Placement, watch: Watch | None
    ) -> tuple[Outcome, ...]:
        """Have recipes painted, or without a watch only prepared."""
        batch = Batch(recipes=tuple(recipes), placement=placement, paint=watch is not None)
        with contextlib.closing(self._worker.compute(batch)) as messages:
            for kind, *data in messages:
                if watch is not None and watch.cancelled:
                    raise RunCancelled("run_cancelled")
                match kind:
                    case "passport":
                        if len(self._passports) >= _MAX_PASSPORTS:
                            self._passports.clear()
                        self._passports[recipes[0].batch_key, placement] = data[0]
                        if watch is None:
                            return ()
                    case "failed":
                        raise data[0]
                    case "pictures":
                        outcomes, self.painted_s = data
                        return tuple(outcomes)
                    case "watch" if watch is not None:
                        method, numbers, previews = data
                        shown = () if previews is None else (lambda given=previews: tuple(given),)
                        getattr(watch, method)(*numbers, *shown)
        raise RunError("remote_failed", reason="it ended without an answer")
