"""The command that measures SeedGrid beside plain diffusers, by `tools/benchmarks/`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

import seedgrid
from seedgrid.core.errors import InputError


def bench(
    model: Annotated[
        list[str] | None, typer.Option(help="bundled-256, sd-256 or sd-512; default: all.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds that count.")] = 7,
    only: Annotated[str, typer.Option(help="Only contests whose name holds this.")] = "",
    threads: Annotated[int | None, typer.Option(min=1, help="Of torch, on both sides.")] = None,
    processes: Annotated[bool, typer.Option(help="Memory and start-up as well.")] = False,
    cluster: Annotated[
        bool, typer.Option(help="Instead: what Ray costs, and a hundred workers (minutes).")
    ] = False,
    json: Annotated[Path | None, typer.Option(help="Write every measurement here.")] = None,
) -> None:
    """Measure SeedGrid beside plain diffusers, the same as python -m tools.benchmarks."""
    root = Path(seedgrid.__file__).resolve().parent.parent
    if not (root / "tools" / "benchmarks" / "__main__.py").is_file():
        raise InputError("bench_missing", field="bench", value=root / "tools" / "benchmarks")
    sys.path.insert(0, str(root))
    if cluster:
        from tools.benchmarks.cluster import main as measure_cluster

        measure_cluster(rounds)
        return
    from tools.benchmarks.__main__ import SETTINGS, main

    unknown = [name for name in model or () if name not in (*SETTINGS, "none")]
    if unknown:
        choices = ", ".join(SETTINGS)
        raise InputError("bench_unknown", field="model", value=unknown[0], choices=choices)
    arguments = [f"--rounds={rounds}", f"--only={only}", *(f"--model={m}" for m in model or ())]
    arguments += [f"--threads={threads}"] if threads else []
    arguments += ["--processes"] if processes else []
    arguments += [f"--json={json}"] if json else []
    main(arguments)
