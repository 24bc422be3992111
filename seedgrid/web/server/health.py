"""Whether this process can paint, `/healthz`, and the state of queue and workers, `/metrics`.

For supervisors and containers, and as Prometheus reads it. On a public page `/metrics` is not there
unless it was asked for (`SEEDGRID_METRICS=1`): strangers should not see how many others paint, nor
the names of machines.

{"status": "ok", "model": {"name": "bundled", "state": "ready"}, "queue": {"waiting": 0, …}}
"""

from collections.abc import Iterator
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

import seedgrid
from seedgrid.core.variables import is_on, is_public, is_zero_gpu
from seedgrid.studio import PainterState, Studio
from seedgrid.web.server.headers import UNCACHED

_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_METRICS: Final = {
    "queue_runs": ("gauge", "Runs that wait or go on."),
    "queue_seconds": ("gauge", "How long one worker would take for them, estimated."),
    "workers": ("gauge", "Workers that can paint; none where there is no cluster."),
    "worker_busy": ("gauge", "1 while a worker paints."),
    "worker_batches_total": ("counter", "Batches that a worker painted."),
    "worker_pictures_total": ("counter", "Pictures that a worker painted."),
    "worker_busy_seconds_total": ("counter", "How long a worker was given batches to paint."),
    "worker_seconds_total": ("counter", "How long a worker has been there."),
}
"""By name, without `seedgrid_`: of which kind a metric is, and what it says."""


def health_route(studio: Studio) -> Route:
    """Return the address; 200 while the process can paint, 503 when its engine is lost."""

    def healthz(_: Request) -> Response:
        load, warmth = studio.load, studio.warmth
        state = "lent" if is_zero_gpu() else warmth.state
        said = {
            "status": "lost" if load.is_lost else "ok",
            "version": seedgrid.__version__,
            "engine": "lost" if load.is_lost else "busy" if load.num_waiting else "idle",
            "model": {"name": studio.card().ref.id, "state": state},
            "queue": {"waiting": load.num_waiting, "left_s": round(load.left_s, 1)},
        }
        return JSONResponse(said, status_code=503 if load.is_lost else 200, headers=UNCACHED)

    return Route("/healthz", healthz)


def metrics_routes(studio: Studio) -> list[Route]:
    """Return its address; none on a public page that does not want them."""
    if is_public() and not is_on("SEEDGRID_METRICS"):
        return []

    def metrics(_: Request) -> Response:
        text = "".join(_lines(studio))
        return PlainTextResponse(text, headers=UNCACHED, media_type=_TYPE)

    return [Route("/metrics", metrics)]


def _lines(studio: Studio) -> Iterator[str]:
    of_all = {
        "queue_runs": studio.load.num_waiting,
        "queue_seconds": studio.load.left_s,
        "workers": len(studio.painters),
    }
    of_each = [(_label(each.name), _of(each)) for each in studio.painters]
    for name, (kind, words) in _METRICS.items():
        yield f"# HELP seedgrid_{name} {words}\n# TYPE seedgrid_{name} {kind}\n"
        if name in of_all:
            yield f"seedgrid_{name} {of_all[name]:.10g}\n"
        else:
            yield from (f"seedgrid_{name}{label} {found[name]:.10g}\n" for label, found in of_each)


def _of(painter: PainterState) -> dict[str, float]:
    return {
        "worker_busy": painter.is_busy,
        "worker_batches_total": painter.num_batches,
        "worker_pictures_total": painter.num_pictures,
        "worker_busy_seconds_total": painter.busy_s,
        "worker_seconds_total": painter.seen_s,
    }


def _label(worker: str) -> str:
    words = worker.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'{{worker="{words}"}}'
