"""What a probe says, without probing."""

from __future__ import annotations

from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.probe_results import Check, ProbeReport


def report_for(recipe: Recipe, *, tested: int) -> ProbeReport:
    """A report that the lock of recipes like this one holds up to a width."""
    check = Check(name="x", lock_width=tested, holds=True, differing=0, compared=9)
    return ProbeReport(
        model=recipe.model.id,
        weights_sha256=recipe.model.weights_sha256,
        dtype=recipe.dtype,
        size="64x64",
        scheduler=recipe.scheduler,
        asked_width=recipe.lock_width,
        tested_width=tested,
        num_inference_steps=recipe.num_inference_steps,
        tested_at="2026-11-21T12:00:00+00:00",
        checks=(check,),
        elapsed_s=0.1,
    )
