"""compute: the one function that runs where the processors are.

It is told a text and yields plain tuples; closing it stops the work within a step. The model stays
loaded in the process that ran it.

    ("passport", its JSON)                  loaded, and under which passport it computes
    ("watch", method, numbers, previews)    what a `Watch` is told; None for no previews
    ("pictures", outcomes, elapsed_s)       the end: arrays, or (code, data) for what gave none
    ("failed", class, code, data)           the end, in place of pictures
"""

import json
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from time import monotonic
from typing import Any, Final

from seedgrid.core.errors import RunError, SeedGridError, told_of
from seedgrid.core.recipe import Recipe, read_recipe
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


def compute(text: str, paint: bool, stopped: threading.Event | None = None) -> Iterator[Message]:
    """Load what a batch needs and paint it, in this process.

    Args:
        text: A batch, as `job_text` writes it.
        paint: False only loads and says under which passport it would be painted.
        stopped: Set from another thread, it ends the work within a step, as closing does.
    """
    messages: SimpleQueue[Message] = SimpleQueue()
    stopped = stopped or threading.Event()
    # On a thread of its own, so that closing this never ends torch in the middle of a step.
    worker = threading.Thread(target=_work, args=(text, paint, messages, stopped), daemon=True)
    worker.start()
    try:
        while True:
            message = messages.get()
            yield message
            if message[0] in ENDS or (message[0] == "passport" and not paint):
                return
    finally:
        stopped.set()
        worker.join()


def _work(text: str, paint: bool, messages: SimpleQueue[Message], stopped: threading.Event) -> None:
    try:
        with _one_at_a_time:
            _paint(text, paint, messages, stopped)
    except BaseException as error:  # The thread's edge: who waits must hear of the end.
        if not isinstance(error, SeedGridError):
            logger.exception("a batch failed unexpectedly")
            error = told_of(error)
        messages.put(("failed", type(error).__name__, error.code, error.data))


def _paint(
    text: str, paint: bool, messages: SimpleQueue[Message], stopped: threading.Event
) -> None:
    recipes, placement = _read_job(text)
    if not _made:
        _made.append(make_backend())
    messages.put(("passport", _made[0].prepare(recipes[0], placement).model_dump_json()))
    if paint:
        start_s = monotonic()
        outcomes = _made[0].paint(recipes, placement, _SendingWatch(messages, stopped))
        plain = [(o.code, o.data) if isinstance(o, RunError) else o for o in outcomes]
        messages.put(("pictures", plain, monotonic() - start_s))


class _SendingWatch:
    """Sends what a batch tells; see `Watch`."""

    def __init__(self, messages: SimpleQueue[Message], stopped: threading.Event) -> None:
        self._messages = messages
        self._stopped = stopped

    @property
    def cancelled(self) -> bool:
        return self._stopped.is_set()

    def noise(self, previews: PreviewMaker) -> None:
        self._tell("noise", (), previews())

    def step(self, number: int, total: int, previews: PreviewMaker) -> None:
        self._tell("step", (number, total), previews())

    def tile(self, number: int, total: int) -> None:
        self._tell("tile", (number, total))

    def freed(self) -> None:
        self._tell("freed", ())

    def _tell(self, method: str, numbers: tuple[int, ...], previews: Any = None) -> None:
        self._messages.put(("watch", method, numbers, previews))


def job_text(recipes: Sequence[Recipe], placement: Placement) -> str:
    """Return a batch as one text, for another process or another machine."""
    job = {
        "recipes": [recipe.model_dump(mode="json") for recipe in recipes],
        "placement": asdict(placement),
        "starts": [str(place) for place in starts.places()],
    }
    return json.dumps(job)


def _read_job(text: str) -> tuple[list[Recipe], Placement]:
    job = json.loads(text)
    starts.know(*(Path(place) for place in job["starts"]))
    switches = tuple((name, value) for name, value in job["placement"].pop("switches"))
    recipes = [read_recipe(json.dumps(recipe)) for recipe in job["recipes"]]
    return recipes, Placement(**job["placement"], switches=switches)
