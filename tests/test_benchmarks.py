"""The benchmark itself: it takes turns, counts right, and compares like with like."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seedgrid.cli import main
from seedgrid.diffusion.backend import Placement
from seedgrid.studio import Studio
from tools.benchmarks.plain import PlainScript


@pytest.mark.sweep
def test_both_sides_paint_the_same_pictures(sd: Path, tmp_path: Path) -> None:
    """What is timed is the same work: the plain script's files equal SeedGrid's, bit for bit."""
    script = PlainScript(sd, tmp_path / "plain", threads=1)
    settings = {"width": 32, "height": 32, "num_inference_steps": 2, "guidance_scale": 5.0}
    script.paint(["a red fox"] * 4, range(4), **settings)
    placement = Placement(previews=False, threads=1)
    with Studio(str(sd), tmp_path / "library", placement=placement) as studio:
        grid = studio.grid("a red fox", scheduler="DDIM", **settings)
        for number, picture in enumerate(grid):
            with Image.open(tmp_path / "plain" / f"{number}.png") as image:
                np.testing.assert_array_equal(np.asarray(image), np.asarray(picture.image))
    assert script.cpu_s() > 0
    script.close()


def test_an_unknown_benchmark_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """`seedgrid bench --model X` exits 2 with the names there are."""
    assert main(["bench", "--model", "huge"]) == 2
    assert "bundled-256" in capsys.readouterr().err
    assert main(["bench", "--rounds", "0"]) == 2
    assert "less than 1" in capsys.readouterr().err
