"""Rules of whole layers: products, convolutions, attention, norms; and of noise."""

from typing import Any

import torch

from seedgrid.portable.attention import attention, softmax
from seedgrid.portable.contraction import convolution, linear, product
from seedgrid.portable.noise import normal
from seedgrid.portable.rules import refusal, rule
from seedgrid.portable.sums import folded, group_norm, layer_norm


@rule("_softmax")
def _softmax(x: torch.Tensor, dim: int, half_to_float: bool = False) -> torch.Tensor:
    return softmax(x.to(torch.float32), dim).to(torch.float32 if half_to_float else x.dtype)


@rule("_safe_softmax")
def _safe_softmax(x: torch.Tensor, dim: int, dtype: Any = None) -> torch.Tensor:
    return softmax(x.to(torch.float32), dim).to(dtype or x.dtype)


@rule("native_group_norm")
def _group_norm(
    x: torch.Tensor, weight: Any, bias: Any, _n: int, _c: int, _hw: int, group: int, eps: float
) -> tuple[torch.Tensor, ...]:
    return group_norm(x, weight, bias, group, eps)


@rule("native_layer_norm")
def _layer_norm(
    x: torch.Tensor, shape: Any, weight: Any, bias: Any, eps: float
) -> tuple[torch.Tensor, ...]:
    return layer_norm(x, shape, weight, bias, eps)


def _must_be_float32(*tensors: torch.Tensor | None) -> None:
    """Refuse contractions in other formats: version 1 defines float32 alone."""
    for tensor in tensors:
        if tensor is not None and tensor.dtype != torch.float32:
            raise refusal(f"a product of {str(tensor.dtype).removeprefix('torch.')}")


@rule("dot")
def _dot(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return folded(x.to(torch.float64) * y.to(torch.float64)).to(x.dtype)


@rule("bmm")
def _bmm(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    _must_be_float32(left, right)
    return product(left, right)


@rule("mm")
def _mm(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    _must_be_float32(left, right)
    return linear(left, right.t())


@rule("addmm")
def _addmm(
    added: torch.Tensor, left: torch.Tensor, right: torch.Tensor, *, beta: Any = 1, alpha: Any = 1
) -> torch.Tensor:
    _must_be_float32(left, right)
    result = linear(left, right.t())
    return _scaled_sum(result, added, beta, alpha)


@rule("baddbmm")
def _baddbmm(
    added: torch.Tensor, left: torch.Tensor, right: torch.Tensor, *, beta: Any = 1, alpha: Any = 1
) -> torch.Tensor:
    _must_be_float32(left, right)
    return _scaled_sum(product(left, right), added, beta, alpha)


def _scaled_sum(result: torch.Tensor, added: torch.Tensor, beta: Any, alpha: Any) -> torch.Tensor:
    if alpha != 1:
        result *= alpha
    if beta == 0:
        return result.add_(0.0)
    return result.add_(added if beta == 1 else added * beta).add_(0.0)


@rule("linear")
def _linear(x: torch.Tensor, weight: torch.Tensor, bias: Any = None) -> torch.Tensor:
    _must_be_float32(x, weight, bias)
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
    _must_be_float32(x, weight, bias)
    if transposed or x.dim() not in (3, 4):
        raise refusal(f"convolution transposed={transposed} dimensions={x.dim() - 2}")
    if x.dim() == 4:
        return convolution(x, weight, bias, stride, padding, dilation, groups)
    flat = convolution(
        x.unsqueeze(2),
        weight.unsqueeze(2),
        bias,
        (1, *stride),
        (0, *padding),
        (1, *dilation),
        groups,
    )
    return flat.squeeze(2)


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
    _must_be_float32(query, key, value)
    if dropout_p:
        raise refusal("dropout")
    if not enable_gqa and key.shape[-3] != query.shape[-3]:
        raise ValueError("heads differ without enable_gqa")
    return attention(query, key, value, attn_mask, is_causal, scale)


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
    """Solve the few equations of multistep solvers by Gauss-Jordan elimination with row pivots."""
    size = left.shape[-1]
    ends = right.reshape(size, -1).tolist()
    rows = [[*row, *end] for row, end in zip(left.tolist(), ends, strict=True)]
    for place in range(size):
        best = max(range(place, size), key=lambda row: abs(rows[row][place]))
        rows[place], rows[best] = rows[best], rows[place]
        for other in range(size):
            if other != place:
                share = rows[other][place] / rows[place][place]
                pairs = zip(rows[other], rows[place], strict=True)
                rows[other] = [mine - share * theirs for mine, theirs in pairs]
    solved = [[value / row[place] for value in row[size:]] for place, row in enumerate(rows)]
    result = torch.tensor(solved, dtype=torch.float64).reshape(right.shape).to(left)
    status = torch.zeros((), dtype=torch.int32)
    return result, left.clone(), torch.zeros(size, dtype=torch.int32), status
