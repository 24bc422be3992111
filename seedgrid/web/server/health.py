"""/healthz: whether this process can paint, for supervisors, containers and load balancers.

{"status": "ok", "model": {"name": "bundled", "state": "ready"}, "queue": {"waiting": 0, …}}
"""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import seedgrid
from seedgrid.core.variables import is_zero_gpu
from seedgrid.studio import Studio
from seedgrid.web.server.headers import UNCACHED


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
