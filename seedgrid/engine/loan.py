"""Loan: something that somebody wants done with the backend, between two runs."""

import contextlib
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any

from seedgrid.core.errors import RunError, is_memory_error, told_of
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.backend import Backend
from seedgrid.engine.admission import Asker


@dataclass(frozen=True, kw_only=True)
class Loan:
    """What is to be done, and who waits for it."""

    task: Callable[[Backend], Any]
    asker: Asker
    recipes: tuple[Recipe, ...]
    future: Future[Any] = field(default_factory=Future)
    context: Context = field(default_factory=copy_context)

    @property
    def is_active(self) -> bool:
        """Whether somebody waits for it."""
        return bool(self.asker.owner) and not self.future.done()

    def do(self, backend: Backend) -> None:
        """Do it, on the thread that owns the backend, unless nobody waits any more."""
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            result = self.context.run(self.task, backend)
        except BaseException as error:  # noqa: BLE001 (the thread's edge: the future raises it)
            with contextlib.suppress(InvalidStateError):
                self.future.set_exception(told_of(error) if is_memory_error(error) else error)
        else:
            with contextlib.suppress(InvalidStateError):  # The thread was given up meanwhile.
                self.future.set_result(result)

    def fail(self, error: RunError) -> None:
        """Tell whoever waits that nothing will come of it; harmless when it is done."""
        with contextlib.suppress(InvalidStateError):
            self.future.set_exception(error)
