"""The commands about this machine: doctor, bench, models."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

import seedgrid
from seedgrid.cli import options
from seedgrid.cli.output import ProgressLine, complain, say, say_json, say_table
from seedgrid.core.errors import InputError, ModelError
from seedgrid.diffusion.backend import Placement
from seedgrid.models import registry
from seedgrid.models.cards import size_text
from seedgrid.models.loras import LoraItem
from seedgrid.storage.files import nearest_folder
from seedgrid.studio import Studio, default_library, default_model

if TYPE_CHECKING:
    from seedgrid.studio.model_manager import ManagedModel, ModelManager

_LIBRARIES: Final = ("torch", "diffusers", "transformers", "accelerate", "gradio", "pillow")
_SELF_TEST_STEPS: Final = 2


def doctor(
    model: options.Model = None,
    device: options.Device = "auto",
    library: options.Library = None,
    json: options.Json = False,
) -> None:
    """Show this machine's libraries and settings, and whether a picture reproduces here."""
    folder = library or default_library()
    free = shutil.disk_usage(nearest_folder(folder.absolute())).free
    report: dict[str, Any] = {
        "seedgrid": seedgrid.__version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "versions": {name: _version(name) for name in _LIBRARIES},
        "model": model or default_model(),
        "library": str(folder),
        "library_free_gb": round(free / 1e9, 1),
    }
    report |= _test_one_picture(model, device)
    if json:
        say_json(report)
    else:
        for name, value in report.items():
            if isinstance(value, dict):
                say_table(name, value)
            else:
                say(f"{name:<22} {value}")
    if report["portable"] != "holds":
        complain(
            "Portable arithmetic gives other bits here: portable pictures made here are wrong."
        )
        raise typer.Exit(1)
    if not report["reproduces"]:
        complain("Painting one picture twice gave different bits: see `determinism` above.")
        raise typer.Exit(1)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _portable_self_test() -> str:
    """Compare the results of portable arithmetic on this machine with fixed hashes."""
    from seedgrid.models.shelf import bundled_folder
    from seedgrid.portable.selftest import check, check_grid

    folder = bundled_folder()
    wrong = (*check(), *(check_grid(folder) if folder.is_dir() else ()))
    return f"DIFFERENT: {', '.join(wrong)}" if wrong else "holds"


def _test_one_picture(model: str | None, device: str) -> dict[str, Any]:
    """Paint one picture twice in a temporary library, and compare the bits."""
    placement = Placement(device=device, previews=False)
    with (
        tempfile.TemporaryDirectory() as folder,
        Studio(model, folder, placement=placement) as studio,
    ):
        steps = min(_SELF_TEST_STEPS, studio.card().max_steps)
        start_s = time.monotonic()
        pictures = [
            studio.grid("a cat", seeds=[0], num_inference_steps=steps, fresh=True)[0]
            for _ in range(2)
        ]
        elapsed_s = time.monotonic() - start_s
        passport = pictures[0].passport
        return {
            "model_digest": pictures[0].recipe.model.weights_sha256,
            "device": passport.device,
            "device_name": passport.device_name,
            "cpu_capability": passport.cpu_capability,
            "threads": passport.threads,
            "precision": passport.precision,
            "determinism": passport.determinism,
            "attention": passport.attention,
            "portable": _portable_self_test(),
            "self_test_s": round(elapsed_s, 2),
            "reproduces": pictures[0].pixels_sha256 == pictures[1].pixels_sha256,
        }


def bench(context: typer.Context) -> None:
    """Measure SeedGrid beside plain diffusers; takes what python -m tools.benchmarks takes."""
    root = Path(seedgrid.__file__).resolve().parent.parent
    if not (root / "tools" / "benchmarks" / "__main__.py").is_file():
        raise InputError("bench_missing", field="bench", value=root / "tools" / "benchmarks")
    sys.path.insert(0, str(root))
    from tools.benchmarks.__main__ import main

    try:
        main(context.args)
    except SystemExit as end:  # After `--help`, or for a wrong argument.
        raise typer.Exit(2 if end.code else 0) from end


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
                say_json(_model_row(managed))
            else:
                _say_model(managed)
        for lora in manager.loras():
            if json:
                say_json(_lora_row(lora))
            else:
                _say_lora(lora)


def _download(manager: ModelManager, hub_id: str) -> None:
    """Download a model or LoRA, show progress; Ctrl+C stops, and the download can be resumed."""
    manager.download(hub_id)
    with ProgressLine(hub_id, in_bytes=True) as line:
        try:
            while True:
                progress = manager.downloads.wait(hub_id, timeout_s=0.2)
                line.show(progress.num_bytes, total=progress.total or None)
                if not progress.goes_on:
                    break
        finally:
            manager.downloads.stop(hub_id)  # No effect on a finished download.
    if progress.error is not None:
        raise progress.error


def _say_model(managed: ManagedModel) -> None:
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


def _model_row(managed: ManagedModel) -> dict[str, Any]:
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
    probe = managed.probe
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
        "lock_tested": probe.tested_at[:10] if probe else None,
        "lock_holds": probe.holds if probe else None,
    }
