"""Whether this process can paint, `/healthz`, and the length of the queue, `/metrics`.

For supervisors and containers, and as Prometheus reads it. On a public page `/metrics` is not there
unless it was asked for (`SEEDGRID_METRICS=1`): strangers should not see how many others paint.

{"status": "ok", "model": {"name": "bundled", "state": "ready"}, "queue": {"waiting": 0, …}}
"""

from collections.abc import Iterator
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

import seedgrid
from seedgrid.core.variables import is_on, is_public, is_zero_gpu
from seedgrid.studio import Studio
from seedgrid.web.server.headers import UNCACHED

_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_METRICS: Final = {
    "queue_runs": "Runs that wait or go on.",
    "queue_seconds": "How long one worker would take for them, estimated.",
    "workers": "Workers that can paint; none where there is no cluster.",
}
"""By name, without `seedgrid_`: what a metric says."""


def health_route(studio: Studio) -> Route:
    """Return the address; 200 while the process can paint, 503 when its engine is lost."""

    def healthz(_: Request) -> Response:
        load, warmth = studio.engine.load, studio.engine.warmth
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
    now = {
        "queue_runs": studio.engine.load.num_waiting,
        "queue_seconds": studio.engine.load.left_s,
        "workers": studio.engine.num_painters,
    }
    for name, words in _METRICS.items():
        yield f"# HELP seedgrid_{name} {words}\n# TYPE seedgrid_{name} gauge\n"
        yield f"seedgrid_{name} {now[name]:.10g}\n"
