"""Paint in another process or on another machine: `compute` there, AwayBackend here.

`compute` yields messages, which Ray or ZeroGPU's process pool pickles, like the batch:

    ("passport", passport)                  the model is loaded; the passport of what it paints
    ("watch", method, numbers, previews)    a call of a method of `Watch`; None for no previews
    ("pictures", outcomes, elapsed_s)       the end
    ("failed", error)                       the end, in place of pictures
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

make_backend: Callable[[], Backend] = DeferredBackend  # Paints here; others in tests and Ray

_MAX_PASSPORTS: Final = 256
_LOADING_S: Final = 30  # Loading a model on a lent GPU, on top of what painting takes
_MARGIN: Final = 1.5
_MAX_LENT_S: Final = 120  # What ZeroGPU lends at most to visitors who are not signed in
_made: list[Backend] = []
_one_at_a_time = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What is computed elsewhere."""

    recipes: tuple[Recipe, ...]
    placement: Placement
    paint: bool  # False only loads the model and returns the passport
    # The folders of the pictures and masks that recipes begin from
    starts: tuple[Path, ...] = field(default_factory=lambda: starts.places)

    def ends_with(self, message: Message) -> bool:
        """Tell whether a message is the last one."""
        return message[0] in ("pictures" if self.paint else "passport", "failed")


class RemoteWorker(Protocol):
    """Where `compute` runs."""

    def compute(self, batch: Batch) -> Generator[Message]:
        """Run `compute` there and yield its messages; closing the generator stops it.

        `("quiet",)` says that nothing came. Raises `remote_failed`; `worker_lost`: it is gone.
        """

    def close(self) -> None:
        """Free what it holds."""


class AwayBackend:
    """Paints with a remote worker, under its passport; see `Backend` for each method."""

    def __init__(self, worker: RemoteWorker, cards: Backend) -> None:
        self.painted_s = 0.0
        self.card: Callable[[str | None], ModelCard] = cards.card
        self._worker = worker
        self._passports: dict[tuple[str, Placement], Passport] = {}

    def prepare(
        self,
        recipe: Recipe,
        placement: Placement,
        watch: LoadWatch | None = None,  # noqa: ARG002 (the worker does not report its loading)
    ) -> Passport:
        """Return the passport under which the worker computes, asking for it once."""
        if not self.is_ready(recipe, placement):
            self._compute([recipe], placement, None)
        return self._passports[recipe.batch_key, placement]

    def is_ready(self, recipe: Recipe, placement: Placement) -> bool:
        """Tell whether the worker's passport is known."""
        return (recipe.batch_key, placement) in self._passports

    def paint(
        self, recipes: Sequence[Recipe], placement: Placement, watch: Watch
    ) -> tuple[Outcome, ...]:
        """Paint a batch there; raise RunCancelled, or `remote_changed` for another passport."""
        expected = self.prepare(recipes[0], placement)
        outcomes = self._compute(recipes, placement, watch)
        if self._passports[recipes[0].batch_key, placement] != expected:
            raise RunError("remote_changed")
        return outcomes

    def probe(self, recipe: Recipe, placement: Placement, watch: Watch) -> None:
        """Return None: no time of a lent machine is spent on tests."""

    def close(self) -> None:
        """Close the worker."""
        self._worker.close()

    def _compute(
        self, recipes: Sequence[Recipe], placement: Placement, watch: Watch | None
    ) -> tuple[Outcome, ...]:
        """Paint recipes there; without a watch, only ask for the passport."""
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
    """Load what a batch needs and paint it, in this process.

    Closing this, or setting `stopped`, ends the painting within a step. A model that is being
    loaded is loaded to its end, and stays loaded.
    """
    watch = _SendingWatch(stopped or threading.Event())
    # On a thread of its own, so that closing this never ends torch in the middle of a step.
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
    """Sends each call of a `Watch` as a message."""

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
        with _one_at_a_time:
            _paint(batch, watch)
    except BaseException as error:  # The thread's edge: the listener must get a last message.
        if not isinstance(error, SeedGridError):
            logger.exception("a batch failed unexpectedly")
            error = as_ours(error)
        watch.messages.put(("failed", error))


def _paint(batch: Batch, watch: _SendingWatch) -> None:
    if watch.cancelled:  # It was stopped while another batch was computed here.
        raise RunCancelled("run_cancelled")
    starts.know(*batch.starts)
    if not _made:
        _made.append(make_backend())
    watch.messages.put(("passport", _made[0].prepare(batch.recipes[0], batch.placement)))
    if batch.paint:
        start_s = monotonic()
        outcomes = _made[0].paint(batch.recipes, batch.placement, watch)
        watch.messages.put(("pictures", outcomes, monotonic() - start_s))


def seconds_for(batch: Batch, expected_s: float) -> int:  # noqa: ARG001 (ZeroGPU gives it all)
    """Return how many seconds of a GPU to ask for: as expected with a margin, and the loading."""
    return min(_MAX_LENT_S, _LOADING_S + math.ceil(_MARGIN * expected_s))


def _compute_lent(batch: Batch, expected_s: float) -> Iterator[Message]:  # noqa: ARG001 (same)
    yield from compute(batch)


class ZeroGpu:
    """The GPU that a free Hugging Face Space lends for some seconds; see `RemoteWorker`.

    `spaces.GPU` runs `compute` in a forked process that has CUDA; elsewhere it changes nothing. It
    reads whose quota is used in the visitor's context (`Run.context`). Never run on a GPU. Made
    before torch is imported, as importing `spaces` patches it.
    """

    def __init__(self) -> None:
        import spaces

        self._lent = spaces.GPU(duration=seconds_for)(_compute_lent)
        self._speeds = Speeds()

    def compute(self, batch: Batch) -> Generator[Message]:
        """Run `compute` on a GPU that is lent for it."""
        expected_s = self._speeds.estimate_s(batch.recipes) if batch.paint else 0.0
        try:
            for message in self._lent(batch, expected_s):
                if message[0] == "pictures":
                    self._speeds.note(batch.recipes[0], message[2])
                yield message
        except Exception as error:
            # Gradio's own error says why nothing was lent: no quota left, or none free.
            # `compute` sends errors of painting as messages.
            logger.warning("nothing was lent, or it was taken away", exc_info=True)
            reason = str(getattr(error, "message", "") or error)
            raise RunError("remote_failed", reason=reason) from error

    def close(self) -> None:
        """Do nothing: a lent GPU is returned without it."""
