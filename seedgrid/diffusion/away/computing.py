"""compute: the one function that runs where the processors are, whoever lends them.

It is told a text and yields plain tuples; closing it stops the work within a step. The model stays
loaded in the process that ran it.

    for kind, *said in compute(text, paint=True): ...

    ("passport", its JSON)                  loaded, and under which passport it computes
    ("noise", previews), ("step", number, total, previews), ("tile", number, total)
    ("pictures", outcomes, elapsed_s)       the end: arrays, or (code, data) for what gave none
    ("failed", class, code, data)           the end, in place of pictures
"""

import logging
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from time import monotonic
from typing import Any, Final

from seedgrid.core.errors import RunError, SeedGridError, told_of
from seedgrid.diffusion.away.job import read_job_text
from seedgrid.diffusion.backend import Backend, Outcome, PreviewMaker
from seedgrid.diffusion.deferred import DeferredBackend

logger = logging.getLogger(__name__)

News = tuple[Any, ...]

ENDS: Final = ("pictures", "failed")

make_backend: Callable[[], Backend] = DeferredBackend
"""What paints in this process; tests put another one here, in the process that computes."""

_made: list[Backend] = []
_one_at_a_time = threading.Lock()


def compute(text: str, paint: bool, stopped: threading.Event | None = None) -> Iterator[News]:
    """Load what a batch needs and paint it, in this process.

    Args:
        text: A batch, as `job_text` writes it.
        paint: False only loads and says under which passport it would be painted.
        stopped: Set from another thread, it ends the work within a step, as closing does.
    """
    news: SimpleQueue[News] = SimpleQueue()
    stopped = stopped or threading.Event()
    # On a thread of its own, so that whoever closes this never ends torch in the middle of a step.
    worker = threading.Thread(target=_work, args=(text, paint, news, stopped), daemon=True)
    worker.start()
    try:
        while True:
            each = news.get()
            yield each
            if each[0] in ENDS or (each[0] == "passport" and not paint):
                return
    finally:
        stopped.set()
        worker.join()


def _work(text: str, paint: bool, news: SimpleQueue[News], stopped: threading.Event) -> None:
    try:
        with _one_at_a_time:
            _tell(text, paint, news, stopped)
    except SeedGridError as error:
        news.put(("failed", type(error).__name__, error.code, error.data))
    except BaseException as error:  # The thread's edge: whoever waits must hear of the end.
        logger.exception("a batch failed unexpectedly")
        told = told_of(error)
        news.put(("failed", type(told).__name__, told.code, told.data))


def _tell(text: str, paint: bool, news: SimpleQueue[News], stopped: threading.Event) -> None:
    recipes, placement = read_job_text(text)
    if not _made:
        _made.append(make_backend())
    passport = _made[0].prepare(recipes[0], placement)
    news.put(("passport", passport.model_dump_json()))
    if paint:
        start_s = monotonic()
        outcomes = _made[0].paint(recipes, placement, _Teller(news, stopped))
        news.put(("pictures", tuple(map(_plain, outcomes)), monotonic() - start_s))


class _Teller:
    def __init__(self, news: SimpleQueue[News], stopped: threading.Event) -> None:
        self._news = news
        self._stopped = stopped

    @property
    def cancelled(self) -> bool:
        return self._stopped.is_set()

    def noise(self, previews: PreviewMaker) -> None:
        self._news.put(("noise", previews()))

    def step(self, number: int, total: int, previews: PreviewMaker) -> None:
        self._news.put(("step", number, total, previews()))

    def tile(self, number: int, total: int) -> None:
        self._news.put(("tile", number, total))

    def freed(self) -> None:
        self._news.put(("freed",))


def _plain(outcome: Outcome) -> Any:
    return (outcome.code, outcome.data) if isinstance(outcome, RunError) else outcome
