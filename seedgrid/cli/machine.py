"""The command about this machine: doctor."""

import os
import platform
import shutil
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import typer

import seedgrid
from seedgrid.cli import options
from seedgrid.cli.output import complain, say, say_json, say_table
from seedgrid.core.errors import InputError
from seedgrid.diffusion.backend import Placement
from seedgrid.storage.files import nearest_folder
from seedgrid.studio import Studio, default_library, default_model

_LIBRARIES: Final = ("torch", "diffusers", "transformers", "accelerate", "gradio", "pillow")
_SELF_TEST_STEPS: Final = 2


def doctor(
    model: options.Model = None,
    device: options.Device = "auto",
    library: options.Library = None,
    json: options.Json = False,
) -> None:
    """Say what this machine has, what is in force, and whether a picture reproduces here."""
    report = _describe_machine()
    report["model"] = model or default_model()
    folder = library or default_library()
    report["library"] = str(folder)
    there = nearest_folder(folder.absolute())
    report["library_free_gb"] = round(shutil.disk_usage(there).free / 1e9, 1)
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


def _describe_machine() -> dict[str, Any]:
    return {
        "seedgrid": seedgrid.__version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "versions": {name: _version(name) for name in _LIBRARIES},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _portable_self_test() -> str:
    """Compare this machine's portable arithmetic with the hashes that never change."""
    from seedgrid.models.shelf import bundled_folder
    from seedgrid.portable.selftest import check, check_grid

    folder = bundled_folder()
    wrong = (*check(), *(check_grid(folder) if folder.is_dir() else ()))
    return f"DIFFERENT: {', '.join(wrong)}" if wrong else "holds"


def _test_one_picture(model: str | None, device: str) -> dict[str, Any]:
    """Paint one picture twice in a library of its own, and compare the bits."""
    placement = Placement(device=device, previews=False)
    with (
        tempfile.TemporaryDirectory() as folder,
        Studio(model, folder, placement=placement) as studio,
    ):
        steps = min(_SELF_TEST_STEPS, studio.card().max_steps)
        start_s = time.monotonic()
        pictures = [
            studio.grid("a picture", seeds=[0], num_inference_steps=steps, fresh=True)[0]
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
    except SystemExit as end:  # It was asked for help, or for what there is not.
        raise typer.Exit(2 if end.code else 0) from end
