"""The commands that go on until they are stopped: ui, and worker, which offers this machine."""

import os
from typing import Annotated

import typer

from seedgrid.cli import options
from seedgrid.locales import locales


def ui(
    model: options.Model = None,
    library: options.Library = None,
    host: Annotated[
        str, typer.Option(envvar="SEEDGRID_HOST", help="Address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(envvar="SEEDGRID_PORT", min=0, max=65535, help="Port; 0 takes a free one."),
    ] = 7860,
    cluster: Annotated[
        str | None,
        typer.Option(help="Paint on a cluster: local, auto, or ray://HOST:PORT (docs/cluster.md)."),
    ] = None,
    lang: Annotated[str, typer.Option(help=f"auto, {', '.join(locales())}.")] = "auto",
) -> None:
    """Open the page; the same as `python app.py`."""
    from seedgrid.web.launch import main

    main(model=model, library=library, host=host, port=port, lang=lang, cluster=cluster)


def worker(
    cluster: Annotated[
        str | None,
        typer.Argument(
            metavar="ray://HOST:PORT", help="The cluster; without one, begin a new one."
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            envvar="SEEDGRID_WORKERS", min=0, help="How many here; one a GPU, or one, by default."
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Where a new cluster listens.")
    ] = 6379,
) -> None:
    """Let a cluster paint on this machine, until stopped."""
    from seedgrid.diffusion.away.ray_node import join

    if workers is not None:
        os.environ["SEEDGRID_WORKERS"] = str(workers)
    join(cluster, port=port)
