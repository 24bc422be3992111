"""compute: the one function that runs where the processors are.

It is given a batch and yields messages. Closing it stops the painting within a step; a model that
is being loaded is loaded to its end, and stays loaded in the process that ran it. Ray, or the
process pool of ZeroGPU, pickles batches and messages.

    ("passport", passport)                  the model is loaded; the passport of what it paints
    ("watch", method, numbers, previews)    what a `Watch` is told; None for no previews
    ("pictures", outcomes, elapsed_s)       the end
    ("failed", error)                       the end, in place of pictures
"""

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from time import monotonic
from typing import Any, Final

from seedgrid.core.errors import RunCancelled, SeedGridError, as_ours
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.backend import Backend, Placement, PreviewMaker
from seedgrid.diffusion.deferred import DeferredBackend
from seedgrid.storage import starts

logger = logging.getLogger(__name__)

Message = tuple[Any, ...]

ENDS: Final = ("pictures", "failed")

make_backend: Callable[[], Backend] = DeferredBackend
"""What paints in this process; tests put another one here, in the process that computes."""

_made: list[Backend] = []
_one_at_a_time = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What is computed elsewhere.

    Attributes:
        paint: False only loads and says under which passport it would be painted.
        starts: The folders with the pictures and masks that recipes name.
    """

    recipes: tuple[Recipe, ...]
    placement: Placement
    paint: bool
    starts: tuple[Path, ...] = field(default_factory=starts.places)

    def ends_with(self, message: Message) -> bool:
        """Tell whether nothing comes after a message."""
        return message[0] in ENDS or (message[0] == "passport" and not self.paint)


def compute(batch: Batch, stopped: threading.Event | None = None) -> Iterator[Message]:
    """Load what a batch needs and paint it, in this process.

    Args:
        batch: What is wanted.
        stopped: Set from another thread, it ends the work within a step, as closing does.
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
    """Sends what a batch tells; see `Watch`."""

    def __init__(self, stopped: threading.Event) -> None:
        self.messages: SimpleQueue[Message] = SimpleQueue()
        self.stopped = stopped

    @property
    def cancelled(self) -> bool:
        return self.stopped.is_set()

    def noise(self, previews: PreviewMaker) -> None:
        self._tell("noise", (), previews())

    def step(self, number: int, total: int, previews: PreviewMaker) -> None:
        self._tell("step", (number, total), previews())

    def tile(self, number: int, total: int) -> None:
        self._tell("tile", (number, total))

    def freed(self) -> None:
        self._tell("freed", ())

    def _tell(self, method: str, numbers: tuple[int, ...], previews: Any = None) -> None:
        self.messages.put(("watch", method, numbers, previews))


def _work(batch: Batch, watch: _SendingWatch) -> None:
    try:
        with _one_at_a_time:
            _paint(batch, watch)
    except BaseException as error:  # The thread's edge: who waits must hear of the end.
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
