"""Linear layers by oneDNN: sooner where it may be, and never another bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from painting import paint, plain_call, recipes_for
from torch.nn import functional

from seedgrid.diffusion.accel import linears
from seedgrid.diffusion.accel.linears import MIN_ROWS, Accelerator, find_way
from seedgrid.diffusion.determinism import restored
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.diffusion.generators import fresh_generators


@pytest.fixture
def every_exact_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take oneDNN's way wherever its bits allow, however long it takes on this machine."""
    monkeypatch.setattr(linears, "_GAIN", math.inf)


def numbers(*shape: int, seed: int) -> torch.Tensor:
    (generator,) = fresh_generators((seed,))
    return torch.randn(shape, generator=generator)


def pipeline_of(layer: torch.nn.Module) -> SimpleNamespace:
    """Something with components, as a pipeline of diffusers has."""
    return SimpleNamespace(components={"unet": torch.nn.Sequential(layer), "tokenizer": None})


@settings(max_examples=60, deadline=None)
@given(
    num_rows=st.integers(MIN_ROWS, 300),
    num_inputs=st.integers(1, 1300),
    num_outputs=st.integers(1, 200),
    has_bias=st.booleans(),
)
@pytest.mark.usefixtures("every_exact_way")
def test_a_layer_of_any_shape_gives_torchs_own_bits(
    num_rows: int, num_inputs: int, num_outputs: int, has_bias: bool
) -> None:
    """Other numbers than those that a shape was tried with give torch's bits too."""
    layer = torch.nn.Linear(num_inputs, num_outputs, bias=has_bias)
    found = Accelerator()
    with torch.no_grad():
        for seed in range(3):
            rows = numbers(2, num_rows, num_inputs, seed=seed)
            with found.used_by(pipeline_of(layer), "here"):
                assert torch.equal(layer(rows), functional.linear(rows, layer.weight, layer.bias))


def by_onednn(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A way that changes torch's own bits by hand: whether another's differ is the processor's."""

    def way(_cuts: object, rows: torch.Tensor, *weights: torch.Tensor | None) -> torch.Tensor:
        return change(functional.linear(rows, *weights))

    return way


def last_bit_off(found: torch.Tensor) -> torch.Tensor:
    found.view(-1)[-1:].view(torch.int32)[0] ^= 1
    return found


@pytest.mark.usefixtures("every_exact_way")
def test_a_way_that_rounds_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One bit of one number, and torch's way is taken; without it, the other one is."""
    rows, weight = numbers(128, 384, seed=1), numbers(96, 384, seed=2)
    monkeypatch.setattr(linears, "fits", lambda: True)
    monkeypatch.setattr(linears, "_by_onednn", by_onednn(lambda found: found))
    assert find_way(rows, weight, None) is not functional.linear
    monkeypatch.setattr(linears, "_by_onednn", by_onednn(last_bit_off))
    assert find_way(rows, weight, None) is functional.linear


def test_a_slower_way_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """However exact: where nothing is gained, torch's own way is taken."""
    monkeypatch.setattr(linears, "_GAIN", 0.0)
    assert find_way(numbers(128, 96, seed=1), numbers(96, 96, seed=2), None) is functional.linear


@pytest.mark.usefixtures("every_exact_way")
def test_zeros_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layer full of zeros agrees with every way; made-up numbers do not."""
    monkeypatch.setattr(linears, "fits", lambda: True)
    monkeypatch.setattr(linears, "_by_onednn", by_onednn(lambda found: 2 * found))
    assert find_way(torch.zeros(128, 384), torch.zeros(96, 384), None) is functional.linear


@pytest.mark.usefixtures("every_exact_way")
def test_other_switches_are_other_trials() -> None:
    """What was found in full precision is not believed in a lower one, nor after it."""
    layer, found = torch.nn.Linear(96, 96), Accelerator()
    rows = numbers(128, 96, seed=1)
    for precision in ("ieee", "bf16", "ieee"):
        with (
            torch.no_grad(),
            restored((("onednn_matmul_precision", precision),)),
            found.used_by(pipeline_of(layer), precision),
        ):
            assert torch.equal(layer(rows), functional.linear(rows, layer.weight, layer.bias))
    assert len(found._ways) == 2


@pytest.mark.usefixtures("every_exact_way")
def test_rows_that_are_no_numbers_decide_nothing() -> None:
    """A probe's NaN came first in a new process: the slow way was taken from then on."""
    layer = torch.nn.Linear(96, 96)
    found = Accelerator()
    with torch.no_grad(), found.used_by(pipeline_of(layer), "here"):
        layer(torch.full((128, 96), torch.nan))
        layer(numbers(128, 96, seed=1))
    (way,) = found._ways.values()
    assert way is not functional.linear


def test_layers_are_as_before_afterwards() -> None:
    """Whatever happens in the block."""
    layer = torch.nn.Linear(96, 96)
    with (
        pytest.raises(RuntimeError, match="shape"),
        Accelerator().used_by(pipeline_of(layer), "here"),
    ):
        layer(numbers(64, 95, seed=1))
    assert "forward" not in layer.__dict__


def test_a_layer_that_two_parts_share_is_given_back_once() -> None:
    """As a pipeline may have one text encoder under two names."""
    layer = torch.nn.Linear(96, 96)
    with Accelerator().used_by(
        SimpleNamespace(components={"first": layer, "second": layer}), "here"
    ):
        assert "forward" in layer.__dict__
    assert "forward" not in layer.__dict__


def test_a_layer_that_somebody_listens_to_is_left_alone() -> None:
    """Offloading puts a `forward` of its own before a layer's."""
    layer = torch.nn.Linear(96, 96)
    layer.forward = lambda rows: rows  # type: ignore[method-assign]
    with Accelerator().used_by(pipeline_of(layer), "here"):
        assert layer(numbers(64, 96, seed=1)).equal(numbers(64, 96, seed=1))
    assert "forward" in layer.__dict__


@pytest.mark.parametrize("family", ["sd", "sdxl", "sd3", "flux", "pixart-sigma"])
@pytest.mark.usefixtures("every_exact_way")
def test_pictures_are_those_of_plain_diffusers(
    family: str, model_folder: Callable[[str], Path]
) -> None:
    """With every exact way taken, and the shapes tried in one batch and used in the next."""
    backend, folder = DiffusersBackend(), model_folder(family)
    extra = {"use_resolution_binning": False} if family.startswith("pixart") else {}
    recipes = recipes_for(backend, folder)
    plain = plain_call(folder, recipes, **extra)
    for _ in range(2):
        for ours, theirs in zip(paint(backend, recipes), plain, strict=True):
            assert np.array_equal(ours, theirs)
