"""RayCluster: many painters, each a process of Ray's on one of a cluster's machines.

Only texts and plain news cross (`computing.py`). A worker is one actor: it loads a model once and
keeps it, and its passport is its own. A machine offers as many as its resource `seedgrid` says.

    RayCluster(DeferredBackend(), DeferredBackend)      # after `ray_node.connect`
"""

import contextlib
import logging
import os
import socket
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from itertools import count
from time import monotonic
from typing import Any, Final

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from seedgrid.core.errors import RunError
from seedgrid.diffusion.away import computing
from seedgrid.diffusion.away.backend import AwayBackend
from seedgrid.diffusion.away.computing import ENDS, News
from seedgrid.diffusion.away.ray_node import RESOURCE
from seedgrid.diffusion.backend import Backend

logger = logging.getLogger(__name__)

_LISTEN_S: Final = 0.5
"""How long a worker may say nothing until whoever listens is asked whether to go on."""
_AGAIN_S: Final = 30.0
"""After a worker could not be started, nothing is tried on its machine for so long."""
_THREADS: Final = 3
"""Of a worker's process: one paints, one is told to stop, one tells by its end that all is over."""

MakeBackend = Callable[[], Backend]


class RayWorker:
    """What runs in a worker's process; Ray makes it there."""

    def __init__(self, make_backend: MakeBackend) -> None:
        # Ray says 1 to every process that asks for no processor; how many threads compute changes
        # bits, so a worker takes what torch takes on this machine without Ray.
        os.environ.pop("OMP_NUM_THREADS", None)
        computing.make_backend = make_backend
        self._stops: dict[int, threading.Event] = {}

    def host(self) -> str:
        """Return the name of this machine; the worker is there when it answers."""
        return socket.gethostname()

    def stay(self) -> None:
        """Never return: that it fails tells that the worker is gone."""
        threading.Event().wait()

    def compute(self, number: int, text: str, paint: bool) -> Iterator[News]:
        """Run `computing.compute` here, under a number by which it is stopped."""
        stopped = self._stops.setdefault(number, threading.Event())
        try:
            yield from computing.compute(text, paint, stopped)
        finally:
            self._stops.pop(number, None)

    def stop(self, number: int) -> None:
        """Stop a computation within a step; it may not have begun."""
        self._stops.setdefault(number, threading.Event()).set()


class RayPlace:
    """One worker, as seen from here; see `Place`."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor
        self._numbers = count()

    def compute(self, text: str, paint: bool, expected_s: float) -> Generator[News]:  # noqa: ARG002 (protocol)
        """Run `computing.compute` in the worker."""
        number = next(self._numbers)
        has_ended = False
        try:
            stream = self._actor.compute.options(num_returns="streaming").remote(
                number, text, paint
            )
            while not has_ended:
                if not ray.wait([stream], timeout=_LISTEN_S)[0]:
                    yield ("quiet",)
                    continue
                each = ray.get(next(stream))
                has_ended = each[0] in ENDS or (each[0] == "passport" and not paint)
                yield each
        except (RayError, StopIteration) as error:
            has_ended = True  # A stream that just stops is a machine that is gone.
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


class RayCluster(AwayBackend):
    """See `ManyPainters`; as a `Backend` it answers `card` and `rehash` alone."""

    def __init__(self, cards: Backend, make_backend: MakeBackend) -> None:
        super().__init__(_Nowhere(), cards)
        self._workers = ray.remote(RayWorker)
        self._make_backend = make_backend
        self._numbers = count(1)
        self._joining: dict[Any, Any] = {}  # the answer that is waited for: the actor
        self._node_of: dict[Any, str] = {}  # by actor
        self._there: dict[str, tuple[AwayBackend, Any, Any]] = {}  # painter, actor, `stay`
        self._not_before: dict[str, float] = {}  # by node, after a worker could not be started
        self._is_closed = False

    def painters(self) -> Mapping[str, AwayBackend]:
        """Return who can paint now; workers are started where a machine has room for them."""
        if not self._is_closed:
            self._start_missing()
            self._meet_new()
            self._forget_lost()
        return {name: painter for name, (painter, _, _) in self._there.items()}

    def close(self) -> None:
        """Leave the cluster; the workers that were started for us end."""
        self._is_closed = True
        ray.shutdown()

    def _start_missing(self) -> None:
        for node in ray.nodes():
            if not node["Alive"] or monotonic() < self._not_before.get(node["NodeID"], 0.0):
                continue
            here = [actor for actor, place in self._node_of.items() if place == node["NodeID"]]
            offered = int(node["Resources"].get(RESOURCE, 0))
            for _ in range(offered - len(here)):
                self._start(node["NodeID"], num_gpus=1 if node["Resources"].get("GPU") else 0)

    def _start(self, node: str, *, num_gpus: int) -> None:
        actor = self._workers.options(
            num_cpus=0,
            num_gpus=num_gpus,
            resources={RESOURCE: 1},
            max_concurrency=_THREADS,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        ).remote(self._make_backend)
        self._node_of[actor] = node
        self._joining[actor.host.remote()] = actor

    def _meet_new(self) -> None:
        for answer in _done(self._joining):
            actor = self._joining.pop(answer)
            try:
                name = f"{ray.get(answer)}-{next(self._numbers)}"
            except RayError as error:
                node = self._node_of.pop(actor)
                self._not_before[node] = monotonic() + _AGAIN_S
                logger.error("a worker could not be started: %s", str(error)[-1000:])  # noqa: TRY400 (its own traceback)
                continue
            painter = AwayBackend(RayPlace(actor), self._cards)
            self._there[name] = (painter, actor, actor.stay.remote())

    def _forget_lost(self) -> None:
        stays = {stay: name for name, (_, _, stay) in self._there.items()}
        for stay in _done(stays):
            _, actor, _ = self._there.pop(stays[stay])
            del self._node_of[actor]


class _Nowhere:
    """The place of what is asked of the cluster as a whole."""

    def compute(self, text: str, paint: bool, expected_s: float) -> Generator[News]:  # noqa: ARG002 (protocol)
        """Refuse: a worker computes, not the cluster."""
        raise RunError("worker_lost", reason="no worker was named")

    def close(self) -> None:
        """Do nothing."""


def _done(answers: Mapping[Any, Any]) -> list[Any]:
    """Return those answers that are there, an error among them, without waiting."""
    if not answers:
        return []
    waited = list(answers)
    return list(ray.wait(waited, num_returns=len(waited), timeout=0, fetch_local=False)[0])
