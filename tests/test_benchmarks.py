"""The benchmark itself: it takes turns, counts right, and compares like with like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks.contest import Contest, Side, run
from benchmarks.plain import PlainScript
from seedgrid.backend.base import Placement
from seedgrid.cli import main
from seedgrid.studio import Studio


def test_sides_take_turns_and_the_first_round_does_not_count() -> None:
    """Both go once to warm up, then once a round, and who goes first alternates."""
    log: list[tuple[str, int]] = []
    contest = Contest(
        name="a",
        target=None,
        plain=Side(go=lambda n: log.append(("plain", n))),
        ours=Side(go=lambda n: log.append(("ours", n))),
    )
    outcome = run(contest, rounds=2)
    assert log == [
        *[("plain", -1), ("ours", -1)],
        *[("plain", 0), ("ours", 0)],
        *[("ours", 1), ("plain", 1)],
    ]
    assert len(outcome.ours.wall_s) == len(outcome.plain.cpu_s) == 2


def test_the_ratio_is_the_median_of_the_rounds() -> None:
    """One slow round of a busy machine does not decide."""
    clocks = {"plain": _clock([1, 1, 1]), "ours": _clock([0.5, 9, 0.7])}
    contest = Contest(
        name="a",
        target=None,
        plain=Side(go=lambda _: None, cpu_s=clocks["plain"]),
        ours=Side(go=lambda _: None, cpu_s=clocks["ours"]),
    )
    assert run(contest, rounds=3).as_json()["cpu_ratio"] == 0.7


def _clock(steps: Sequence[float]) -> Callable[[], float]:
    """A clock that goes on by one of these steps between each two readings of a pair."""
    readings = iter([value for step in steps for value in (0.0, step)])
    return lambda: next(readings)


def test_both_sides_paint_the_same_pictures(
    model_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    """What is timed is the same work: the plain script's files equal SeedGrid's, bit for bit."""
    model = model_folder("sd")
    script = PlainScript(model, tmp_path / "plain", threads=1)
    settings = {"width": 32, "height": 32, "num_inference_steps": 2, "guidance_scale": 5.0}
    script.paint(["a red fox"] * 4, range(4), **settings)
    placement = Placement(previews=False, threads=1)
    with Studio(str(model), tmp_path / "library", placement=placement) as studio:
        grid = studio.grid(
            "a red fox",
            width=32,
            height=32,
            num_inference_steps=2,
            guidance_scale=5.0,
            scheduler="DDIM",
        )
        for number, picture in enumerate(grid):
            with Image.open(tmp_path / "plain" / f"{number}.png") as image:
                np.testing.assert_array_equal(np.asarray(image), np.asarray(picture.image))
    assert script.cpu_s() > 0
    script.close()


def test_an_unknown_benchmark_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """`seedgrid bench --model X` exits 2 with the names there are."""
    assert main(["bench", "--model", "huge"]) == 2
    assert "bundled-256" in capsys.readouterr().err
