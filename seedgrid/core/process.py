"""The process: its signals, its end, its log, and memory given back to the system.

The first Ctrl+C or SIGTERM stops the work, the second one ends the process at once. A program calls
`end_at_once` before it imports anything, wraps its work, and ends with `leave`:

    with first_stops(run.cancel) as interrupts:
        ...
    if interrupts.number: ...
"""

import atexit
import ctypes
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

from seedgrid.core.text import many_lines, one_line

logger = logging.getLogger(__name__)

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Holds the number of the first signal that arrived; 0 until then."""

    def __init__(self) -> None:
        self.number = 0

    @property
    def exit_code(self) -> int:
        """What a shell expects of a process that was interrupted: 130 or 143."""
        return 128 + (self.number or signal.SIGINT)


_nested: list[Interrupts] = []  # Nested blocks share one object: a signal counts in all of them


def end_at_once() -> None:
    """Let a signal end the process without Python's traceback, except inside `first_stops`."""
    for number in _SIGNALS:
        signal.signal(number, lambda number, _frame: os._exit(128 + number))


@contextmanager
def first_stops(stop: Callable[[], None]) -> Iterator[Interrupts]:
    """Call `stop` at the first signal inside the block; the second signal ends the process.

    `stop` is called on the main thread, between two of its instructions, and may raise. In another
    thread, no signal calls it. Ending the process loses no picture that was announced.
    """
    if threading.current_thread() is not threading.main_thread():
        yield Interrupts()
        return

    interrupts = _nested[-1] if _nested else Interrupts()

    def handle(number: int, _frame: FrameType | None) -> None:
        if interrupts.number:
            os._exit(128 + number)
        interrupts.number = number
        stop()

    previous = {number: signal.signal(number, handle) for number in _SIGNALS}
    _nested.append(interrupts)
    try:
        yield interrupts
    finally:
        _nested.pop()
        for number, handler in previous.items():
            signal.signal(number, handler)


def interrupt() -> None:
    """Raise KeyboardInterrupt, as Python does at Ctrl+C."""
    raise KeyboardInterrupt


def leave(code: int) -> NoReturn:
    """Call what was registered with `atexit`, and end the process.

    `sys.exit` would tear down modules while a background thread runs a step, and crash.
    """
    run_all = getattr(atexit, "_run_exitfuncs", None)  # No public function does this.
    if run_all is None:
        logger.warning("Python %s has no atexit._run_exitfuncs", sys.version)
        sys.exit(code)
    run_all()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


class PlainFormatter(logging.Formatter):
    """Formats a message on one line, with control characters escaped, in its traceback too."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (as logging has it)
        """Return the line of a record."""
        return one_line(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record and, below it, its traceback."""
        return many_lines(super().format(record))


def set_up_logging() -> None:
    """Let warnings and errors go to standard error; a second call in a process changes nothing."""
    handler = logging.StreamHandler()
    handler.setFormatter(PlainFormatter("%(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


def trim_heap() -> None:
    """Give all free pages of the heap back to the system; does nothing without the GNU C library.

    By itself, that library frees only the heap's end: one block in use there holds back the rest.
    """
    if sys.platform.startswith("linux"):
        malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if malloc_trim is not None:
            malloc_trim(0)
