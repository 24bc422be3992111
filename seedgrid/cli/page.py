"""The command that opens the page: the same as `python app.py`."""

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
