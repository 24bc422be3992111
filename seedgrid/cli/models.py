"""The command about models: what is here, what to begin with, fetch, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from seedgrid.cli import options
from seedgrid.cli.output import BytesLine, complain, say, say_json
from seedgrid.core.errors import ModelError
from seedgrid.models import registry
from seedgrid.studio import Studio

if TYPE_CHECKING:
    from seedgrid.studio.shelf import Shelf, Shelved


def models(
    download: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Fetch this model from the hub first, or go on with it."),
    ] = None,
    delete: Annotated[
        str | None, typer.Option(metavar="NAME", help="Delete this model from the disk first.")
    ] = None,
    configure: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Fetch the configurations that this one file lacks."),
    ] = None,
    first: Annotated[
        bool, typer.Option("--first", help="List good first models to fetch, one of each family.")
    ] = False,
    json: options.Json = False,
) -> None:
    """List the models on this machine; fetch one, or delete one."""
    with Studio() as studio:
        shelf = studio.shelf
        if first:
            _list_first(shelf, json)
            return
        if delete is not None:
            freed = shelf.delete(delete)
            complain(f"Deleted {delete}: {freed / 1e6:,.1f} MB are free again.")
        if configure is not None:
            shelf.configure(configure)
        if download is not None:
            _download(shelf, download)
        for shelved in shelf.items():
            if json:
                say_json(_row(shelved))
            else:
                _say_line(shelved)


def _download(shelf: Shelf, hub_id: str) -> None:
    """Fetch a model, saying how far it is; Ctrl+C stops, and what has come is kept."""
    shelf.download(hub_id)
    with BytesLine(hub_id) as line:
        try:
            while True:
                now = shelf.wait(hub_id, timeout_s=0.2)
                line.show(now.num_bytes, now.total)
                if not now.goes_on:
                    break
        except BaseException:
            shelf.stop(hub_id)
            raise
    if now.error is not None:
        raise now.error


def _list_first(shelf: Shelf, json: bool) -> None:
    for each in shelf.first():
        if json:
            say_json(each.model_dump())
            continue
        terms = ", after agreeing to its terms" if each.gated else ""
        say(
            f"{each.id:<48} {each.family}, {each.size}, about {each.download_gb:g} GB to fetch,"
            f" {each.memory_gb:g} GB of memory, {each.licence}{terms}"
        )


def _say_line(shelved: Shelved) -> None:
    item = shelved.item
    if item.problem is not None:
        say(f"{item.id:<40} {item.problem}  {item.path}")
        return
    fits = "" if shelved.fits else f", needs {item.needs_bytes / 1e9:.1f} GB of memory: too much"
    licence = item.licence or "no licence told"
    size, formats = f"{item.width}x{item.height}", "/".join(item.formats)
    say(
        f"{item.id:<40} {item.family}, {size}, {formats}, {item.num_bytes / 1e6:,.0f} MB,"
        f" {licence}{fits}  {item.path}"
    )


def _row(shelved: Shelved) -> dict[str, Any]:
    """Return what `--json` says of a model; its weights are read for their digest."""
    item = shelved.item
    row: dict[str, Any] = {"id": item.id, "revision": item.revision, "path": str(item.path)}
    row |= {"kind": item.kind, "bytes": item.num_bytes, "licence": item.licence}
    try:
        if item.problem is not None:
            raise item.problem
        card = registry.Model(id=item.id, revision=item.revision, path=item.path).card
    except ModelError as error:
        return row | {"problem": str(error)}
    lock = shelved.lock
    return row | {
        "family": card.family,
        "size": f"{card.width}x{card.height}",
        "schedulers": card.schedulers,
        "weights_sha256": card.ref.weights_sha256,
        "formats": item.formats,
        "needs_bytes": item.needs_bytes,
        "fits": shelved.fits,
        "lock_tested": lock.tested_at[:10] if lock else None,
        "lock_holds": lock.holds if lock else None,
    }
