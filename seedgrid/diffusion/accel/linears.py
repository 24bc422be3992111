"""Compute linear layers by oneDNN where that gives the very bits of torch's own way, sooner.

In float32 torch multiplies with MKL, which leaves half of an AMD processor's vector unit unused;
oneDNN, part of torch as well, does not. Both add up a row's products one after another, but MKL
puts each partial sum of some 192 of them away before it goes on. Asked for the same partial sums,
oneDNN rounds alike: twice as fast and not one bit apart (docs/log.md). MKL says nowhere how it
cuts, so each shape of layer is tried once in a process, on made-up numbers and on the layer's own,
and takes torch's way unless every bit is equal and the time is less. Knows nothing of recipes.

    with linears.used_by(pipeline, context=passport.digest):
        pipeline(["a red fox"] * 4)
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import pairwise
from typing import Any, Final

import torch
from torch.nn import functional

from seedgrid.diffusion.generators import fresh_generators

logger = logging.getLogger(__name__)

Way = Callable[[torch.Tensor, torch.Tensor, torch.Tensor | None], torch.Tensor]
"""From rows (…, K), weights (N, K) and biases (N) to (…, N), as `torch.nn.functional.linear`."""

MIN_ROWS: Final = 64
"""Fewer rows are computed too soon to gain by it."""

_BLOCK: Final = 192
_GAIN: Final = 0.9
_NUM_NUMBERS: Final = 65_521  # A prime: no two rows of made-up numbers are alike.


class Accelerator:
    """What was found for each shape of linear layer, in each context."""

    is_probed = True

    def __init__(self) -> None:
        self._ways: dict[tuple[object, ...], Way] = {}

    @contextmanager
    def used_by(self, pipeline: Any, context: str) -> Iterator[None]:
        """Let a pipeline's linear layers on the processor take the quicker way in the block."""
        layers = _layers(pipeline) if fits() else []
        for layer in layers:
            layer.__dict__["forward"] = partial(self._compute, layer, context)
        try:
            yield
        finally:
            for layer in layers:
                del layer.__dict__["forward"]

    def _compute(self, layer: torch.nn.Linear, context: str, rows: torch.Tensor) -> torch.Tensor:
        num_rows = rows.numel() // layer.in_features
        if num_rows < MIN_ROWS or rows.shape[-1] != layer.in_features or not _is_fit(rows):
            return torch.nn.Linear.forward(layer, rows)
        shape = (num_rows, layer.in_features, layer.out_features, layer.bias is None)
        way = self._ways.get((shape, context))
        if way is None:
            if not rows.isfinite().all():  # A probe's; NaN is equal to nothing, and proves nothing.
                return torch.nn.Linear.forward(layer, rows)
            way = self._ways[(shape, context)] = find_way(rows, layer.weight, layer.bias)
        return way(rows, layer.weight, layer.bias)


def find_way(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> Way:
    """Return the quickest way to compute a layer that gives torch's own bits.

    Args:
        rows: Shape (…, K), float32, contiguous.
        weight: Shape (N, K).
        bias: Shape (N), if any.
    """
    if not fits():
        return functional.linear
    made_up = (_numbers(rows), _numbers(weight), None if bias is None else _numbers(bias))
    for cuts in _cuts(rows.shape[-1]):
        way = partial(_by_onednn, cuts)
        if all(_agree(way, given) for given in (made_up, (rows, weight, bias))):
            plain_s = _seconds(functional.linear, rows, weight, bias)
            return way if _seconds(way, rows, weight, bias) < _GAIN * plain_s else functional.linear
    return functional.linear


def _agree(way: Way, given: tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]) -> bool:
    return torch.equal(way(*given), functional.linear(*given))


def _cuts(length: int) -> list[list[int]]:
    """Return where a sum of so many products may be cut, the end included; MKL's way first."""
    blocks = [*range(_BLOCK, length, _BLOCK), length]
    halves = [(length + 1) // 2, length]
    if length <= _BLOCK:
        return [[length]]
    return [halves, [length]] if length < 2 * _BLOCK else [blocks, [length]]


def _by_onednn(
    cuts: Sequence[int], rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    """Compute a layer as a sum of partial sums, each over the columns from one cut to the next."""
    if len(cuts) == 1:
        return _product(rows, weight, bias)
    part, part_weight = _columns(0, cuts[0], rows, weight)
    total = _product(part, part_weight, bias)
    for start, end in pairwise(cuts):
        part, part_weight = _columns(start, end, rows, weight)
        total = torch.ops.mkldnn._linear_pointwise.binary(part, total, part_weight, None, "add")
    return total


def _product(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    found: torch.Tensor = torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
    return found


def _columns(start: int, end: int, *matrices: torch.Tensor) -> list[torch.Tensor]:
    """Copy columns: oneDNN takes a thousand times as long for weights that are not in one piece."""
    return [matrix[..., start:end].contiguous() for matrix in matrices]


def _numbers(like: torch.Tensor) -> torch.Tensor:
    """Return random numbers in the shape of a tensor, the same each time."""
    (generator,) = fresh_generators((0,))
    some = torch.randn(_NUM_NUMBERS, generator=generator)
    return some.repeat(-(-like.numel() // _NUM_NUMBERS))[: like.numel()].reshape(like.shape)


def _seconds(
    way: Way, rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> float:
    """Return the shorter of two runs."""
    times = []
    for _ in range(2):
        start_s = time.perf_counter()
        way(rows, weight, bias)
        times.append(time.perf_counter() - start_s)
    return min(times)


def _layers(pipeline: Any) -> list[torch.nn.Linear]:
    """Return a pipeline's linear layers in float32 on the processor that nobody else listens to."""
    modules = (part for part in pipeline.components.values() if isinstance(part, torch.nn.Module))
    layers = (layer for part in modules for layer in part.modules())
    linear = (layer for layer in layers if type(layer) is torch.nn.Linear and _is_ours(layer))
    return list(dict.fromkeys(linear))  # Two parts may share one.


def _is_ours(layer: torch.nn.Linear) -> bool:
    weight = layer.weight
    on_processor = weight.device.type == "cpu" and weight.dtype == torch.float32
    return on_processor and weight.is_contiguous() and "forward" not in layer.__dict__


def _is_fit(rows: torch.Tensor) -> bool:
    return rows.is_cpu and rows.dtype == torch.float32 and rows.is_contiguous()


@cache
def fits() -> bool:
    """Tell whether this torch has the operator that is used here, which is private to it.

    Nothing public reaches oneDNN's linear layer: `torch.nn.functional.linear` goes to MKL, and
    `torch.utils.mkldnn` copies all weights. Without the operator layers are computed torch's way.
    """
    if not torch.backends.mkldnn.is_available():
        return False
    one = torch.ones(1, 1)
    try:
        return _by_onednn([1, 2], torch.ones(1, 2), torch.ones(1, 2), None).equal(one + one)
    except (AttributeError, RuntimeError, TypeError) as error:
        reason = str(error).split("\n")[0][:200]
        logger.warning("torch %s: linear layers take torch's way: %s", torch.__version__, reason)
        return False
