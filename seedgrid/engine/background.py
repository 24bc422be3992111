"""A thread that does one thing after the other: here, saving pictures beside the painting."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

Result = TypeVar("Result")


class TaskThread:
    """One thread, first come, first served.

    Unlike `ThreadPoolExecutor` it still takes work while the interpreter shuts down, so that a
    finished picture is saved even then; `close` is called at exit.
    """

    def __init__(self, name: str) -> None:
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, task: Callable[[], Result]) -> Future[Result]:
        """Do this after everything submitted before; what it returns or raises is the future's."""
        future: Future[Result] = Future()
        self._tasks.put(partial(settle, future, task))
        return future

    def close(self) -> None:
        """Finish what was submitted, then end the thread."""
        self._tasks.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()


def settle(future: Future[Result], task: Callable[[], Result]) -> None:
    """Do something, and let a future say what came of it."""
    try:
        future.set_result(task())
    except BaseException as error:  # noqa: BLE001 (the thread's edge: it is raised by the future)
        future.set_exception(error)
