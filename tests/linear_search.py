"""Search for numbers with which a linear layer by oneDNN differs from torch's own way.

    python -m tests.linear_search [--seconds 60]

SeedGrid takes oneDNN's way for a shape of layer when two trials gave torch's bits. Here every shape
that the small pipelines of all families have, and those of Stable Diffusion 1.5, go through many
more numbers of many kinds: ordinary, wide in size, nearly cancelling, denormal, mostly zero. Once
as the processor is, and once as one with AVX2 only. Ends with 1 when a bit differs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from seedgrid.diffusion.accel import linears  # noqa: E402 (needs the path above)

Shape = tuple[int, int, int]
Numbers = Callable[[tuple[int, ...], torch.Generator], torch.Tensor]

AVX2: Final = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
}
# Rows, columns and outputs of Stable Diffusion 1.5's layers at 512 px in a guided batch of four.
LARGE: Final[tuple[Shape, ...]] = (
    (8 * 4096, 320, 320),
    (8 * 4096, 320, 2560),
    (8 * 4096, 1280, 320),
    (8 * 1024, 640, 640),
    (8 * 256, 1280, 1280),
    (8 * 77, 768, 320),
    (8 * 77, 768, 1280),
    (4 * 77, 768, 3072),
    (4 * 77, 3072, 768),
)


def _normal(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return torch.randn(shape, generator=generator)


def _wide(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return _normal(shape, generator) * torch.exp(8 * _normal(shape, generator))


def _cancelling(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    numbers = _normal(shape, generator)
    numbers[..., 1::2] = -numbers[..., : numbers.shape[-1] - numbers.shape[-1] % 2 : 2][
        ..., : numbers[..., 1::2].shape[-1]
    ]
    return numbers + 1e-6 * _normal(shape, generator)


def _denormal(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return _normal(shape, generator) * 1e-39


def _sparse(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return _normal(shape, generator) * (torch.rand(shape, generator=generator) < 0.02)


KINDS: Final[dict[str, Numbers]] = {
    "normal": _normal,
    "wide": _wide,
    "cancelling": _cancelling,
    "denormal": _denormal,
    "sparse": _sparse,
}


def shapes() -> Iterator[Shape]:
    """Go through the shapes of the linear layers that all families' small pipelines use."""
    from pipelines import build

    from tests.crossing import FAMILIES

    seen: set[Shape] = set()
    for family in FAMILIES:
        parts = (p for p in build(family).components.values() if isinstance(p, torch.nn.Module))
        for layer in (layer for part in parts for layer in part.modules()):
            if type(layer) is torch.nn.Linear:
                for rows in (64, 4 * 77, 8 * 77, 4 * 256, 8 * 1024):
                    seen.add((rows, layer.in_features, layer.out_features))
    yield from sorted(seen)
    yield from LARGE


def search(until: float) -> tuple[int, int, list[str]]:
    """Try until the time is over; return the shapes and trials counted, and what differs."""
    everything = list(shapes())
    differing: list[str] = []
    num_trials = 0
    taken: set[Shape] = set()
    seed = 0
    while time.time() < until:
        for shape in everything:
            for kind, numbers in KINDS.items():
                seed += 1
                num_trials += _try(shape, kind, numbers, seed, taken, differing)
                if time.time() > until:
                    break
    return len(taken), num_trials, differing


def _try(
    shape: Shape, kind: str, numbers: Numbers, seed: int, taken: set[Shape], differing: list[str]
) -> int:
    """Compare one product, where SeedGrid would take oneDNN's way; its speed is not asked for."""
    rows, columns, outputs = shape
    generator = torch.Generator("cpu").manual_seed(seed)
    given: Any = (
        numbers((rows, columns), generator),
        numbers((outputs, columns), generator) / columns**0.5,
        _normal((outputs,), generator),
    )
    made_up = tuple(linears._numbers(tensor) for tensor in given)
    num_trials = 0
    for cuts in linears._cuts(columns):
        way = partial(linears._by_onednn, cuts)
        usual = tuple(_normal(tensor.shape, generator) for tensor in given)
        if not (linears._agree(way, made_up) and linears._agree(way, usual)):
            continue
        taken.add(shape)
        num_trials += 1
        if not linears._agree(way, given):
            differing.append(f"{shape} {kind} seed {seed} cuts {cuts}")
        break
    return num_trials


def main() -> int:
    """Search here, then as a processor with AVX2 only."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--here", action="store_true")
    arguments = parser.parse_args()
    if not arguments.here:
        command = [sys.executable, "-m", "tests.linear_search", "--here"]
        command += ["--seconds", str(arguments.seconds / 2)]
        codes = []
        for limits in ({}, AVX2):
            environment = {**os.environ, **limits}
            codes.append(subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode)
        return max(codes)
    capability = torch.backends.cpu.get_cpu_capability()
    num_shapes, num_trials, differing = search(time.time() + arguments.seconds)
    sys.stdout.write(
        f"{capability}: {num_trials} products of {num_shapes} shapes, {len(differing)} differ\n"
    )
    for line in differing[:20]:
        sys.stdout.write(f"  {line}\n")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
