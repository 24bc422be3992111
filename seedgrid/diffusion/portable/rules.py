"""The table of operations: exact by nature, with a rule, or (by absence) refused.

An operation is exact when it moves numbers, compares them, works on whole numbers, or does a single
IEEE 754 operation a number. Everything else has a rule here that is made of such operations, or of
sums that are exact in any order. Names are those of torch's `aten` operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import torch

from seedgrid.diffusion.portable import activations, functions, norms
from seedgrid.diffusion.portable.attention import attention, softmax
from seedgrid.diffusion.portable.contraction import convolution, linear, product
from seedgrid.diffusion.portable.noise import normal
from seedgrid.diffusion.portable.refusal import refusal
from seedgrid.diffusion.portable.sums import folded, moved_last

Rule = Callable[..., Any]
TensorRule = Callable[..., torch.Tensor]

_EXACT_WORDS: Final = """
    view _unsafe_view reshape expand permute transpose t unsqueeze squeeze select slice split
    split_with_sizes unbind cat stack clone alias detach detach_ _to_copy copy_ copy lift_fresh
    lift_fresh_copy repeat flip roll index embedding gather index_select constant_pad_nd
    upsample_nearest1d upsample_nearest2d upsample_nearest3d _local_scalar_dense full full_like
    ones zeros empty empty_like new_ones new_zeros new_full new_empty ones_like zeros_like
    scalar_tensor fill_ zero_ where masked_fill masked_fill_ eq ne lt le gt ge eq_ logical_not
    logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_not bitwise_xor all any
    argmax argmin nonzero searchsorted isnan isinf isfinite tril triu tril_ triu_ diagonal unfold
    as_strided select_scatter slice_scatter empty_strided new_empty_strided resize_ set_ abs abs_
    neg neg_ floor floor_ ceil ceil_ round round_ trunc mul mul_ rand random_ sign __and__ __or__
    __xor__ __lshift__ __rshift__ bitwise_left_shift bitwise_right_shift _reshape_alias
    pixel_shuffle pixel_unshuffle equal is_same_size index_put index_put_ _index_put_impl_
    index_copy index_copy_ scatter scatter_ max min _linalg_check_errors repeat_interleave
    channel_shuffle reflection_pad2d replication_pad2d
"""
EXACT: Final = frozenset(_EXACT_WORDS.split())
"""Operations that give the same bits everywhere as torch computes them."""

RULES: Final[dict[str, Rule]] = {}
"""What is done in the place of all others; called with torch's arguments."""


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def add(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return add


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _in_doubles(function: Callable[..., Any]) -> TensorRule:
    """Make a rule of a function of functions.py: float64, rounded once to the tensor's type."""

    def compute(x: torch.Tensor, *rest: Any) -> torch.Tensor:
        dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
        value = np.asarray(function(x.detach().cpu().numpy(), *rest))
        return torch.from_numpy(np.array(value)).to(dtype).to(x.device)

    return compute


def _in_floats(function: activations.Function) -> TensorRule:
    """Make a rule of a function of activations.py: float32 in, float32 out."""

    def compute(x: torch.Tensor) -> torch.Tensor:
        return activations.in_pieces(function, x.to(torch.float32)).to(x.dtype)

    return compute


for _name in ("exp", "expm1", "log", "sin", "cos", "tan", "tanh", "sqrt", "atan", "acos"):
    RULES[_name] = _in_doubles(getattr(functions, _name))
RULES["rsqrt"] = _in_doubles(lambda x: 1.0 / functions.sqrt(x))
RULES["silu"] = _in_floats(activations.silu)
RULES["sigmoid"] = _in_floats(activations.sigmoid)


@_rule("gelu")
def _gelu(x: torch.Tensor, *, approximate: str = "none") -> torch.Tensor:
    is_tanh = approximate == "tanh"
    return _in_floats(activations.gelu_tanh if is_tanh else activations.gelu)(x)


@_rule("relu")
def _relu(x: torch.Tensor) -> torch.Tensor:
    return x.clamp_min(0) + 0


@_rule("pow")
def _pow(x: Any, y: Any) -> torch.Tensor:
    if not isinstance(x, torch.Tensor):
        return _in_doubles(lambda power: functions.power(x, power))(y)
    if isinstance(y, torch.Tensor):
        if y.dim():
            return _in_doubles(functions.power)(x, y.detach().cpu().numpy())
        y = y.item()
    if not x.is_floating_point() and isinstance(y, int):
        return torch.pow(x, y)
    if y == int(y) and 1 <= y <= 4:
        result = x.clone()
        for _ in range(int(y) - 1):
            result *= x
        return result
    return _in_doubles(functions.power)(x, y)


@_rule("reciprocal")
def _reciprocal(x: torch.Tensor) -> torch.Tensor:
    return torch.ones((), dtype=x.dtype, device=x.device) / x


@_rule("add")
def _add(x: Any, y: Any, *, alpha: float = 1) -> torch.Tensor:
    # x + alpha * y may be fused: two roundings, said apart.
    return torch.add(x, y if alpha == 1 else y * alpha)


@_rule("sub")
def _sub(x: Any, y: Any, *, alpha: float = 1) -> torch.Tensor:
    return torch.sub(x, y if alpha == 1 else y * alpha)


@_rule("rsub")
def _rsub(x: torch.Tensor, y: Any, alpha: float = 1) -> torch.Tensor:
    return torch.sub(y, x if alpha == 1 else x * alpha)


@_rule("div")
def _div(x: Any, y: Any, *, rounding_mode: str | None = None) -> torch.Tensor:
    if not isinstance(y, torch.Tensor) and _is_float(x):
        # Some devices multiply by 1 / y instead, which rounds once more.
        y = torch.full((1,) * x.dim(), y, dtype=x.dtype, device=x.device)
    return torch.div(x, y, rounding_mode=rounding_mode)


def _positive_zero(operation: Callable[..., torch.Tensor]) -> Rule:
    """Make a rule of one whose zeros may have either sign: they become positive."""

    def compute(x: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
        result = operation(x, *args, **options)
        return result.add_(0.0) if result.is_floating_point() else result

    return compute


for _name in ("clamp", "clamp_min", "clamp_max", "maximum", "minimum", "amax", "amin"):
    RULES[_name] = _positive_zero(getattr(torch, _name))


@_rule("addcmul")
def _addcmul(x: torch.Tensor, a: Any, b: Any, *, value: float = 1) -> torch.Tensor:
    term: torch.Tensor = a * b
    return x + (term if value == 1 else term * value)


@_rule("addcdiv")
def _addcdiv(x: torch.Tensor, a: Any, b: Any, *, value: float = 1) -> torch.Tensor:
    term: torch.Tensor = a / b
    return x + (term if value == 1 else term * value)


@_rule("lerp")
def _lerp(start: torch.Tensor, end: torch.Tensor, weight: Any) -> torch.Tensor:
    step: torch.Tensor = (end - start) * weight
    return start + step


def _dims(x: torch.Tensor, dim: Any) -> list[int]:
    if dim is None or (isinstance(dim, list | tuple) and not dim):
        return list(range(x.dim()))
    return [d % x.dim() for d in (dim if isinstance(dim, list | tuple) else [dim])]


def _kept(x: torch.Tensor, value: torch.Tensor, dims: list[int], keepdim: bool) -> torch.Tensor:
    """Give a reduced tensor its dimensions of length 1 back, if they are wanted."""
    if not keepdim:
        return value
    return value.reshape([1 if i in dims else n for i, n in enumerate(x.shape)])


@_rule("mean")
def _mean(
    x: torch.Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> torch.Tensor:
    dims = _dims(x, dim)
    count = math.prod(x.shape[d] for d in dims)
    value = folded(moved_last(x, dims)) / float(count)
    return _kept(x, value, dims, keepdim).to(dtype or x.dtype)


@_rule("sum")
def _sum(
    x: torch.Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> torch.Tensor:
    dims = _dims(x, dim)
    if not x.is_floating_point():
        return torch.sum(x, dims, keepdim, dtype=dtype)
    return _kept(x, folded(moved_last(x, dims)), dims, keepdim).to(dtype or x.dtype)


def _variance(
    x: torch.Tensor,
    dim: Any = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[torch.Tensor, list[int], bool]:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    dims = _dims(x, dim)
    terms = moved_last(x, dims)
    count = terms.shape[-1]
    terms = terms - (folded(terms.clone()) / float(count)).unsqueeze(-1)
    spared = (1 if unbiased else 0) if correction is None else correction
    return folded(terms.mul_(terms)) / float(count - spared), dims, keepdim


@_rule("var")
def _var(x: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
    value, dims, keepdim = _variance(x, *args, **options)
    return _kept(x, value, dims, keepdim).to(x.dtype)


@_rule("std")
def _std(x: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
    value, dims, keepdim = _variance(x, *args, **options)
    return _kept(x, norms.square_root(value), dims, keepdim).to(x.dtype)


@_rule("linalg_vector_norm")
def _vector_norm(
    x: torch.Tensor,
    ord: float = 2,  # noqa: A002 - torch's name
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> torch.Tensor:
    if ord != 2:
        raise refusal(f"linalg_vector_norm ord={ord}")
    dims = _dims(x, dim)
    terms = moved_last(x, dims)
    value = norms.square_root(folded(terms.mul_(terms)))
    return _kept(x, value, dims, keepdim).to(dtype or x.dtype)


def _running(multiply: bool) -> Rule:
    """Make the rule of a running sum or product: in order, in float64, rounded at the end."""

    def compute(x: torch.Tensor, dim: int, *, dtype: Any = None) -> torch.Tensor:
        if not x.is_floating_point():
            return (torch.cumprod if multiply else torch.cumsum)(x, dim, dtype=dtype)
        values = x.to(torch.float64).movedim(dim, 0).cpu().numpy()
        operation = np.multiply if multiply else np.add
        total = torch.from_numpy(operation.accumulate(values, axis=0))
        return total.movedim(0, dim).contiguous().to(dtype or x.dtype).to(x.device)

    return compute


RULES["cumsum"] = _running(False)
RULES["cumprod"] = _running(True)


@_rule("linspace")
def _linspace(
    start: float, end: float, steps: int, *, dtype: Any = None, device: Any = None, **_: Any
) -> torch.Tensor:
    values = np.arange(steps) * ((end - start) / max(steps - 1, 1)) + start
    if steps > 1:
        values[-1] = end
    return torch.from_numpy(values).to(dtype or torch.get_default_dtype()).to(device)


@_rule("arange")
def _arange(*limits: Any, dtype: Any = None, device: Any = None, **_: Any) -> torch.Tensor:
    if all(isinstance(limit, int) for limit in limits):
        return torch.arange(*limits, dtype=dtype, device=device)
    first, last, step = (0, limits[0], 1) if len(limits) == 1 else (*limits, 1)[:3]
    values = np.arange(math.ceil((last - first) / step)) * float(step) + float(first)
    return torch.from_numpy(values).to(dtype or torch.get_default_dtype()).to(device)


@_rule("_softmax")
def _softmax(x: torch.Tensor, dim: int, half_to_float: bool = False) -> torch.Tensor:
    return softmax(x.to(torch.float32), dim).to(torch.float32 if half_to_float else x.dtype)


@_rule("_safe_softmax")
def _safe_softmax(x: torch.Tensor, dim: int, dtype: Any = None) -> torch.Tensor:
    return softmax(x.to(torch.float32), dim).to(dtype or x.dtype)


@_rule("native_group_norm")
def _group_norm(
    x: torch.Tensor, weight: Any, bias: Any, _n: int, _c: int, _hw: int, group: int, eps: float
) -> tuple[torch.Tensor, ...]:
    return norms.group_norm(x, weight, bias, group, eps)


@_rule("native_layer_norm")
def _layer_norm(
    x: torch.Tensor, shape: Any, weight: Any, bias: Any, eps: float
) -> tuple[torch.Tensor, ...]:
    return norms.layer_norm(x, shape, weight, bias, eps)


def _must_be_float32(*tensors: torch.Tensor | None) -> None:
    """Refuse contractions in other formats: version 1 defines float32 alone."""
    for tensor in tensors:
        if tensor is not None and tensor.dtype != torch.float32:
            raise refusal(f"a product of {str(tensor.dtype).removeprefix('torch.')}")


@_rule("dot")
def _dot(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return folded(x.to(torch.float64) * y.to(torch.float64)).to(x.dtype)


@_rule("bmm")
def _bmm(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    _must_be_float32(left, right)
    return product(left, right)


@_rule("mm")
def _mm(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    _must_be_float32(left, right)
    return linear(left, right.t())


@_rule("addmm")
def _addmm(
    added: torch.Tensor, left: torch.Tensor, right: torch.Tensor, *, beta: Any = 1, alpha: Any = 1
) -> torch.Tensor:
    _must_be_float32(left, right)
    result = linear(left, right.t())
    return _scaled_sum(result, added, beta, alpha)


@_rule("baddbmm")
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


@_rule("linear")
def _linear(x: torch.Tensor, weight: torch.Tensor, bias: Any = None) -> torch.Tensor:
    _must_be_float32(x, weight, bias)
    return linear(x, weight, bias)


@_rule("convolution")
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


@_rule("scaled_dot_product_attention")
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


@_rule("randn")
def _randn(
    shape: Any, *, generator: Any = None, dtype: Any = None, device: Any = None, **_: Any
) -> torch.Tensor:
    if generator is None or dtype not in (None, torch.float32):
        raise refusal("randn without a generator, or not in float32")
    return normal(shape, generator).to(device)


@_rule("normal_")
def _normal(
    x: torch.Tensor, mean: float = 0, std: float = 1, *, generator: Any = None
) -> torch.Tensor:
    if generator is None or (mean, std) != (0, 1):
        raise refusal("normal_ without a generator, or not of deviation 1")
    return x.copy_(normal(x.shape, generator))


@_rule("_linalg_solve_ex")
def _solve(left: torch.Tensor, right: torch.Tensor, **_: Any) -> tuple[torch.Tensor, ...]:
    """Solve the few equations of multistep solvers: Gauss and Jordan's way with row pivots."""
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


def in_place(name: str) -> Rule | None:
    """Return the rule of an operation that overwrites its first argument, `silu_` for example."""
    plain = RULES.get(name.removesuffix("_"))
    if plain is None or not name.endswith("_"):
        return None

    def compute(x: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
        return x.copy_(plain(x, *args, **options))

    return compute
