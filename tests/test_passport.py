"""The passport: all that was measured to change bits, as it is really in force."""

from __future__ import annotations

import os

import pytest
import torch
from command import run_python

from seedgrid.core.recipe import Passport
from seedgrid.diffusion.backend import Placement
from seedgrid.diffusion.environment import current_passport
from seedgrid.diffusion.process import LIMIT_NAMES

CPU = torch.device("cpu")


def test_no_field_of_it_is_left_empty() -> None:
    """Every field a passport knows is filled in, but for limits that nobody has set."""
    passport = current_passport(CPU, Placement())
    may_be_empty = {"instruction_limits", "vae_slicing", "vae_tiling"}
    for name in Passport.model_fields.keys() - may_be_empty:
        assert getattr(passport, name), name


def test_placement_is_part_of_it() -> None:
    """Memory format, slicing, tiling, offload and attention were all measured to change bits."""
    plain = current_passport(CPU, Placement())
    placements = [
        Placement(channels_last=True),
        Placement(vae_slicing=True),
        Placement(vae_tiling=True),
        Placement(offload="model"),
        Placement(attention="math"),
    ]
    digests = {current_passport(CPU, placement).digest for placement in placements}
    assert len(digests | {plain.digest}) == len(placements) + 1


@pytest.mark.sweep
def test_instruction_limits_are_those_of_the_start() -> None:
    """Libraries read them once, so what is set afterwards is not in force and not recorded."""
    program = (
        "import os, torch\n"
        "from seedgrid.diffusion.backend import Placement\n"
        "from seedgrid.diffusion.environment import current_passport\n"
        "os.environ['ONEDNN_MAX_CPU_ISA'] = 'SSE41'\n"
        "passport = current_passport(torch.device('cpu'), Placement())\n"
        "print(passport.instruction_limits, passport.cpu_capability)\n"
    )
    # NumPy's alone moved DPM2's pictures, and no passport told.
    limits = {"ATEN_CPU_CAPABILITY": "default", "NPY_DISABLE_CPU_FEATURES": "X86_V4"}
    clean = {name: value for name, value in os.environ.items() if name not in LIMIT_NAMES}
    done = run_python("-c", program, env=clean | limits)
    assert done.stdout.strip() == f"{limits} DEFAULT"
