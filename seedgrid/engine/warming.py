"""Warming: a model is loaded ahead of need, when no run waits."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from seedgrid.core.errors import RunError, SeedGridError
from seedgrid.diffusion.backend import Backend
from seedgrid.engine.fair_queue import Errand

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Warmth:
    """How far the loading ahead of need has come.

    Attributes:
        model: Which one; empty when cold.
        error: Why it failed; the next run tries again and fails with the same words.
    """

    state: Literal["cold", "loading", "ready", "failed"] = "cold"
    model: str = ""
    error: SeedGridError | None = None


class Warming:
    """Knows how far the last loading ahead of need has come.

    Attributes:
        warmth: Read from any thread.
    """

    def __init__(self) -> None:
        self.warmth = Warmth()

    def errand(self, model: str, load: Callable[[Backend], object]) -> Errand:
        """Return what the engine's thread is to do; from now on the model counts as loading.

        Args:
            model: Its name.
            load: Loads it with a backend.
        """
        self.warmth = Warmth(state="loading", model=model)

        def fail(error: SeedGridError) -> None:
            self.warmth = Warmth(state="failed", model=model, error=error)

        def do(backend: Backend) -> None:
            try:
                load(backend)
            except SeedGridError as error:
                fail(error)
            except Exception as error:  # The run that needs the model will say it, too.
                logger.exception("warming up failed unexpectedly")
                fail(RunError("run_unexpected", reason=f"{type(error).__name__}: {error}"))
            else:
                self.warmth = Warmth(state="ready", model=model)

        return Errand(do=do, fail=fail)
