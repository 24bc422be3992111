"""Random portable recipes under random environments and widths: one hash each.

    python -m tests.portable sweep --count 200 --seed 7

Each recipe is painted three times in processes of other environments: alone, in a batch, in another
slot. Says which differ, which are refused, and the least PSNR from the plain picture. No clock.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pipelines
import torch

from seedgrid.core.errors import RunError
from seedgrid.models.schedulers import TABLE, make_scheduler, min_steps
from tests.portable.child import arguments, bundled, digest, paint, psnr_db

ROOT = Path(__file__).parent.parent.parent
FAMILIES = ("bundled", "sd", "sdxl", "sd3", "flux", "pixart", "lcm")
FLOWS = ("sd3", "flux")
WORDS = ("fox", "日本の狐", "", "a (red:1.3) fox 🦊", "x" * 300, "Füchse\nand\tcats")
ENVIRONMENTS: tuple[dict[str, str], ...] = (
    {"OMP_NUM_THREADS": "1"},
    {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "OMP_NUM_THREADS": "3"},
    {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-AVX2_Usable,-AVX2,-FMA4",
        "OMP_NUM_THREADS": "2",
    },
)


@dataclass(frozen=True, kw_only=True)
class Draw:
    """One random picture; sizes are odd ones, too."""

    family: str
    scheduler: str
    steps: int
    width: int
    height: int
    seed: int
    prompt: str
    guidance: float


def draws(count: int, seed: int) -> list[Draw]:
    """Return random pictures, the same for the same seed."""
    dice = random.Random(seed)
    found = []
    for _ in range(count):
        family = dice.choice(FAMILIES)
        sampling = "flow" if family in FLOWS else "noise"
        fitting = [name for name, row in TABLE.items() if sampling in row.samplings]
        if family == "lcm":
            fitting = ["LCM"]
        step = 16 if family in FLOWS else 8
        found.append(
            Draw(
                family=family,
                scheduler=dice.choice(fitting),
                steps=dice.randint(1, 5),
                width=dice.randrange(32, 97, step),
                height=dice.randrange(32, 97, step),
                seed=dice.randrange(2**32),
                prompt=dice.choice(WORDS),
                guidance=dice.choice((1.0, 2.0, 7.5)),
            )
        )
    return found
