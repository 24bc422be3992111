"""The guide's reference figures, and the same check on a model of the same architecture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from seedgrid.cli import main
from seedgrid.diffusion.reference import (
    CPU_FIGURE,
    GPU_FIGURE,
    TOLERANCE,
    ReferenceCheck,
    check_reference,
)
from seedgrid.models import registry

# Recorded on 2026-11-20 with torch 2.13 on an AMD EPYC; 1 to 3 threads and instruction limits down
# to SSE move it by at most 0.0003.
RECORDED = 1682.6533


def test_the_guides_computation_gives_the_recorded_figure(
    model_folder: Callable[[str], Path],
) -> None:
    """The architecture of google/ddpm-cifar10-32 with seeded weights, two DDIM steps, seed 0."""
    model = registry.find(str(model_folder("ddpm-cifar10")))
    check = check_reference(model, torch.device("cpu"))
    assert check.figure == pytest.approx(RECORDED, abs=TOLERANCE)
    assert check.expected == CPU_FIGURE
    assert not check.holds  # These are not the guide's weights.


@pytest.mark.parametrize(
    ("figure", "holds"),
    [(1491.1711, True), (1491.1713, True), (1491.2, False), (1389.8634, False)],
)
def test_the_tolerance_tells_rounding_from_another_noise(figure: float, *, holds: bool) -> None:
    """Agreed are both figures of CPU noise; that of a GPU's own generator is another noise."""
    for expected in (CPU_FIGURE, GPU_FIGURE):
        assert ReferenceCheck(device="cpu", figure=figure, expected=expected).holds == holds


def test_doctor_compares_with_the_guide(
    model_folder: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """`doctor --reference` names both figures; weights that are not the guide's exit 1."""
    folder = str(model_folder("ddpm-cifar10"))
    assert main(["doctor", "--reference", "--device", "cpu", "--model", folder]) == 1
    assert f"{CPU_FIGURE} ± {TOLERANCE}: does not hold" in capsys.readouterr().out


def test_doctor_says_where_the_weights_are_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without the guide's weights on this machine: one line, exit 2, nothing fetched."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert main(["doctor", "--reference"]) == 2
    printed = capsys.readouterr()
    assert "google/ddpm-cifar10-32" in printed.err
    assert printed.out == ""
