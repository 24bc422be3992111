"""Exact sums have no order: every way to a convolution or a product gives the same bits."""

from __future__ import annotations

from collections.abc import Iterator

import painting
import pytest
import torch

from seedgrid.portable import contraction, convolution
from seedgrid.portable.grids import WeightCache, prepare_weights
from seedgrid.portable.selftest import numbers
from seedgrid.portable.windows import Windows


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with painting.one_thread():
        yield


def quiet(*shape: int) -> torch.Tensor:
    """Numbers with few large ones, as trained weights are."""
    return sum((numbers(*shape, seed=seed) for seed in range(7)), torch.zeros(shape))


def convolved(maps: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Convolve with zeros around the maps."""
    return convolution.convolution(maps, weights, None, (1, 1), (1, 1), (1, 1), 1)


@pytest.mark.parametrize("channels", [3, 96])
def test_winograds_way_and_rows_give_the_same_bits(
    channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixteen products for thirty-six, and not one bit of difference."""
    maps, weights = numbers(2, channels, 8, 6, seed=9), quiet(96, channels, 3, 3)
    assert convolution.prepare_kernel(weights, 1, winograd=True).is_transformed
    by_way = []
    for is_large in (True, False):
        monkeypatch.setattr(convolution, "suits_winograd", lambda *_, way=is_large: way)
        by_way.append(convolved(maps, weights))
    assert torch.equal(*by_way)


def test_winograds_way_is_for_large_even_maps_of_many_channels() -> None:
    """Small maps and few channels are as fast along rows."""
    same = Windows(kernel=(3, 3), padding=(1, 1))
    assert convolution.suits_winograd(torch.empty(1, 96, 64, 64), same)
    assert convolution.suits_winograd(torch.empty(4, 96, 32, 32), same)
    for shape in ((1, 96, 32, 32), (1, 95, 64, 64), (1, 96, 65, 64)):
        assert not convolution.suits_winograd(torch.empty(shape), same)
    assert not convolution.suits_winograd(torch.empty(1, 96, 64, 64), Windows(kernel=(3, 3)))


def test_winograds_way_is_not_taken_where_nothing_proves_it_exact() -> None:
    """Weights that are all as large as the largest could fill the 53 bits."""
    weights = torch.ones(96, 640, 3, 3) * 1.9
    assert convolution.transformed_weights(prepare_weights(weights.reshape(1, 96, 640, 9))) is None


@pytest.mark.parametrize("is_left", [True, False])
def test_product_keeps_what_is_small_beside_a_loud_index(*, is_left: bool) -> None:
    """Columns that do not read the loud index, or rows: as true as float32 can say them."""
    left, right = numbers(2, 5, 8) / 3, numbers(2, 8, 6, seed=2) / 3
    left[:, :, 1] *= 2.0**14
    right[:, 1] = 0.0
    if not is_left:
        left, right = right.mT, left.mT
    true = left.double() @ right.double()
    torch.testing.assert_close(contraction.product(left, right).double(), true, rtol=0, atol=1e-6)


def test_shelf_forgets_weights_with_their_parameter_and_never_holds_too_much() -> None:
    """Memory is bounded: what does not fit is made anew."""
    cache = WeightCache(max_bytes=8 * 12)
    small = torch.nn.Parameter(numbers(3, 4))
    large = torch.nn.Parameter(numbers(30, 40))

    def ready(weights: torch.Tensor) -> object:
        return cache.get(weights, lambda: prepare_weights(weights.detach()[None, :, :, None]))

    assert ready(small) is ready(small)
    assert ready(large) is not ready(large)
    del small
    other = torch.nn.Parameter(numbers(3, 4, seed=2))
    assert ready(other) is ready(other)
