"""Downloads: one after the other in a thread of their own, watched, stopped, and gone on with.

What broke off is remembered, also by the next process: `unfinished` names it, and `start` goes on
with it. Knows no page and no terminal.

    downloads = Downloads()
    downloads.start("google/ddpm-cifar10-32")
    downloads.now()
"""

import logging
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Final, Literal

from seedgrid.core.errors import ModelError, RunCancelled, SeedGridError
from seedgrid.models.catalogue import keep_licence
from seedgrid.models.fetching import discard_unfinished, fetch, unfinished_bytes
from seedgrid.models.hub import ask, read_download
from seedgrid.models.lora_shelf import check_free, keep_fetched
from seedgrid.storage.cache import recall, remember, remember_one

logger = logging.getLogger(__name__)

State = Literal["waiting", "asking", "fetching", "done", "failed", "stopped"]
GOES_ON: Final = ("waiting", "asking", "fetching")

_UNFINISHED: Final = "downloads"
_SPEED_S: Final = 8.0
"""Over how long the speed is measured."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a download is.

    Attributes:
        num_bytes: What is on the disk, of `total`.
        total: 0 until the hub was asked.
        left_s: About how long it still takes; None while nobody can say.
        error: Why it failed.
    """

    id: str
    state: State
    num_bytes: int = 0
    total: int = 0
    left_s: float | None = None
    error: SeedGridError | None = None

    @property
    def goes_on(self) -> bool:
        """Whether it waits or is on its way."""
        return self.state in GOES_ON


@dataclass
class _Job:
    """One download, and how its bytes came."""

    id: str
    state: State = "waiting"
    num_bytes: int = 0
    total: int = 0
    error: SeedGridError | None = None
    is_stopped: bool = False
    came: deque[tuple[float, int]] = field(default_factory=deque)

    def watch(self, num_bytes: int) -> None:
        """Note what has come; stop where that was asked for."""
        if self.is_stopped:
            raise RunCancelled("run_cancelled")
        now = time.monotonic()
        self.num_bytes = num_bytes
        self.came.append((now, num_bytes))
        while now - self.came[0][0] > _SPEED_S:
            self.came.popleft()

    def progress(self) -> Progress:
        return Progress(
            id=self.id,
            state=self.state,
            num_bytes=self.num_bytes,
            total=self.total,
            left_s=self._left_s(),
            error=self.error,
        )

    def _left_s(self) -> float | None:
        came = list(self.came)
        if self.state != "fetching" or len(came) < 2 or came[-1][0] == came[0][0]:
            return None
        speed = (came[-1][1] - came[0][1]) / (came[-1][0] - came[0][0])
        return (self.total - self.num_bytes) / speed if speed > 0 else None


class Downloads:
    """Safe from any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._jobs: dict[str, _Job] = {}
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def start(self, hub_id: str) -> Progress:
        """Fetch a model, or go on with it; returns at once.

        Args:
            hub_id: `org/name`, or `org/name@revision`; of a LoRA also `org/name/FILE`.

        Raises:
            ModelError: `model_name`.
        """
        if read_download(hub_id)[0] is None:
            raise ModelError("model_name", value=hub_id[:80])
        with self._changed:
            job = self._jobs.get(hub_id)
            if job is None or job.state not in GOES_ON:
                self._jobs.pop(hub_id, None)
                job = self._jobs[hub_id] = _Job(id=hub_id)
                if self._thread is None:
                    self._thread = threading.Thread(
                        target=self._work, name="seedgrid-downloads", daemon=True
                    )
                    self._thread.start()
                self._changed.notify_all()
            return job.progress()

    def now(self) -> tuple[Progress, ...]:
        """Return how far each download of this process is, the oldest first."""
        with self._changed:
            return tuple(job.progress() for job in self._jobs.values())

    def unfinished(self) -> tuple[Progress, ...]:
        """Return what broke off, in this process or before, and is not gone on with."""
        goes_on = {each.id for each in self.now() if each.state in GOES_ON}
        found = []
        for hub_id, total in recall(_UNFINISHED).items():
            name = read_download(hub_id)[0]
            if name is not None and hub_id not in goes_on and isinstance(total, int):
                had = unfinished_bytes(name)
                found.append(Progress(id=hub_id, state="stopped", num_bytes=had, total=total))
        return tuple(each for each in found if each.num_bytes)

    def stop(self, hub_id: str) -> None:
        """Stop a download; what has come is kept."""
        with self._changed:
            job = self._jobs.get(hub_id)
            if job is not None:
                job.is_stopped = True
                if job.state == "waiting":
                    job.state = "stopped"

    def discard(self, hub_id: str) -> None:
        """Forget a download that does not go on, and delete what has come of it."""
        name = read_download(hub_id)[0]
        with self._changed:
            job = self._jobs.get(hub_id)
            if name is None or (job is not None and job.state in GOES_ON):
                raise ModelError("download_busy", value=hub_id[:80])
            self._jobs.pop(hub_id, None)
        discard_unfinished(name)
        _forget(hub_id)

    def wait(self, hub_id: str, timeout_s: float | None = None) -> Progress:
        """Wait until a download ends in one way or another, or until time is up."""
        with self._changed:
            job = self._jobs[hub_id]
            self._changed.wait_for(lambda: job.state not in GOES_ON, timeout_s)
            return job.progress()

    def close(self) -> None:
        """Stop what goes on; it is gone on with when it is started again."""
        with self._changed:
            self._is_closed = True
            for job in self._jobs.values():
                job.is_stopped = True
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed or self._next() is not None)
                job = self._next()
                if self._is_closed or job is None:
                    return
                job.state = "asking"
            try:
                self._fetch(job)
                state: State = "done"
            except RunCancelled:
                state = "stopped"
            except SeedGridError as error:
                state, job.error = "failed", error
            except Exception as error:  # The thread's edge: the next download goes on.
                logger.exception("a download failed")
                job.error = ModelError("download_failed", value=job.id, reason=type(error).__name__)
                state = "failed"
            with self._changed:
                job.state = state
                self._changed.notify_all()

    def _next(self) -> _Job | None:
        return next((job for job in self._jobs.values() if job.state == "waiting"), None)

    def _fetch(self, job: _Job) -> None:
        model = ask(job.id)
        if model.lora:
            check_free(model)
        job.watch(0)
        job.came.clear()  # What was there before did not come at any speed.
        job.total, job.state = model.num_bytes, "fetching"
        remember_one(_UNFINISHED, job.id, job.total)
        fetch(model, job.watch)
        _forget(job.id)
        if model.lora:
            keep_fetched(model)
        else:
            keep_licence(model.id, model.licence)


def _forget(hub_id: str) -> None:
    known = recall(_UNFINISHED)
    if known.pop(hub_id, None) is not None:
        remember(_UNFINISHED, known)
