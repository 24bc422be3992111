"""Turbo: what was left open is answered for speed, and stands in the recipe."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from seedgrid.core.recipe import Recipe
from seedgrid.core.request import Request, resolve
from seedgrid.diffusion import processor as described
from seedgrid.diffusion.processor import has_fast_bfloat16, processor_name
from seedgrid.studio import Studio
from seedgrid.studio.resolving import turbo_card
from seedgrid.testing.fake import FAKE_CARD, FakeBackend

CARD = dataclasses.replace(
    FAKE_CARD, schedulers=("DDIM", "DPM++ 2M"), scheduler="DDIM", num_inference_steps=25
)


@pytest.fixture
def processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A processor that says of itself what a test wants."""
    monkeypatch.setattr(described, "_CPU_INFO", tmp_path / "cpuinfo")
    return tmp_path / "cpuinfo"


@pytest.mark.parametrize(
    ("flags", "device", "is_fast"),
    [
        ("fpu avx512f avx512_bf16", "auto", True),
        ("fpu amx_bf16", "cpu", True),
        ("fpu avx2", "cpu", False),
        ("fpu avx2", "cuda", True),
        ("fpu avx512_bf16", "mps", False),
    ],
)
def test_sixteen_bits_where_they_are_fast(
    processor: Path, flags: str, device: str, is_fast: bool
) -> None:
    """The processor's own flags decide; GPUs of NVIDIA and Intel are always fast."""
    processor.write_text(f"model name\t: Some: Thing\nflags\t: {flags}\n")
    assert has_fast_bfloat16(device) is is_fast
    assert processor_name() == "Some: Thing"


def quickly(request: Request) -> Recipe:
    return resolve(request, turbo_card(CARD, request, has_fast_bfloat16=True))[0]


def test_a_quick_recipe() -> None:
    """Format, scheduler and six tenths of the steps are in the recipe."""
    recipe = quickly(Request(prompt="a fox"))
    assert (recipe.dtype, recipe.scheduler) == ("bfloat16", "DPM++ 2M")
    assert recipe.num_inference_steps == 15


def test_what_was_said_stays() -> None:
    """Turbo answers open questions only."""
    said = Request(prompt="a", dtype="float32", scheduler="DDIM", num_inference_steps=9)
    assert quickly(said) == resolve(said, CARD)[0]
    steps = dataclasses.replace(said, scheduler=None)
    assert quickly(steps).num_inference_steps == 9
    scheduler = dataclasses.replace(said, num_inference_steps=None)
    assert quickly(scheduler).num_inference_steps == 25


def test_a_refinement_of_a_turbo_picture_is_turbo(tmp_path: Path) -> None:
    """The recipe carries the choices on: the children have them too."""
    with Studio(library=tmp_path, backend=FakeBackend(card=CARD)) as studio:
        grid = studio.grid("a fox", seeds=[1], turbo=True, width=64, height=64)
        (child,) = studio.refine(grid[0], [", artsy"])
    assert (child.recipe.scheduler, child.recipe.num_inference_steps) == ("DPM++ 2M", 15)
