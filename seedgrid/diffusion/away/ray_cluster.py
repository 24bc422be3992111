"""RayCluster: backends that paint in Ray's processes on the machines of a cluster.

Ray chooses the machines and starts the workers. One more for each kind of slot is always requested,
so it starts as soon as such a slot is free. `computing.py` describes the messages.
"""

import contextlib
import logging
import os
import socket
import threading
from collections.abc import Callable, Generator, Iterator
from itertools import count
from typing import Any, Final

import ray
from ray.exceptions import RayError

from seedgrid.core.errors import RunError
from seedgrid.diffusion.away import computing
from seedgrid.diffusion.away.computing import AwayBackend, Batch, Message
from seedgrid.diffusion.away.ray_node import CPU_SLOT, GPU_SLOT
from seedgrid.diffusion.backend import Backend

logger = logging.getLogger(__name__)

_LISTEN_S: Final = 0.5  # How long to wait for a message before looking whether to stop
_RETRY_S: Final = 30.0  # Between a failed request to the cluster and the next
_THREADS: Final = 3  # Of a worker's process: its methods `compute`, `stop` and `stay` run at once

MakeBackend = Callable[[], Backend]
OnJoin = Callable[[str, AwayBackend], None]
OnLeave = Callable[[str], None]


class RayWorker:
    """The actor in a worker's process, which Ray creates."""

    def __init__(self, make_backend: MakeBackend) -> None:
        # Ray sets this variable to 1 if no processor is requested. As the number of threads
        # changes bits, a worker uses torch's default on its machine instead.
        os.environ.pop("OMP_NUM_THREADS", None)
        computing.make_backend = make_backend
        self._stops: dict[int, threading.Event] = {}

    def host(self) -> str:
        """Return the name of this machine; the first answer shows that the worker has started."""
        return socket.gethostname()

    def stay(self) -> None:
        """Never return, so the caller sees from the call's error that the worker is gone."""
        threading.Event().wait()

    def compute(self, number: int, batch: Batch) -> Iterator[Message]:
        """Run `computing.compute` in this process, under a number by which `stop` finds it."""
        stopped = self._stops.setdefault(number, threading.Event())
        try:
            yield from computing.compute(batch, stopped)
        finally:
            self._stops.pop(number, None)

    def stop(self, number: int) -> None:
        """Stop the computation of this number within a step, even if it has not begun yet."""
        self._stops.setdefault(number, threading.Event()).set()


class _RayRemote:
    """The client of one worker; see `RemoteWorker`."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor
        self._numbers = count()

    def compute(self, batch: Batch) -> Generator[Message]:
        number = next(self._numbers)
        has_ended = False
        try:
            call = self._actor.compute.options(num_returns="streaming")
            stream = call.remote(number, batch)
            while not has_ended:
                if not ray.wait([stream], timeout=_LISTEN_S)[0]:
                    yield ("quiet",)
                    continue
                message = ray.get(next(stream))
                has_ended = batch.ends_with(message)
                yield message
        except (RayError, StopIteration) as error:
            has_ended = True  # The stream ended without a last message: the worker is gone.
            reason = str(error).strip().partition("\n")[0] or "it stopped answering"
            raise RunError("worker_lost", reason=reason[:200]) from error
        finally:
            if not has_ended:
                with contextlib.suppress(RayError):
                    self._actor.stop.remote(number)

    def close(self) -> None:
        """End the worker's process, and whatever it is computing."""
        with contextlib.suppress(RayError, ValueError):
            ray.kill(self._actor)


class RayCluster:
    """Requests workers from a Ray cluster; `ManyPainters` describes each method."""

    def __init__(self, cards: Backend, make_backend: MakeBackend) -> None:
        self.card = cards.card
        self._cards = cards
        self._make_backend = make_backend
        self._actors = ray.remote(RayWorker)
        self._numbers = count(1)
        # Workers that may not have started: slot and actor by the reference of `host`'s result
        self._requested: dict[Any, tuple[str, Any]] = {}
        # Running workers: their names by the reference of `stay`'s result
        self._running: dict[Any, str] = {}
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, on_join: OnJoin, on_leave: OnLeave) -> None:
        """Start a thread that calls `on_join` and `on_leave` when workers join and leave."""
        self._thread = threading.Thread(target=self._manage, args=(on_join, on_leave), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Leave the cluster; this ends the workers that were started from here."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
        ray.shutdown()

    def _manage(self, on_join: OnJoin, on_leave: OnLeave) -> None:
        """Until `close`, request workers and report those that start or end."""
        while not self._closing.is_set():
            try:
                self._request_one_more()
                results = [*self._requested, *self._running]
                if not results:
                    self._closing.wait(_LISTEN_S)
                    continue
                for result in ray.wait(results, timeout=_LISTEN_S, fetch_local=False)[0]:
                    if result in self._running:
                        on_leave(self._running.pop(result))
                    else:
                        on_join(*self._move_to_running(result))
            except Exception:  # Ray may raise anything; the running workers are not affected.
                logger.exception("a worker could not be started, or the cluster does not answer")
                self._closing.wait(_RETRY_S)

    def _request_one_more(self) -> None:
        """Request a worker for each kind of slot of the cluster, if none is requested already."""
        offered = {CPU_SLOT, GPU_SLOT} & ray.cluster_resources().keys()
        for slot in offered - {slot for slot, _ in self._requested.values()}:
            actor = self._actors.options(
                num_cpus=0,
                num_gpus=1 if slot == GPU_SLOT else 0,
                resources={slot: 1},
                max_concurrency=_THREADS,
            ).remote(self._make_backend)
            self._requested[actor.host.remote()] = slot, actor

    def _move_to_running(self, result: Any) -> tuple[str, AwayBackend]:
        """Move a started worker from `_requested` to `_running`; return its name and backend."""
        _, actor = self._requested.pop(result)
        name = f"{ray.get(result)}-{next(self._numbers)}"
        self._running[actor.stay.remote()] = name
        return name, AwayBackend(_RayRemote(actor), self._cards)
