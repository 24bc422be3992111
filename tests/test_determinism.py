"""Determinism levels: what they set, and that everything is put back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from seedgrid.diffusion import process
from seedgrid.diffusion.environment import current_switches, determinism


@pytest.fixture(autouse=True)
def torch_as_it_was() -> Iterator[None]:
    """Undo what a test sets as a user would."""
    algorithms = torch.get_deterministic_debug_mode()
    yield
    torch.set_deterministic_debug_mode(algorithms)
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.mkldnn.matmul.fp32_precision = "none"  # type: ignore[attr-defined]


def test_strict_demands_deterministic_algorithms() -> None:
    """Inside, torch raises where an operation has no deterministic form."""
    with determinism("strict"):
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.is_deterministic_algorithms_warn_only_enabled()
        assert torch.backends.cudnn.deterministic
        assert not torch.backends.cudnn.benchmark


@pytest.mark.parametrize("level", ["seeded", "strict"])
def test_float32_is_not_rounded_to_less(level: Any) -> None:
    """Neither TensorFloat-32 on a GPU nor bfloat16 inside a CPU's products."""
    torch.set_float32_matmul_precision("medium")
    with determinism(level):
        assert torch.get_float32_matmul_precision() == "highest"
        assert not torch.backends.cuda.matmul.allow_tf32
        assert not torch.backends.cudnn.allow_tf32


def test_off_touches_nothing() -> None:
    """The level off leaves every switch as it was found."""
    torch.backends.cudnn.benchmark = True
    before = current_switches()
    with determinism("off"):
        assert current_switches() == before


@pytest.mark.parametrize("level", ["off", "seeded", "strict"])
@pytest.mark.parametrize(
    "prepare",
    [
        partial(torch.use_deterministic_algorithms, True, warn_only=True),
        partial(setattr, torch.backends.cudnn, "allow_tf32", False),  # By its older name.
        partial(setattr, torch.backends.mkldnn.matmul, "fp32_precision", "bf16"),
    ],
    ids=["warn only", "TF32", "precision"],
)
def test_every_switch_is_put_back(prepare: Callable[[], None], level: Any) -> None:
    """Whatever a user had set is set again afterwards, also after an error."""
    prepare()
    before = current_switches()
    with pytest.raises(KeyError), determinism(level):
        raise KeyError
    assert current_switches() == before


def test_a_processor_that_has_only_a_number_is_named_by_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Else two kinds of ARM look alike to verify."""
    (tmp_path / "cpuinfo").write_text("CPU architecture: 8\nCPU part\t: 0xd0c\n")
    monkeypatch.setattr(process, "_CPU_INFO", tmp_path / "cpuinfo")
    assert process.processor_name() == "0xd0c"
