"""Rules of matrix products, convolutions, attention, noise and linear equations.

Noise is nearly that of `torch.randn`. A CPU generator (mt19937) gives the same integers everywhere,
but torch turns them into normal numbers by the processor's logarithm and cosine. Here the same
draws are used in the same order, so a seed gives nearly the same picture as without these rules.
"""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch

from seedgrid.portable import functions
from seedgrid.portable.contraction import attention, linear, product, softmax
from seedgrid.portable.convolution import convolution
from seedgrid.portable.functions import Doubles
from seedgrid.portable.reductions import folded
from seedgrid.portable.rules import refusal, rule

_BLOCK: Final = 16  # torch draws 16 or more numbers in blocks of 16, fewer in pairs

_MAX_SPARE: Final = 64
# By a generator's id: the generator, so that its id is not reused; its last pair's unused number
_spare: dict[int, tuple[torch.Generator, float]] = {}


@rule("_softmax")
def _softmax(x: torch.Tensor, dim: int, half_to_float: bool = False) -> torch.Tensor:
    return softmax(x.to(torch.float32), dim).to(torch.float32 if half_to_float else x.dtype)


@rule("_safe_softmax")
def _safe_softmax(x: torch.Tensor, dim: int, dtype: Any = None) -> torch.Tensor:
    return softmax(x.to(torch.float32), dim).to(dtype or x.dtype)


def _check_float32(*tensors: torch.Tensor | None) -> None:
    """Raise `portable_refused` for other number formats: version 1 defines only float32."""
    for tensor in tensors:
        if tensor is not None and tensor.dtype != torch.float32:
            raise refusal(f"a product of {str(tensor.dtype).removeprefix('torch.')}")


@rule("dot")
def _dot(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return folded(x.to(torch.float64) * y.to(torch.float64)).to(x.dtype)


@rule("bmm")
def _bmm(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    _check_float32(left, right)
    return product(left, right)


@rule("mm")
def _mm(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    _check_float32(left, right)
    return linear(left, right.t())


@rule("addmm")
def _addmm(
    added: torch.Tensor, left: torch.Tensor, right: torch.Tensor, *, beta: Any = 1, alpha: Any = 1
) -> torch.Tensor:
    return _scaled_sum(_mm(left, right), added, beta, alpha)


@rule("baddbmm")
def _baddbmm(
    added: torch.Tensor, left: torch.Tensor, right: torch.Tensor, *, beta: Any = 1, alpha: Any = 1
) -> torch.Tensor:
    return _scaled_sum(_bmm(left, right), added, beta, alpha)


def _scaled_sum(result: torch.Tensor, added: torch.Tensor, beta: Any, alpha: Any) -> torch.Tensor:
    """Return result * alpha + added * beta, with a rounding after each operation."""
    if alpha != 1:
        result *= alpha
    if beta == 0:
        return result.add_(0.0)
    return result.add_(added if beta == 1 else added * beta).add_(0.0)


@rule("linear")
def _linear(x: torch.Tensor, weight: torch.Tensor, bias: Any = None) -> torch.Tensor:
    _check_float32(x, weight, bias)
    return linear(x, weight, bias)


@rule("convolution")
def _convolution(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: Any,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    _output_padding: list[int],
    groups: int,
) -> torch.Tensor:
    _check_float32(x, weight, bias)
    if transposed or x.dim() not in (3, 4):
        raise refusal(f"convolution transposed={transposed} dimensions={x.dim() - 2}")
    if x.dim() == 4:
        return convolution(x, weight, bias, stride, padding, dilation, groups)
    maps, kernel = x.unsqueeze(2), weight.unsqueeze(2)
    geometry = (1, *stride), (0, *padding), (1, *dilation)
    return convolution(maps, kernel, bias, *geometry, groups).squeeze(2)


@rule("scaled_dot_product_attention")
def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    _check_float32(query, key, value)
    if dropout_p:
        raise refusal("dropout")
    if not enable_gqa and key.shape[-3] != query.shape[-3]:
        raise ValueError("heads differ without enable_gqa")
    return attention(query, key, value, attn_mask, is_causal, scale)


def normal(shape: Sequence[int], generator: torch.Generator) -> torch.Tensor:
    """Draw normal numbers; float32, on the CPU."""
    count = math.prod(shape)
    values = _in_blocks(count, generator) if count >= _BLOCK else _in_pairs(count, generator)
    return torch.from_numpy(values.astype(np.float32)).view(*shape)


def _in_blocks(count: int, generator: torch.Generator) -> Doubles:
    """Draw 16 or more normal numbers; after an incomplete block the last 16 are drawn again."""
    uniform = torch.rand(count, generator=generator, dtype=torch.float32).numpy()
    values = np.empty(count)
    whole = count - count % _BLOCK
    values[:whole] = _transformed(uniform[:whole])
    if whole < count:
        again = torch.rand(_BLOCK, generator=generator, dtype=torch.float32).numpy()
        values[count - _BLOCK :] = _transformed(again)
    return values


def _transformed(uniform: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> Doubles:
    """Apply Box and Muller's transform to blocks of 16 uniform numbers: 8 radii and 8 angles."""
    radii, angles = np.moveaxis(uniform.astype(np.float64).reshape(-1, 2, _BLOCK // 2), 1, 0)
    radius = functions.sqrt(functions.log(1.0 - radii) * -2.0)
    angle = angles * (2.0 * functions.PI)
    pair = (radius * functions.cos(angle), radius * functions.sin(angle))
    return np.stack(pair, 1).reshape(-1)


def _in_pairs(count: int, generator: torch.Generator) -> Doubles:
    """Draw fewer than 16 normal numbers, in pairs; an unused one is stored for the next draw.

    As in torch, the number stays stored if blocks are drawn in between.
    """
    values: list[float] = []
    while len(values) < count:
        _, spare = _spare.pop(id(generator), (generator, None))
        if spare is not None:
            values.append(spare)
            continue
        turn, uniform = torch.rand(2, generator=generator, dtype=torch.float64).tolist()
        radius = float(functions.sqrt(functions.log(np.float64(1.0 - uniform)) * -2.0))
        angle = 2.0 * functions.PI * turn
        values.append(radius * float(functions.cos(angle)))
        while len(_spare) >= _MAX_SPARE:
            del _spare[next(iter(_spare))]
        _spare[id(generator)] = (generator, radius * float(functions.sin(angle)))
    return np.array(values)


@rule("randn")
def _randn(
    shape: Any, *, generator: Any = None, dtype: Any = None, device: Any = None, **_: Any
) -> torch.Tensor:
    if generator is None or dtype not in (None, torch.float32):
        raise refusal("randn without a generator, or not in float32")
    return normal(shape, generator).to(device)


@rule("normal_")
def _normal(
    x: torch.Tensor, mean: float = 0, std: float = 1, *, generator: Any = None
) -> torch.Tensor:
    if generator is None or (mean, std) != (0, 1):
        raise refusal("normal_ without a generator, or not of deviation 1")
    return x.copy_(normal(x.shape, generator))


@rule("_linalg_solve_ex")
def _solve(left: torch.Tensor, right: torch.Tensor, **_: Any) -> tuple[torch.Tensor, ...]:
    """Solve a few linear equations, of multistep schedulers, by Gauss-Jordan elimination.

    The pivot of a column is its number of largest magnitude in the rows not used yet. Returns
    as many results as torch's operation; only the first, the solution, is computed.
    """
    size = left.shape[-1]
    right_rows = right.reshape(size, -1).tolist()
    rows = [[*row, *right_row] for row, right_row in zip(left.tolist(), right_rows, strict=True)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for other in range(size):
            if other != column:
                factor = rows[other][column] / rows[column][column]
                pairs = zip(rows[other], rows[column], strict=True)
                rows[other] = [value - factor * pivot_value for value, pivot_value in pairs]
    solved = [[value / row[column] for value in row[size:]] for column, row in enumerate(rows)]
    result = torch.tensor(solved, dtype=torch.float64).reshape(right.shape).to(left)
    status = torch.zeros((), dtype=torch.int32)
    return result, left.clone(), torch.zeros(size, dtype=torch.int32), status
