"""Watchdog: notices that an engine's thread died, or does not come back from what it does.

It counts its own ticks and not the clock's, so that a machine that slept is not a thread that
hung. Knows nothing of what is painted.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, Protocol

Loss = Literal["engine_hung", "engine_died"]

_SLOW: Final = 3
"""A step may take so many times as long as the longest one before."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long a thread may stay away before it is given up.

    Attributes:
        stop_s: After Stop; at least three times the longest silence while it painted.
        load_s: After Stop, while it loads a model.
        close_s: After it was asked to end: what it paints by then is wanted by nobody any more.
        silence_s: Without a sign of life, when nobody asked it to stop.
        check_s: Between two looks.
    """

    stop_s: float = 30.0
    load_s: float = 600.0
    close_s: float = 2.0
    silence_s: float = 1800.0
    check_s: float = 0.5


class Pulse:
    """The signs of life of one thread; written by it, read by its watchdog.

    Attributes:
        num_beats: Rises with every sign of life.
        task: What it does now, None while it waits for work.
        extra_s: How much longer than usual this task may be silent.
        is_loading: Whether it loads a model.
    """

    def __init__(self) -> None:
        self.num_beats = 0
        self.task: object | None = None
        self.extra_s = 0.0
        self.is_loading = False

    def beat(self, *, is_loading: bool = False) -> None:
        """Give a sign of life."""
        self.is_loading = is_loading
        self.num_beats += 1

    def begin(self, task: object | None, *, extra_s: float = 0.0) -> None:
        """Tell what is done from now on; None for nothing."""
        self.extra_s = extra_s
        self.task = task
        self.beat()


class Watched(Protocol):
    """What a watchdog looks after."""

    pulse: Pulse
    gone: threading.Event

    def is_alive(self) -> bool:
        """Tell whether the thread is there."""

    def is_stopping(self) -> bool:
        """Tell whether it was asked to come back."""

    @property
    def is_closing(self) -> bool:
        """Whether it was asked to come back for good."""


class Watchdog:
    """Looks after one thread until that is gone."""

    def __init__(
        self, watched: Watched, patience: Patience, on_loss: Callable[[Loss], None]
    ) -> None:
        self._watched = watched
        self._patience = patience
        self._on_loss = on_loss
        self._quiet_s = self._stopping_s = self._longest_s = 0.0
        self._seen: tuple[object | None, int] = (None, -1)
        threading.Thread(target=self._watch, name="seedgrid-watchdog", daemon=True).start()

    def _watch(self) -> None:
        last_s = time.monotonic()
        while not self._watched.gone.wait(self._patience.check_s):
            now_s = time.monotonic()
            loss = self._look(min(now_s - last_s, 2 * self._patience.check_s))
            last_s = now_s
            if loss is not None:
                self._on_loss(loss)
                return

    def _look(self, passed_s: float) -> Loss | None:
        if not self._watched.is_alive():
            # One that ended as it should says so itself, last of all.
            return None if self._watched.gone.wait(self._patience.check_s) else "engine_died"
        self._listen(passed_s)
        pulse = self._watched.pulse
        is_silent = self._quiet_s > self._patience.silence_s + pulse.extra_s
        return "engine_hung" if is_silent or self._stopping_s > self._stop_limit_s() else None

    def _listen(self, passed_s: float) -> None:
        pulse = self._watched.pulse
        task, num_beats = self._seen
        if pulse.task is not task:
            self._stopping_s = 0.0
        if (pulse.task, pulse.num_beats) != (task, num_beats) or pulse.task is None:
            self._quiet_s = 0.0
        else:
            self._quiet_s += passed_s
            if not pulse.is_loading and not self._watched.is_stopping():
                self._longest_s = max(self._longest_s, self._quiet_s)
        self._stopping_s = self._stopping_s + passed_s if self._watched.is_stopping() else 0.0
        self._seen = (pulse.task, pulse.num_beats)

    def _stop_limit_s(self) -> float:
        if self._watched.is_closing:
            return self._patience.close_s
        if self._watched.pulse.is_loading:
            return self._patience.load_s
        return max(self._patience.stop_s, _SLOW * self._longest_s)
