"""What a cluster costs: Ray beside a batch's compute, and the engine under a hundred workers.

`seedgrid bench --cluster`. The first part needs no Ray: its painters sleep in threads of this
process, so that all the processor time there is belongs to the engine, the library and the
pictures' files. Those have flat fields, 4 kB each: what a painted one takes more to be packed is a
line of its own. The second part starts Ray with one worker on this machine and compares the time
that a batch took here with what it took in the worker, batch by batch, so that a busy machine slows
both sides. Each part ends at its time, and what was reached by then counts.
"""

from __future__ import annotations

import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

import numpy as np

from seedgrid.core.picture import Picture, Pixels
from seedgrid.core.plan import plan_grid
from seedgrid.core.recipe import LOCK_WIDTH, Recipe
from seedgrid.core.request import Request, resolve
from seedgrid.diffusion.backend import Backend, Outcome, Placement, Unwatched, Watch
from seedgrid.engine import Engine
from seedgrid.formats import png
from seedgrid.library import Library
from seedgrid.testing.fake import FakeBackend

if TYPE_CHECKING:
    from seedgrid.diffusion.away.computing import AwayBackend
    from seedgrid.diffusion.away.ray_cluster import RayCluster

EXAMPLES = Path(__file__).parents[2] / "assets" / "opening"
SIZE_PX = 256
_BATCH_S = 2.0
_OVERHEAD, _BUSY, _CORES, _GROWTH = 0.03, 0.95, 1.0, 1.2
_CROWD_S, _RAY_S, _START_S = 150.0, 90.0, 60.0
"""No part takes longer: the crowd, Ray's batches, and until Ray's worker is there."""


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """What a hundred painters made of the engine.

    Attributes:
        busy: The share of their time in which they painted.
        cores: Processor time of this process by the clock.
        picture_ms: Processor time a picture.
        growth: Memory at the end beside what it was at a quarter of the way.
    """

    num_saved: int
    elapsed_s: float
    busy: float
    cores: float
    picture_ms: float
    growth: float


def figures(rounds: int, num_workers: int = 100, num_cells: int = 10_000) -> Iterator[str]:
    """Measure, and say each figure in a line, with its target where it has one.

    Args:
        rounds: Batches that count in Ray's part.
        num_workers: Of the first part.
        num_cells: Of its matrix.
    """
    crowd = measure_crowd(num_workers, num_cells)
    ideal = num_workers * LOCK_WIDTH / _BATCH_S
    yield _said(f"pictures saved, of {num_cells:,}", crowd.num_saved)
    yield _said(f"pictures a second, of {ideal:.0f}", crowd.num_saved / crowd.elapsed_s)
    yield _line(f"{num_workers} workers, share of their time busy", crowd.busy, ">=", _BUSY)
    yield _line("processor time of engine and library, in cores", crowd.cores, "<=", _CORES)
    yield _said("processor time a picture, ms", crowd.picture_ms)
    yield _said("to pack one that is painted takes more, ms", _packing_ms())
    yield _line("memory at the end beside a quarter of the way", crowd.growth, "<=", _GROWTH)
    shares = _cost_of_ray(rounds)
    yield _said("batches through Ray", len(shares))
    yield _line(
        "Ray's cost of a batch beside its compute", statistics.median(shares), "<=", _OVERHEAD
    )


def _line(what: str, found: float, sign: str, target: float) -> str:
    holds = found <= target if sign == "<=" else found >= target
    return f"{what:<50} {found:8.4f}  {sign} {target:g}  {'yes' if holds else 'NO'}"


def _said(what: str, found: float) -> str:
    return f"{what:<50} {found:8.6g}"


def _cost_of_ray(rounds: int) -> list[float]:
    """Return by which share each batch took longer here than in its worker."""
    from seedgrid.diffusion.away import ray_node
    from seedgrid.diffusion.deferred import DeferredBackend
    from tools.benchmarks.models import build_sd_shaped

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
            return list(_shares(cluster, recipes, rounds))
        finally:
            cluster.close()


def _shares(cluster: RayCluster, recipes: Sequence[Recipe], rounds: int) -> Iterator[float]:
    joined: SimpleQueue[AwayBackend] = SimpleQueue()
    cluster.begin(lambda _, painter: joined.put(painter), lambda _: None)
    painter = joined.get(timeout=_START_S)
    painter.paint(recipes, Placement(), Unwatched())  # It loads the model.
    end_s = time.monotonic() + _RAY_S
    for _ in range(rounds):
        start_s = time.perf_counter()
        painter.paint(recipes, Placement(), Unwatched())
        yield (time.perf_counter() - start_s) / painter.painted_s - 1
        if time.monotonic() > end_s:
            return


class _Sleeper(FakeBackend):
    """Is busy for its time with next to no processor; what it makes is part of that time."""

    def paint(
        self,
        recipes: Sequence[Recipe],
        placement: Placement,  # noqa: ARG002 (protocol)
        watch: Watch,  # noqa: ARG002 (protocol)
    ) -> tuple[Outcome, ...]:
        end_s = time.monotonic() + _BATCH_S
        pictures = tuple(_noise(recipe) for recipe in recipes)
        time.sleep(max(0.0, end_s - time.monotonic()))
        return pictures


def _noise(recipe: Recipe) -> Pixels:
    """Return a picture with flat fields."""
    generator = np.random.Generator(np.random.PCG64(recipe.seed))
    fields = generator.integers(0, 256, (16, 16, 3), np.uint8)
    return fields.repeat(recipe.height // 16, axis=0).repeat(recipe.width // 16, axis=1)


class _Crowd(FakeBackend):
    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def begin(
        self,
        on_join: Callable[[str, Backend], None],
        on_leave: Callable[[str], None],  # noqa: ARG002 (protocol)
    ) -> None:
        for number in range(self._count):
            on_join(f"worker-{number}", _Sleeper())


def measure_crowd(num_workers: int, num_cells: int, most_s: float = _CROWD_S) -> Crowd:
    """Let painters that sleep paint a matrix into a library, and stop when the time is over."""
    painters = _Crowd(num_workers)
    request = Request(prompt="a", seeds=tuple(range(num_cells)), width=SIZE_PX, height=SIZE_PX)
    with (
        tempfile.TemporaryDirectory() as folder,
        Engine(painters, Library(Path(folder))) as engine,
    ):
        while engine.num_painters < num_workers:
            time.sleep(0.1)
        jobs = plan_grid(resolve(request, painters.card(None)))
        start_s, start_cpu_s = time.perf_counter(), _processor_s()
        run = engine.submit(jobs, owner="bench")
        quarter_mb = 0.0
        while not run.has_ended and time.perf_counter() < start_s + most_s:
            if not quarter_mb and len(run.finished) >= num_cells / 4:
                quarter_mb = _resident_mb()
            time.sleep(0.1)
        elapsed_s = time.perf_counter() - start_s
        cores = (_processor_s() - start_cpu_s) / elapsed_s
        num_saved = len(run.finished)
        num_batches = num_saved / LOCK_WIDTH
        return Crowd(
            num_saved=num_saved,
            elapsed_s=elapsed_s,
            busy=num_batches * _BATCH_S / (num_workers * elapsed_s),
            cores=cores,
            picture_ms=1000 * cores * elapsed_s / max(num_saved, 1),
            growth=_resident_mb() / quarter_mb if quarter_mb else float("nan"),
        )


def _packing_ms() -> float:
    """Return how much more processor time a picture of our own takes to be packed than a flat one.

    Both at the size that is measured here.
    """
    painted = sorted(EXAMPLES.glob("*.png"))[0]
    record, pixels = png.read_checked(painted)
    picture = Picture(
        pixels=pixels, recipe=record.recipe, passport=record.passport, lineage=record.lineage
    )
    return _processor_ms(picture) - _processor_ms(replace(picture, pixels=_noise(record.recipe)))


def _processor_ms(picture: Picture, times: int = 20) -> float:
    start_s = time.process_time()
    for _ in range(times):
        png.encode(picture)
    return 1000 * (time.process_time() - start_s) / times


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
