"""The state of queue and workers: `/seedgrid/cluster` for the owner, `/metrics` for Prometheus.

On a public page neither is there unless it was asked for (`SEEDGRID_METRICS=1`): strangers should
not see how many others paint, nor the names of machines.
"""

from __future__ import annotations

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

Row = tuple[str, str, str, float]
"""A metric's name, its kind, its worker (empty: of all), its value."""


def metrics_routes(studio: Studio) -> list[Route]:
    """Return both addresses; none on a public page that does not want them."""
    if is_public() and not is_on("SEEDGRID_METRICS"):
        return []

    def metrics(_: Request) -> Response:
        text = "".join(_lines(_rows(studio)))
        return PlainTextResponse(text, headers=UNCACHED, media_type=_TYPE)

    def page(_: Request) -> Response:
        return HTMLResponse(_page(studio), headers=UNCACHED)

    return [Route("/metrics", metrics), Route("/seedgrid/cluster", page)]


def _rows(studio: Studio) -> Iterator[Row]:
    load, painters = studio.load, studio.painters
    yield "seedgrid_queue_runs", "gauge", "", load.num_waiting
    yield "seedgrid_queue_seconds", "gauge", "", load.left_s
    yield "seedgrid_workers", "gauge", "", len(painters)
    for kind, name, values in (
        ("gauge", "busy", [float(each.is_busy) for each in painters]),
        ("counter", "batches_total", [each.num_batches for each in painters]),
        ("counter", "pictures_total", [each.num_pictures for each in painters]),
        ("counter", "busy_seconds_total", [each.busy_s for each in painters]),
        ("counter", "seconds_total", [each.seen_s for each in painters]),
    ):
        for painter, value in zip(painters, values, strict=True):
            yield f"seedgrid_worker_{name}", kind, painter.name, value


def _lines(rows: Iterator[Row]) -> Iterator[str]:
    told = ""
    for name, kind, worker, value in rows:
        if name != told:
            yield f"# TYPE {name} {kind}\n"
            told = name
        words = worker.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        label = f'{{worker="{words}"}}' if worker else ""
        yield f"{name}{label} {value:.10g}\n"


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
