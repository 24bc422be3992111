"""Exact sums have no order: every way to a convolution or a product gives the same bits."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterator, Sequence

import pytest
import torch

from seedgrid.portable import contraction, portable, threads, windows, winograd
from seedgrid.portable.cases import numbers
from seedgrid.portable.grids import anchor, largest
from seedgrid.portable.trials import TRIES, Trials
from seedgrid.portable.weights import WeightCache, compact, make_ready
from seedgrid.portable.windows import Maps, Windows


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def quiet(*shape: int) -> torch.Tensor:
    """Numbers with few large ones, as trained weights are."""
    return sum((numbers(*shape, seed=seed) for seed in range(7)), torch.zeros(shape))


def convolved(
    maps: torch.Tensor,
    weights: torch.Tensor,
    monkeypatch: pytest.MonkeyPatch,
    *,
    in_squares: bool,
) -> torch.Tensor:
    """Convolve in Winograd's squares, or along rows."""
    offered: list[bool] = []

    def choose(_kind: Hashable, ways: Sequence[bool]) -> bool:
        offered.extend(ways)
        return in_squares

    monkeypatch.setattr(contraction.TRIALS, "choose", choose)
    result = contraction.convolution(maps, weights, None, (1, 1), (1, 1), (1, 1), 1)
    assert offered == [True, False]
    return result


@pytest.mark.parametrize("channels", [3, 96])
def test_winograds_way_and_rows_give_the_same_bits(
    channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixteen products for thirty-six, and not one bit of difference."""
    maps, weights = numbers(2, channels, 8, 6, seed=9), quiet(96, channels, 3, 3)
    assert contraction._make_kernel(weights, 1, in_squares=True).is_transformed
    by_winograd = convolved(maps, weights, monkeypatch, in_squares=True)
    assert torch.equal(convolved(maps, weights, monkeypatch, in_squares=False), by_winograd)


def test_each_way_is_tried_and_then_the_quickest_is_taken() -> None:
    """Whatever the first use cost, when caches were cold; another kind is tried anew."""
    took = {"near": iter([9.0, 1.0]), "far": iter([2.0, 2.0])}
    now = 0.0
    trials = Trials(clock=lambda: now)
    order = []
    for _ in range(2 * TRIES):
        way = trials.choose("kind", ("near", "far"))
        order.append(way)
        with trials.timed("kind", way):
            now += next(took[way])
    assert order == ["near", "near", "far", "far"]
    assert trials.choose("kind", ("near", "far")) == "near"
    with trials.timed("kind", "near"):
        now += 100  # A busy moment afterwards changes nothing.
    assert trials.choose("kind", ("near", "far")) == "near"
    assert trials.choose("kind", ("far",)) == "far"
    assert trials.choose("another", ("far", "near")) == "far"


def test_weights_are_kept_in_one_form_and_made_anew_for_another() -> None:
    """While ways are tried, no parameter takes the memory of two."""
    cache = WeightCache(max_bytes=8 * 12)
    weights = torch.nn.Parameter(numbers(3, 4))

    def ready(form: bool) -> object:
        return cache.get(weights, lambda: make_ready(weights.detach()[None, :, :, None]), form)

    first = ready(True)
    assert ready(True) is first
    second = ready(False)
    assert second is not first
    assert ready(False) is second


@pytest.mark.parametrize("tile_bytes", [1, 1 << 30])
@pytest.mark.parametrize("size", [(2, 4), (12, 6)])
def test_winograds_tiles_of_any_size_give_the_same_bits(
    size: tuple[int, int], tile_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a map is cut, and how many squares a tile has at least, changes the speed only."""
    maps, weights = numbers(3, 48, *size, seed=9), quiet(50, 48, 3, 3)
    monkeypatch.setattr(winograd, "_MIN_SQUARES", 1)
    monkeypatch.setattr(windows, "TILE_BYTES", tile_bytes)
    in_tiles = convolved(maps, weights, monkeypatch, in_squares=True)
    assert torch.equal(convolved(maps, weights, monkeypatch, in_squares=False), in_tiles)


def test_large_weights_are_kept_in_half_the_memory_where_that_holds_them_exactly() -> None:
    """Numbers on a grid and their sums have few bits; those that have more stay as they are."""
    matrix = make_ready(numbers(1, 800, 700, 1)).matrix
    short = compact(matrix)
    assert short.dtype == torch.float32
    assert torch.equal(short.to(torch.float64), matrix)
    assert compact(matrix / 3).dtype == torch.float64
    assert compact(matrix * 2.0**-150).dtype == torch.float64


def test_winograds_way_is_not_taken_where_nothing_proves_it_exact() -> None:
    """Weights that are all as large as the largest could fill the 53 bits."""
    weights = torch.ones(96, 640, 3, 3) * 1.9
    assert winograd.transformed_weights(make_ready(weights.reshape(1, 96, 640, 9))) is None


def test_pieces_are_spread_over_threads_that_compute_alone() -> None:
    """In order, with one of torch's threads each and the caller's no gradients."""
    torch.set_num_threads(3)

    def work(piece: int) -> tuple[int, int, bool]:
        inner = threads.spread(lambda part: part + 10, (piece, piece))  # computed where it is
        return inner[0], torch.get_num_threads(), torch.is_grad_enabled()

    with torch.no_grad(), threads.taken_from_torch():
        assert threads.spread(work, range(7)) == [(10 + piece, 1, False) for piece in range(7)]
        assert torch.get_num_threads() == 1  # Its own would wait at work for what comes next.
        assert len(threads.cuts(100, 100)) == 3
        with pytest.raises(ZeroDivisionError):
            threads.spread(lambda piece: 1 // piece, (1, 0, 2))
    assert torch.get_num_threads() == 3
    assert len(threads.cuts(100, 100)) == 1


@pytest.mark.parametrize(
    ("length", "most", "least"), [(7, 2, 1), (8, 8, 5), (1, 9, 1), (0, 9, 1), (100, 30, 9)]
)
def test_cuts_hold_everything_once(length: int, most: int, least: int) -> None:
    """Equal parts in order, none longer than is said, and an even share for every thread."""
    torch.set_num_threads(2)
    with threads.taken_from_torch():
        parts = threads.cuts(length, most, least)
    assert [place for part in parts for place in range(length)[part]] == list(range(length))
    assert all(part.stop - part.start <= most for part in parts)
    assert len(parts) == 1 or len(parts) % 2 == 0


@pytest.mark.parametrize("tile_bytes", [1, 5000, 60_000, 1 << 30])
@pytest.mark.parametrize("stride", [1, 2])
def test_tiles_of_any_size_give_the_same_bits(
    tile_bytes: int, stride: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a map is cut changes the speed only."""
    plain, matrix = numbers(3, 4, 9, 7), numbers(1, 5, 4, 9).to(torch.float64)
    walk = Windows(kernel=(3, 3), stride=(stride, stride), padding=(1, 1))
    anchors = anchor(largest(plain, (1, 2, 3))).expand(-1, 4, -1, -1)
    maps, bias = Maps(numbers=plain, anchors=anchors), numbers(5, seed=3)
    whole = windows.convolve(maps, matrix, bias, walk)
    monkeypatch.setattr(windows, "TILE_BYTES", tile_bytes)
    assert torch.equal(windows.convolve(maps, matrix, bias, walk), whole)


def test_sum_that_is_too_long_is_cut_at_the_same_places() -> None:
    """40,000 terms: two blocks, each exact, added in order."""
    left, right = (numbers(2, 40_000, seed=seed).to(torch.float64) for seed in (1, 2))
    first = (left[:, :32_768] * right[:, :32_768]).sum(1)
    second = (left[:, 32_768:] * right[:, 32_768:]).sum(1)
    product = contraction.exact_product(left, right.t())
    assert torch.equal(product.diagonal(), first + second)


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


def test_matrices_multiplied_at_a_time_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one or all together."""
    left, right = numbers(5, 7, 9) / 3, numbers(5, 9, 3, seed=2) / 3
    together = contraction.product(left, right)
    monkeypatch.setattr(contraction, "_ROWS_BYTES", 1)
    assert torch.equal(contraction.product(left, right), together)


def test_weights_that_change_are_made_ready_anew() -> None:
    """A weight written over in place is another weight."""
    layer = torch.nn.Linear(8, 4)
    inputs = numbers(3, 8)
    with portable():
        before = layer(inputs)
        layer.weight.mul_(2.0)
        assert torch.equal(layer(inputs), copy.deepcopy(layer)(inputs))
        assert not torch.equal(layer(inputs), before)


def test_shelf_forgets_weights_with_their_parameter_and_never_holds_too_much() -> None:
    """Memory is bounded: what does not fit is made anew."""
    cache = WeightCache(max_bytes=8 * 12)
    small = torch.nn.Parameter(numbers(3, 4))
    large = torch.nn.Parameter(numbers(30, 40))

    def ready(weights: torch.Tensor) -> object:
        return cache.get(weights, lambda: make_ready(weights.detach()[None, :, :, None]))

    assert ready(small) is ready(small)
    assert ready(large) is not ready(large)
    del small
    other = torch.nn.Parameter(numbers(3, 4, seed=2))
    assert ready(other) is ready(other)
