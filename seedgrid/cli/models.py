"""The command about models and LoRAs: what is here, fetch, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from seedgrid.cli import options
from seedgrid.cli.output import ProgressLine, complain, say, say_json
from seedgrid.core.errors import ModelError
from seedgrid.models import registry
from seedgrid.models.loras import LoraItem
from seedgrid.models.memory import size_text
from seedgrid.studio import Studio

if TYPE_CHECKING:
    from seedgrid.studio.model_manager import ManagedModel, ModelManager


def models(
    download: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="Fetch this model or LoRA from the hub first, or go on with it."
        ),
    ] = None,
    delete: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Delete this model or LoRA from the disk first."),
    ] = None,
    configure: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Fetch the configurations that this one file lacks."),
    ] = None,
    json: options.Json = False,
) -> None:
    """List the models and LoRAs on this machine; fetch one, or delete one."""
    with Studio() as studio:
        manager = studio.model_manager
        if delete is not None:
            freed = manager.delete(delete)
            complain(f"Deleted {delete}: {size_text(freed)} are free again.")
        if configure is not None:
            manager.configure(configure)
        if download is not None:
            _download(manager, download)
        for managed in manager.items():
            if json:
                say_json(_row(managed))
            else:
                _say_line(managed)
        for lora in manager.loras():
            if json:
                say_json(_lora_row(lora))
            else:
                _say_lora(lora)


def _download(manager: ModelManager, hub_id: str) -> None:
    """Fetch a model, saying how far it is; Ctrl+C stops, and what has come is kept."""
    manager.download(hub_id)
    with ProgressLine(hub_id, in_bytes=True) as line:
        try:
            while True:
                now = manager.downloads.wait(hub_id, timeout_s=0.2)
                line.show(now.num_bytes, total=now.total or None)
                if not now.goes_on:
                    break
        finally:
            manager.downloads.stop(hub_id)  # One that has ended is not touched.
    if now.error is not None:
        raise now.error


def _say_line(managed: ManagedModel) -> None:
    item = managed.item
    if item.problem is not None:
        say(f"{item.id:<40} {item.problem}  {item.path}")
        return
    needs = ", ".join(f"{name} {size / 1e9:.1f}" for name, size in item.needs.items())
    advice = f"use --dtype {item.fitting}" if item.fitting else "too much"
    fits = "" if managed.fits else f", needs GB of memory: {needs}: {advice}"
    licence = item.licence or "no licence told"
    family = item.family if item.is_tested else f"{item.family} (not tested here)"
    size, formats = f"{item.width}x{item.height}", "/".join(item.formats)
    say(
        f"{item.id:<40} {family}, {size}, {formats}, {size_text(item.num_bytes)},"
        f" {licence}{fits}  {item.path}"
    )


def _say_lora(lora: LoraItem) -> None:
    facts = [f"LoRA, {size_text(lora.num_bytes)}", lora.made_for, lora.licence]
    facts += [f"words for the prompt: {', '.join(lora.words)}"] if lora.words else []
    say(f"{lora.id:<40} {', '.join(filter(None, facts))}  {lora.path}")


def _lora_row(lora: LoraItem) -> dict[str, Any]:
    names = ("id", "hub_id", "made_for", "words", "licence")
    row = {name: getattr(lora, name) for name in names}
    return row | {"kind": "lora", "path": str(lora.path), "bytes": lora.num_bytes}


def _row(managed: ManagedModel) -> dict[str, Any]:
    """Return what `--json` says of a model; its weights are read for their digest."""
    item = managed.item
    row: dict[str, Any] = {"id": item.id, "revision": item.revision, "path": str(item.path)}
    row |= {"kind": item.kind, "bytes": item.num_bytes, "licence": item.licence}
    try:
        if item.problem is not None:
            raise item.problem
        card = registry.Model(id=item.id, revision=item.revision, path=item.path).card
    except ModelError as error:
        return row | {"problem": str(error)}
    lock = managed.lock
    return row | {
        "family": card.family,
        "size": f"{card.width}x{card.height}",
        "schedulers": card.schedulers,
        "weights_sha256": card.ref.weights_sha256,
        "formats": item.formats,
        "needs_bytes": next(iter(item.needs.values())),
        "needs": dict(item.needs),
        "fitting": item.fitting,
        "fits": managed.fits,
        "lock_tested": lock.tested_at[:10] if lock else None,
        "lock_holds": lock.holds if lock else None,
    }
