"""Warming: a model is loaded ahead of need, when no run waits."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from seedgrid.core.errors import SeedGridError, told_of
from seedgrid.diffusion.backend import Backend, LoadWatch
from seedgrid.engine.fair_queue import Errand

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Warmth:
    """How far the loading ahead of need has come.

    Attributes:
        model: Which one; empty when cold.
        num_bytes: Of a large model: how much of it is in memory, of `total`.
        error: Why it failed; the next run tries again and fails with the same words.
    """

    state: Literal["cold", "loading", "ready", "failed"] = "cold"
    model: str = ""
    num_bytes: int = 0
    total: int = 0
    error: SeedGridError | None = None


class Warming:
    """Knows how far the last loading ahead of need has come."""

    def __init__(self) -> None:
        self.warmth = Warmth()

    def errand(self, model: str, load: Callable[[Backend, LoadWatch], object]) -> Errand:
        """Return what the engine's thread is to do; from now on the model counts as loading."""
        self.warmth = Warmth(state="loading", model=model)

        def fail(error: SeedGridError) -> None:
            self.warmth = Warmth(state="failed", model=model, error=error)

        def watch(num_bytes: int, total: int) -> None:
            self.warmth = replace(self.warmth, num_bytes=num_bytes, total=total)

        def do(backend: Backend) -> None:
            try:
                load(backend, watch)
            except SeedGridError as error:
                fail(error)
            except Exception as error:  # The run that needs the model will say it, too.
                logger.exception("warming up failed unexpectedly")
                fail(told_of(error))
            else:
                self.warmth = Warmth(state="ready", model=model)

        return Errand(do=do, fail=fail)
