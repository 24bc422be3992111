"""The command that offers this machine to a cluster."""

import os
from typing import Annotated

import typer


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
