"""What a cluster costs: Ray beside a batch's compute, and the engine under a hundred workers.

`seedgrid bench --cluster`. The first part starts Ray with one worker on this machine and compares
the time that a batch took here with what it took in the worker, batch by batch, so that a busy
machine slows both sides. The second needs no Ray: its painters sleep in threads of this process, so
that all the processor time there is belongs to the engine, the library and the pictures' files.
"""

from __future__ import annotations

import os
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from seedgrid.core.picture import Pixels
from seedgrid.core.plan import plan_grid
from seedgrid.core.recipe import Recipe
from seedgrid.core.request import Request, resolve
from seedgrid.diffusion.backend import Backend, Outcome, Placement, Unwatched, Watch
from seedgrid.engine import Engine
from seedgrid.library import Library
from seedgrid.testing.fake import FakeBackend

if TYPE_CHECKING:
    from seedgrid.diffusion.away.ray_cluster import RayCluster

SIZE_PX = 256
_BATCH_S = 2.0
_OVERHEAD, _BUSY, _CORES, _GROWTH = 0.03, 0.95, 1.0, 1.2


def figures(rounds: int, num_workers: int = 100, num_cells: int = 10_000) -> Iterator[str]:
    """Measure, and say each figure in a line with its target.

    Args:
        rounds: Batches that count in the first part.
        num_workers: Of the second part.
        num_cells: Of its matrix.
    """
    overhead = _cost_of_ray(rounds)
    yield _line("Ray's cost of a batch beside its compute", overhead, "<=", _OVERHEAD)
    busy, cores, growth = _crowd(num_workers, num_cells)
    yield _line(f"{num_workers} workers, share of their time busy", busy, ">=", _BUSY)
    yield _line("processor time of engine and library, in cores", cores, "<=", _CORES)
    yield _line("memory at the end beside a quarter of the way", growth, "<=", _GROWTH)


def _line(what: str, found: float, sign: str, target: float) -> str:
    holds = found <= target if sign == "<=" else found >= target
    return f"{what:<50} {found:8.4f}  {sign} {target:g}  {'yes' if holds else 'NO'}"


def _cost_of_ray(rounds: int) -> float:
    """Return the median share that a batch took longer here than in its worker."""
    from benchmarks.models import build_sd_shaped
    from seedgrid.diffusion.away import ray_node
    from seedgrid.diffusion.deferred import DeferredBackend

    os.environ["SEEDGRID_WORKERS"] = "1"
    with tempfile.TemporaryDirectory() as scratch:
        model = str(build_sd_shaped(Path(scratch) / "sd"))
        os.environ["SEEDGRID_MODELS"] = scratch
        ray_node.connect("local")
        from seedgrid.diffusion.away.ray_cluster import RayCluster

        cards = DeferredBackend()
        request = Request(
            prompt="a", seeds=tuple(range(4)), width=SIZE_PX, height=SIZE_PX, num_inference_steps=5
        )
        recipes = resolve(request, cards.card(model))
        cluster = RayCluster(cards, DeferredBackend)
        try:
            return statistics.median(_shares(cluster, recipes, rounds))
        finally:
            cluster.close()


def _shares(cluster: RayCluster, recipes: Sequence[Recipe], rounds: int) -> Iterator[float]:
    while not (there := cluster.painters()):
        time.sleep(0.1)
    (painter,) = there.values()
    for number in range(rounds + 1):
        start_s = time.perf_counter()
        painter.paint(recipes, Placement(), Unwatched())
        elapsed_s = time.perf_counter() - start_s
        if number:  # The first one loads the model.
            yield elapsed_s / painter.painted_s - 1


class _Sleeper(FakeBackend):
    """Takes its time and no processor's."""

    def paint(
        self,
        recipes: Sequence[Recipe],
        placement: Placement,  # noqa: ARG002 (protocol)
        watch: Watch,  # noqa: ARG002 (protocol)
    ) -> tuple[Outcome, ...]:
        time.sleep(_BATCH_S)
        return tuple(_noise(recipe) for recipe in recipes)


def _noise(recipe: Recipe) -> Pixels:
    """Return a picture with flat fields, about as large a file as a painted one."""
    fields = np.random.Generator(np.random.PCG64(recipe.seed)).integers(0, 256, (16, 16, 3))
    return np.kron(fields, np.ones((16, 16, 1))).astype(np.uint8)


class _Crowd(FakeBackend):
    def __init__(self, count: int) -> None:
        super().__init__()
        self._there = {f"worker-{number}": _Sleeper() for number in range(count)}

    def painters(self) -> Mapping[str, Backend]:
        return self._there


def _crowd(num_workers: int, num_cells: int) -> tuple[float, float, float]:
    """Return how busy the workers were, the engine's cores, and the growth of memory."""
    crowd = _Crowd(num_workers)
    request = Request(prompt="a", seeds=tuple(range(num_cells)), width=SIZE_PX, height=SIZE_PX)
    with (
        tempfile.TemporaryDirectory() as folder,
        Library(Path(folder)) as library,
        Engine(crowd, library) as engine,
    ):
        while len(engine.painters) < num_workers:
            time.sleep(0.1)
        jobs = plan_grid(resolve(request, crowd.card(None)))
        start_s, start_cpu_s = time.perf_counter(), _processor_s()
        run = engine.submit(jobs, owner="bench")
        while len(run.finished) < num_cells / 4:
            time.sleep(0.1)
        quarter_mb = _resident_mb()
        run.result()
        elapsed_s = time.perf_counter() - start_s
        cores = (_processor_s() - start_cpu_s) / elapsed_s
        num_batches = sum(each.num_batches for each in engine.painters)
        return (
            num_batches * _BATCH_S / (num_workers * elapsed_s),
            cores,
            _resident_mb() / quarter_mb,
        )


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main(rounds: int) -> None:
    """Print every figure."""
    for line in figures(rounds):
        print(line, flush=True)
