"""Going on from a picture with other settings: parity, verify and lineage on a real pipeline."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from painting import claims_of, plain_call

from seedgrid.studio import Studio
from seedgrid.verify.verifying import verify


def test_each_variation_equals_the_plain_call_with_its_settings(
    sd_studio: Studio, sd: Path
) -> None:
    """Guidance, steps and scheduler of its own in one round, each bit for bit, and verified so."""
    grid = sd_studio.grid("a fox", "0-1", width=64, height=64, num_inference_steps=2)
    finals = sd_studio.refine(grid[1], ["guidance 2", "steps 3", "negative: fog", ", artsy"])
    for final in finals:
        plain = plain_call(sd, [final.recipe] * 4)
        np.testing.assert_array_equal(np.asarray(final.image), plain[0])
    verdicts = verify(claims_of(*finals), sd_studio.backend)
    assert {found.verdict for found in verdicts} == {"identical"}
