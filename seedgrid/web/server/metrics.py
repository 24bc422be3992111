"""The state of queue and workers: `/seedgrid/cluster` for the owner, `/metrics` for Prometheus.

On a public page neither is there unless it was asked for (`SEEDGRID_METRICS=1`): strangers should
not see how many others paint, nor the names of machines.
"""

import html
from collections.abc import Iterator, Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from seedgrid.core.variables import is_on, is_public
from seedgrid.studio import PainterState, Studio
from seedgrid.web.server.headers import UNCACHED

_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_STYLE: Final = (
    "body { max-width: 52rem; margin: 2rem auto; padding: 0 1rem; font: 15px/1.5 system-ui; }"
    "h1 { font-size: 1.4rem; } div { overflow-x: auto; }"
    "table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }"
    "th, td { padding: 0.4rem 0.8rem; border-bottom: 1px solid #8884; text-align: right; }"
    "th { font-weight: 600; } th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; }"
)

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


def metrics_routes(studio: Studio) -> list[Route]:
    """Return both addresses; none on a public page that does not want them."""
    if is_public() and not is_on("SEEDGRID_METRICS"):
        return []

    def metrics(_: Request) -> Response:
        text = "".join(_lines(studio))
        return PlainTextResponse(text, headers=UNCACHED, media_type=_TYPE)

    def page(_: Request) -> Response:
        return HTMLResponse(_page(studio), headers=UNCACHED)

    return [Route("/metrics", metrics), Route("/seedgrid/cluster", page)]


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


def _page(studio: Studio) -> str:
    load, painters = studio.load, studio.painters
    runs = "1 run waits or goes on" if load.num_waiting == 1 else f"{load.num_waiting} runs"
    work = f"{runs}, about {load.left_s:.0f} seconds of one worker's work."
    heads = ("worker", "now", "batches", "pictures", "pictures a minute", "busy")
    head = "".join(f"<th>{each}</th>" for each in heads)
    table = f"<table><tr>{head}</tr>{''.join(map(_row, painters))}</table>"
    none = "<p>Pictures are painted in this process; there is no cluster.</p>"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="color-scheme" content="light dark">'
        '<meta name="viewport" content="width=device-width">'
        '<meta http-equiv="refresh" content="5"><title>SeedGrid: workers</title>'
        f"<style>{_STYLE}</style><h1>Workers</h1>"
        f"<p>{work if load.num_waiting else 'Nothing waits or goes on.'}</p>"
        f"<div>{table if painters else none}</div></html>"
    )


def _row(painter: PainterState) -> str:
    speed = 60 * painter.num_pictures / painter.busy_s if painter.num_pictures else None
    busy = painter.busy_s / painter.seen_s if painter.seen_s else 0.0
    cells: Sequence[str] = (
        html.escape(painter.name),
        "paints" if painter.is_busy else "waits",
        f"{painter.num_batches}",
        f"{painter.num_pictures}",
        "–" if speed is None else f"{speed:.1f}",
        f"{busy:.0%}",
    )
    return f"<tr>{''.join(f'<td>{each}</td>' for each in cells)}</tr>"
