"""The benchmark itself: it takes turns, counts right, and compares like with like."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seedgrid.cli import main
from seedgrid.diffusion.backend import Placement
from seedgrid.studio import Studio
from tools.benchmarks import cluster
from tools.benchmarks.__main__ import _table
from tools.benchmarks.__main__ import main as benchmark
from tools.benchmarks.contest import Contest, Side, measure, run
from tools.benchmarks.plain import PlainScript


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


def test_the_table_says_yes_and_no(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With nothing to measure it is a head alone; each figure ends with its verdict."""
    benchmark(["--model=none", f"--json={tmp_path / 'found.json'}"])
    assert capsys.readouterr().out.split() == ["what", "found", "target", "reached"]
    assert json.loads((tmp_path / "found.json").read_text())["found"] == []
    rows = _table([measure("quick", 2.0, 1.0), measure("slow", 2.0, 3.0)])
    assert [row.split()[-1] for row in rows] == ["reached", "yes", "NO"]


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


def test_a_crowd_that_sleeps_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """All pictures of the matrix are saved, each batch is counted once."""
    monkeypatch.setattr(cluster, "_BATCH_S", 0.01)
    crowd = cluster.measure_crowd(num_workers=3, num_cells=24)
    assert crowd.num_saved == 24
    assert crowd.busy == pytest.approx(6 * 0.01 / (3 * crowd.elapsed_s))
