"""RayCluster: many painters, each a process of Ray's on one of a cluster's machines.

Ray queues, places and starts the workers: one more than there are is always requested, and starts
as soon as a machine has room. `computing.py` says what is sent.
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

_LISTEN_S: Final = 0.5  # After so long without a message, look whether to go on
_RETRY_S: Final = 30.0  # Between a failed request to the cluster and the next
_THREADS: Final = 3  # Of a worker's process, for the methods `compute`, `stop` and `stay`

MakeBackend = Callable[[], Backend]
OnJoin = Callable[[str, AwayBackend], None]
OnLeave = Callable[[str], None]


class RayWorker:
    """What runs in a worker's process; Ray makes it there."""

    def __init__(self, make_backend: MakeBackend) -> None:
        # Ray sets it to 1 where no processor is requested, but the number of threads changes bits:
        # a worker takes what torch takes on this machine without Ray.
        os.environ.pop("OMP_NUM_THREADS", None)
        computing.make_backend = make_backend
        self._stops: dict[int, threading.Event] = {}

    def host(self) -> str:
        """Return the name of this machine; the answer says that the worker has started."""
        return socket.gethostname()

    def stay(self) -> None:
        """Never return: when this call fails, the worker is gone."""
        threading.Event().wait()

    def compute(self, number: int, batch: Batch) -> Iterator[Message]:
        """Run `computing.compute` here, under a number by which it is stopped."""
        stopped = self._stops.setdefault(number, threading.Event())
        try:
            yield from computing.compute(batch, stopped)
        finally:
            self._stops.pop(number, None)

    def stop(self, number: int) -> None:
        """Stop a computation within a step; it may not have begun."""
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
            has_ended = True  # A stream without a last message means that the machine is gone.
            reason = str(error).strip().partition("\n")[0] or "it stopped answering"
            raise RunError("worker_lost", reason=reason[:200]) from error
        finally:
            if not has_ended:
                with contextlib.suppress(RayError):
                    self._actor.stop.remote(number)

    def close(self) -> None:
        """End the worker's process; what it was doing is lost."""
        with contextlib.suppress(RayError, ValueError):
            ray.kill(self._actor)


class RayCluster:
    """See `ManyPainters`."""

    def __init__(self, cards: Backend, make_backend: MakeBackend) -> None:
        self.card = cards.card
        self._cards = cards
        self._make_backend = make_backend
        self._actors = ray.remote(RayWorker)
        self._numbers = count(1)
        self._requested: dict[Any, tuple[str, Any]] = {}  # by `host`'s answer: the slot, the actor
        self._staying: dict[Any, str] = {}  # by `stay`'s answer: the name
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, on_join: OnJoin, on_leave: OnLeave) -> None:
        """Call back from now on when workers join and leave."""
        self._thread = threading.Thread(target=self._follow, args=(on_join, on_leave), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Leave the cluster; the workers that were started for us end."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
        ray.shutdown()

    def _follow(self, on_join: OnJoin, on_leave: OnLeave) -> None:
        while not self._closing.is_set():
            try:
                self._request_one_more()
                answers = [*self._requested, *self._staying]
                if not answers:
                    self._closing.wait(_LISTEN_S)
                    continue
                for answer in ray.wait(answers, timeout=_LISTEN_S, fetch_local=False)[0]:
                    if answer in self._staying:
                        on_leave(self._staying.pop(answer))
                    else:
                        on_join(*self._meet(answer))
            except Exception:  # Ray may raise anything; the known workers go on.
                logger.exception("a worker could not be started, or the cluster does not answer")
                self._closing.wait(_RETRY_S)

    def _request_one_more(self) -> None:
        """Have Ray start a worker of each kind that its machines have slots for."""
        offered = {CPU_SLOT, GPU_SLOT} & ray.cluster_resources().keys()
        for slot in offered - {slot for slot, _ in self._requested.values()}:
            actor = self._actors.options(
                num_cpus=0,
                num_gpus=1 if slot == GPU_SLOT else 0,
                resources={slot: 1},
                max_concurrency=_THREADS,
            ).remote(self._make_backend)
            self._requested[actor.host.remote()] = slot, actor

    def _meet(self, answer: Any) -> tuple[str, AwayBackend]:
        """Return a worker that Ray has started, and its name."""
        _, actor = self._requested.pop(answer)
        name = f"{ray.get(answer)}-{next(self._numbers)}"
        self._staying[actor.stay.remote()] = name
        return name, AwayBackend(_RayRemote(actor), self._cards)
