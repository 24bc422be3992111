"""AwayBackend: the Backend protocol over another process or another machine. Needs no torch here.

Recipes go out as a text, plain messages come back; errors cross as a code and its data. The
passport is the computing process's.

    AwayBackend(ZeroGpu(), InstalledBackend())
"""

import contextlib
from collections.abc import Generator, Sequence
from typing import Any, Final, NoReturn, Protocol

from seedgrid.core import errors
from seedgrid.core.card import ModelCard
from seedgrid.core.errors import InputError, RunCancelled, RunError, SeedGridError
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.core.speeds import Speeds
from seedgrid.diffusion.away.computing import Message, job_text
from seedgrid.diffusion.backend import Backend, LoadWatch, Outcome, Placement, Watch

_MAX_PASSPORTS: Final = 256
_ERRORS: Final = ("RunError", "RunCancelled", "ModelError", "DeviceError", "PictureError")
"""Classes of errors that cross as they are; others become a `RunError`."""


class RemoteWorker(Protocol):
    """Where `computing.compute` runs."""

    def compute(self, text: str, paint: bool, expected_s: float) -> Generator[Message]:
        """Run it there and yield its messages; closing the generator stops it within a step.

        `("quiet",)` among them tells nothing; the listener may close the generator then.

        Raises:
            RunError: `remote_failed`: it did not do its part. `worker_lost`: it is gone.
        """

    def close(self) -> None:
        """Let go of what it holds."""


class AwayBackend:
    """Paints with a remote worker; see `Backend` for what each method promises."""

    def __init__(self, worker: RemoteWorker, cards: Backend) -> None:
        self.painted_s = 0.0
        self._worker = worker
        self._cards = cards
        self._speeds = Speeds()
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
        key = (recipe.batch_key, placement)
        if key not in self._passports:
            self._ask([recipe], placement, None)
        return self._passports[key]

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
        paint = watch is not None
        expected_s = self._speeds.estimate_s(recipes) if paint else 0.0
        messages = self._worker.compute(job_text(recipes, placement), paint, expected_s)
        with contextlib.closing(messages):
            for kind, *data in messages:
                if watch is not None and watch.cancelled:
                    raise RunCancelled("run_cancelled")
                match kind:
                    case "passport":
                        if len(self._passports) >= _MAX_PASSPORTS:
                            self._passports.clear()
                        key = (recipes[0].batch_key, placement)
                        self._passports[key] = Passport.model_validate_json(data[0])
                        if not paint:
                            return ()
                    case "failed":
                        raise _raised(*data)
                    case "pictures":
                        self.painted_s = data[1]
                        self._speeds.note(recipes[0], data[1])
                        return tuple(map(_outcome, data[0]))
                    case "watch" if watch is not None:
                        _tell(watch, *data)
        raise RunError("remote_failed", reason="it ended without an answer")


def _tell(watch: Watch, method: str, numbers: Sequence[int], previews: Any) -> None:
    """Hand a message to a watch."""
    shown = () if previews is None else (lambda: tuple(previews),)
    getattr(watch, method)(*numbers, *shown)


def _outcome(plain: Any) -> Outcome:
    if isinstance(plain, tuple):
        code, data = plain
        return RunError(code, **data)
    pixels: Outcome = plain
    return pixels


def _raised(kind: str, code: str, data: dict[str, object]) -> SeedGridError:
    """Make the error again that was raised there."""
    found: type[SeedGridError] = getattr(errors, kind) if kind in _ERRORS else RunError
    if issubclass(found, InputError):  # Its class says which field is to blame.
        data = {name: value for name, value in data.items() if name != "field"}
    return found(code, **data)
