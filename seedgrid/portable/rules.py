"""The names of torch's exact operations, and the table of rules for others.

Exact operations move numbers, compare them, compute with whole numbers, or do a single IEEE 754
operation for each number. A rule replaces an operation by IEEE operations in a fixed order, or by
sums that are exact in any order. Names are those of torch's `aten` operations. The rules of
element-wise operations are here, others in `layer_rules.py` and `reductions.py`.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import torch

from seedgrid.core.errors import RunError
from seedgrid.portable import activations, functions

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
EXACT: Final = frozenset(_EXACT_WORDS.split())  # Operations that give the same bits everywhere

RULES: Final[dict[str, Rule]] = {}  # By the operation's name; called with the operation's arguments


def rule(name: str) -> Callable[[Rule], Rule]:
    """Enter the decorated function into `RULES`."""

    def add(function: Rule) -> Rule:
        RULES[name] = function
        return function

    return add


def in_place(name: str) -> Rule | None:
    """Return the rule of an operation that overwrites its first argument, such as `silu_`."""
    plain = RULES.get(name.removesuffix("_"))
    if plain is None or not name.endswith("_"):
        return None

    def compute(x: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
        return x.copy_(plain(x, *args, **options))

    return compute


def refusal(name: str) -> RunError:
    """Return the error for an operation without a portable rule, by its name."""
    return RunError("portable_refused", value=name)


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _in_doubles(function: Callable[..., Any]) -> TensorRule:
    """Make a rule of a function of functions.py: in float64, rounded once to the tensor's dtype."""

    def compute(x: torch.Tensor, *rest: Any) -> torch.Tensor:
        dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
        value = np.asarray(function(x.detach().cpu().numpy(), *rest))
        return torch.from_numpy(np.array(value)).to(dtype).to(x.device)

    return compute


def _in_floats(function: activations.Function) -> TensorRule:
    """Make a rule of a function of activations.py: in float32."""

    def compute(x: torch.Tensor) -> torch.Tensor:
        return activations.in_pieces(function, x.to(torch.float32)).to(x.dtype)

    return compute


for _name in ("exp", "expm1", "log", "sin", "cos", "tan", "tanh", "sqrt", "atan", "acos"):
    RULES[_name] = _in_doubles(getattr(functions, _name))
RULES["rsqrt"] = _in_doubles(lambda x: 1.0 / functions.sqrt(x))
RULES["silu"] = _in_floats(activations.silu)
RULES["sigmoid"] = _in_floats(activations.sigmoid)


@rule("gelu")
def _gelu(x: torch.Tensor, *, approximate: str = "none") -> torch.Tensor:
    is_tanh = approximate == "tanh"
    return _in_floats(activations.gelu_tanh if is_tanh else activations.gelu)(x)


@rule("relu")
def _relu(x: torch.Tensor) -> torch.Tensor:
    return x.clamp_min(0) + 0  # Makes negative zeros positive


@rule("pow")
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


@rule("reciprocal")
def _reciprocal(x: torch.Tensor) -> torch.Tensor:
    return torch.ones((), dtype=x.dtype, device=x.device) / x


def _with_alpha(operation: TensorRule) -> Rule:
    """Make a rule of x + alpha * y or x - alpha * y, rounded twice; torch may round only once."""

    def compute(x: Any, y: Any, *, alpha: float = 1) -> torch.Tensor:
        return operation(x, y if alpha == 1 else y * alpha)

    return compute


RULES["add"] = _with_alpha(torch.add)
RULES["sub"] = _with_alpha(torch.sub)


@rule("rsub")
def _rsub(x: torch.Tensor, y: Any, alpha: float = 1) -> torch.Tensor:
    return torch.sub(y, x if alpha == 1 else x * alpha)


@rule("div")
def _div(x: Any, y: Any, *, rounding_mode: str | None = None) -> torch.Tensor:
    if not isinstance(y, torch.Tensor) and _is_float(x):
        # For a Python number, some devices multiply by 1 / y instead, which rounds twice.
        y = torch.full((1,) * x.dim(), y, dtype=x.dtype, device=x.device)
    return torch.div(x, y, rounding_mode=rounding_mode)


def _positive_zero(operation: Callable[..., torch.Tensor]) -> Rule:
    """Make a rule of an operation whose zeros differ in sign by machine: all become positive."""

    def compute(x: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
        result = operation(x, *args, **options)
        return result.add_(0.0) if result.is_floating_point() else result

    return compute


for _name in ("clamp", "clamp_min", "clamp_max", "maximum", "minimum", "amax", "amin"):
    RULES[_name] = _positive_zero(getattr(torch, _name))


@rule("addcmul")
def _addcmul(x: torch.Tensor, a: Any, b: Any, *, value: float = 1) -> Any:
    return RULES["add"](x, a * b, alpha=value)


@rule("addcdiv")
def _addcdiv(x: torch.Tensor, a: Any, b: Any, *, value: float = 1) -> Any:
    return RULES["add"](x, a / b, alpha=value)


@rule("lerp")
def _lerp(start: torch.Tensor, end: torch.Tensor, weight: Any) -> torch.Tensor:
    if isinstance(weight, torch.Tensor):
        raise refusal("lerp by a tensor")
    # From the nearer end, as torch does. Half way from minus infinity is minus infinity, not NaN.
    base, share = (start, weight) if weight < 0.5 else (end, weight - 1.0)
    step: torch.Tensor = (end - start) * share
    return base + step
