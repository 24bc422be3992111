"""Paint in another process or on another machine: `compute` runs there, AwayBackend here.

AwayBackend sends a `Batch`, and `compute` yields messages; Ray or ZeroGPU pickles both:

    ("passport", passport)                  the model is loaded; the passport of its pictures
    ("watch", method, numbers, previews)    a call of a method of `Watch`; previews may be None
    ("pictures", outcomes, elapsed_s)       the last message
    ("failed", error)                       the last message if something failed
"""

import contextlib
import logging
import math
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from time import monotonic
from typing import Any, Final, Protocol

from seedgrid.core.card import ModelCard
from seedgrid.core.errors import RunCancelled, RunError, SeedGridError, as_ours
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.core.speeds import Speeds
from seedgrid.diffusion.backend import Backend, LoadWatch, Outcome, Placement, PreviewMaker, Watch
from seedgrid.diffusion.deferred import DeferredBackend
from seedgrid.storage import starts

logger = logging.getLogger(__name__)

Message = tuple[Any, ...]

# Makes the backend with which `compute` paints; tests and Ray's workers set another one
make_backend: Callable[[], Backend] = DeferredBackend

_MAX_PASSPORTS: Final = 256
_LOADING_S: Final = 30  # Time for loading a model on a lent GPU, besides painting
_MARGIN: Final = 1.5  # Factor on the expected time of painting
_MAX_LENT_S: Final = 120  # The most that ZeroGPU lends to visitors who are not signed in
_backends: list[Backend] = []  # Empty, or this process's only backend
_painting = threading.Lock()  # Held by the one batch that is computed


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A task for `compute`."""

    recipes: tuple[Recipe, ...]
    placement: Placement
    paint: bool  # False only loads the model and returns the passport
    # The folders that hold recipes' start pictures and masks
    starts: tuple[Path, ...] = field(default_factory=lambda: starts.places)

    def ends_with(self, message: Message) -> bool:
        """Tell whether a message is the last one."""
        return message[0] in ("pictures" if self.paint else "passport", "failed")


class RemoteWorker(Protocol):
    """The client of another process or machine."""

    def compute(self, batch: Batch) -> Generator[Message]:
        """Run this module's `compute` remotely and yield its messages; closing the result stops it.

        Also yields `("quiet",)` from time to time while no message comes. Raises `remote_failed`,
        or `worker_lost` if the process or machine no longer exists.
        """

    def close(self) -> None:
        """End the process, if it was started for this client."""


class AwayBackend:
    """Paints with a remote worker. Pictures get its passport; `Backend` describes each method.

    `cards` only answers `card`, on this machine.
    """

    def __init__(self, worker: RemoteWorker, cards: Backend) -> None:
        self.painted_s = 0.0  # How long the worker took for the last batch
        self.card: Callable[[str | None], ModelCard] = cards.card
        self._worker = worker
        self._passports: dict[tuple[str, Placement], Passport] = {}

    def prepare(
        self,
        recipe: Recipe,
        placement: Placement,
        watch: LoadWatch | None = None,  # noqa: ARG002 (the worker does not report its loading)
    ) -> Passport:
        """Return the worker's passport; the worker is asked only once."""
        if not self.is_ready(recipe, placement):
            self._compute([recipe], placement, None)
        return self._passports[recipe.batch_key, placement]

    def is_ready(self, recipe: Recipe, placement: Placement) -> bool:
        """Tell whether the worker's passport is known."""
        return (recipe.batch_key, placement) in self._passports

    def paint(
        self, recipes: Sequence[Recipe], placement: Placement, watch: Watch
    ) -> tuple[Outcome, ...]:
        """Let the worker paint; raise `remote_changed` if the worker's passport has changed."""
        expected = self.prepare(recipes[0], placement)
        outcomes = self._compute(recipes, placement, watch)
        if self._passports[recipes[0].batch_key, placement] != expected:
            raise RunError("remote_changed")
        return outcomes

    def probe(self, recipe: Recipe, placement: Placement, watch: Watch) -> None:
        """Return None: the lock of a worker's machine is not tested, to save its time."""

    def close(self) -> None:
        """Close the worker."""
        self._worker.close()

    def _compute(
        self, recipes: Sequence[Recipe], placement: Placement, watch: Watch | None
    ) -> tuple[Outcome, ...]:
        """Let the worker paint, and store its passport; without a watch, only get the passport."""
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
                        makers = () if previews is None else (lambda made=previews: tuple(made),)
                        getattr(watch, method)(*numbers, *makers)
        raise RunError("remote_failed", reason="it ended without an answer")


def compute(batch: Batch, stopped: threading.Event | None = None) -> Iterator[Message]:
    """Load what a batch needs and paint it in this process; yield messages as listed above.

    Closing this generator, or setting `stopped`, ends the painting within a step. The loading of a
    model is not interrupted, and the model stays loaded.
    """
    watch = _SendingWatch(stopped or threading.Event())
    # In a thread of its own, so that closing the generator never ends torch during a step
    worker = threading.Thread(target=_work, args=(batch, watch), daemon=True)
    worker.start()
    try:
        while True:
            message = watch.messages.get()
            yield message
            if batch.ends_with(message):
                return
    finally:
        watch.stopped.set()
        worker.join()


class _SendingWatch:
    """A `Watch` that makes a message of each call."""

    def __init__(self, stopped: threading.Event) -> None:
        self.messages: SimpleQueue[Message] = SimpleQueue()
        self.stopped = stopped

    @property
    def cancelled(self) -> bool:
        return self.stopped.is_set()

    def noise(self, previews: PreviewMaker) -> None:
        self.messages.put(("watch", "noise", (), previews()))

    def step(self, number: int, total: int, previews: PreviewMaker) -> None:
        self.messages.put(("watch", "step", (number, total), previews()))

    def tile(self, number: int, total: int) -> None:
        self.messages.put(("watch", "tile", (number, total), None))

    def freed(self) -> None:
        self.messages.put(("watch", "freed", (), None))


def _work(batch: Batch, watch: _SendingWatch) -> None:
    try:
        with _painting:
            _paint(batch, watch)
    except BaseException as error:  # The thread's outermost function must send a last message.
        if not isinstance(error, SeedGridError):
            logger.exception("a batch failed unexpectedly")
            error = as_ours(error)
        watch.messages.put(("failed", error))


def _paint(batch: Batch, watch: _SendingWatch) -> None:
    if watch.cancelled:  # The batch was stopped while it waited for another.
        raise RunCancelled("run_cancelled")
    starts.add_folder(*batch.starts)
    if not _backends:
        _backends.append(make_backend())
    (backend,) = _backends
    watch.messages.put(("passport", backend.prepare(batch.recipes[0], batch.placement)))
    if batch.paint:
        start_s = monotonic()
        outcomes = backend.paint(batch.recipes, batch.placement, watch)
        watch.messages.put(("pictures", outcomes, monotonic() - start_s))


# ZeroGPU passes the same arguments to `seconds_for` and `_compute_lent`.
def seconds_for(batch: Batch, expected_s: float) -> int:  # noqa: ARG001
    """Return how many seconds of a GPU to request: for loading, and for painting with a margin."""
    return min(_MAX_LENT_S, _LOADING_S + math.ceil(_MARGIN * expected_s))


def _compute_lent(batch: Batch, expected_s: float) -> Iterator[Message]:  # noqa: ARG001
    yield from compute(batch)


class ZeroGpu:
    """The GPU that a Hugging Face ZeroGPU Space lends for some seconds; see `RemoteWorker`.

    `spaces.GPU` runs `compute` in a forked process with CUDA; outside of a Space, in this process.
    The context of the call (`Run.context`) names the visitor whose quota is used. Create a
    ZeroGpu before torch is imported: importing `spaces` patches torch. Not tested on a GPU so far.
    """

    def __init__(self) -> None:
        import spaces

        self._lent = spaces.GPU(duration=seconds_for)(_compute_lent)
        self._speeds = Speeds()

    def compute(self, batch: Batch) -> Generator[Message]:
        """Run `compute` on a GPU that is lent for this batch."""
        expected_s = self._speeds.estimate_s(batch.recipes) if batch.paint else 0.0
        try:
            for message in self._lent(batch, expected_s):
                if message[0] == "pictures":
                    self._speeds.record(batch.recipes[0], message[2])
                yield message
        except Exception as error:
            # Errors of painting come as messages, so this one is about lending. Its message, if it
            # is Gradio's, gives the reason: no quota is left, or no GPU is free.
            logger.warning("no GPU was lent, or it was taken away", exc_info=True)
            reason = str(getattr(error, "message", "") or error)
            raise RunError("remote_failed", reason=reason) from error

    def close(self) -> None:
        """Do nothing: a lent GPU is returned after each batch."""
