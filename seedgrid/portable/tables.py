"""Portable stand-ins for NumPy and `math` in schedulers' modules, which compute tables by them.

The logarithms, exponentials and powers of NumPy and `math` differ from processor to processor. The
stand-ins use those of functions.py; a function that is neither exact nor replaced is refused.

    with portable_tables():
        scheduler = DDIMScheduler(...)
"""

import math
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import numpy as np
import torch

from seedgrid.portable import functions
from seedgrid.portable.rules import refusal

# Replacements for functions that both NumPy and `math` have; then all replacements for NumPy's
_SHARED: Final[dict[str, Callable[..., Any]]] = {
    name: getattr(functions, name) for name in ("exp", "expm1", "log", "sin", "cos", "tan", "tanh")
}
_UFUNCS: Final = _SHARED | {
    "sqrt": functions.sqrt,
    "arctan": functions.atan,
    "power": functions.power,
    "float_power": functions.power,
}
# Functions with at most one IEEE operation for each number
_EXACT_UFUNCS_WORDS: Final = """
    add subtract multiply divide negative positive absolute fabs floor ceil rint trunc maximum
    minimum greater greater_equal less less_equal equal not_equal logical_and logical_or
    logical_not isnan isinf isfinite sign copysign bitwise_and clip square
"""
_EXACT_UFUNCS: Final = frozenset(_EXACT_UFUNCS_WORDS.split())
_EXACT_FUNCTIONS_WORDS: Final = """
    arange array asarray concatenate flip tile repeat stack newaxis clip round zeros ones full
    zeros_like ones_like empty full_like linspace append where searchsorted ndarray float32
    float64 int64 int32 dtype inf nan pi integer floating prod cumsum ndim shape isscalar
    expand_dims squeeze atleast_1d roll argmin argmax diff bool_ isclose
"""
_EXACT_FUNCTIONS: Final = frozenset(_EXACT_FUNCTIONS_WORDS.split())
_MATH_FUNCTIONS: Final = _SHARED | {
    "atan": functions.atan,
    "acos": functions.acos,
    "pow": functions.power,
}
_MATH_EXACT_WORDS: Final = """
    sqrt pi e inf nan fabs copysign floor ceil trunc isnan isinf isfinite gcd lcm comb
"""
_MATH_EXACT: Final = frozenset(_MATH_EXACT_WORDS.split())


class PortableArray(np.ndarray):
    """A NumPy array whose functions and operators give the same bits everywhere."""

    __array_priority__ = 2000.0  # Above a tensor's: this class computes with a tensor

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [_plain(value) for value in inputs]
        if "out" in options:
            options["out"] = tuple(_plain(value) for value in options["out"])
        name = ufunc.__name__
        if name in _EXACT_UFUNCS and (method != "reduce" or name != "add"):
            return _portable(getattr(ufunc, method)(*plain, **options))
        if (name, method) == ("add", "reduce"):
            return _portable(np.add.accumulate(*plain, **options)[-1])
        if name not in _UFUNCS or method != "__call__":
            raise refusal(f"numpy.{name}")
        return _portable(_computed(_UFUNCS[name], plain, options.get("out")))

    def item(self, *index: Any) -> Any:
        """Return one number, whose powers are portable too."""
        value = super().item(*index)
        return PortableFloat(value) if isinstance(value, float) else value


class PortableFloat(float):
    """A number taken out of a `PortableArray`."""

    def __pow__(self, other: Any, _: None = None) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return PortableFloat(functions.power(float(self), float(other)))


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.numpy()
    return value.view(np.ndarray) if isinstance(value, PortableArray) else value


def _portable(value: Any) -> Any:
    return value.view(PortableArray) if isinstance(value, np.ndarray) else value


def _computed(function: Callable[..., Any], inputs: list[Any], out: Any) -> Any:
    """Compute in float64, and round once to the dtype that NumPy's function would return."""
    kinds = [value.dtype if isinstance(value, np.ndarray) else type(value) for value in inputs]
    dtype = np.result_type(*kinds, *([np.float32] if len(inputs) == 1 else []))
    value = np.asarray(function(*inputs))
    if isinstance(inputs[0], np.ndarray) and inputs[0].dtype == np.float32:
        dtype = np.dtype(np.float32)
    result = value.astype(dtype if dtype.kind == "f" else np.float64)
    if out is None:
        return result
    out[0][...] = result
    return out[0]


class _Module(types.ModuleType):
    """Stands in for a module: has replaced functions and exact ones, and refuses all others.

    `wrap` is applied to the results of all functions.
    """

    def __init__(
        self,
        module: types.ModuleType,
        replaced: dict[str, Callable[..., Any]],
        exact: frozenset[str],
        wrap: Callable[[Any], Any],
    ) -> None:
        super().__init__(module.__name__)
        self._module, self._replaced, self._exact, self._wrap = module, replaced, exact, wrap

    def __getattr__(self, name: str) -> Any:
        if name in self._replaced:
            return self._wrapped(self._replaced[name])
        if name not in self._exact:
            raise refusal(f"{self._module.__name__}.{name}")
        value = getattr(self._module, name)
        if isinstance(value, type) or not callable(value):
            return value
        return self._wrapped(value)

    def _wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            return self._wrap(function(*args, **options))

        return call


def _interp(x: Any, xp: Any, fp: Any) -> Any:
    """Interpolate like `numpy.interp`, with the same parameters, by separate IEEE operations."""
    x, xp, fp = (np.asarray(_plain(value), dtype=np.float64) for value in (x, xp, fp))
    upper = np.clip(np.searchsorted(xp, x, side="right"), 1, len(xp) - 1)
    lower = upper - 1
    slope = (fp[upper] - fp[lower]) / (xp[upper] - xp[lower])
    between = slope * (x - xp[lower]) + fp[lower]
    between = np.where(x >= xp[-1], fp[-1], between)
    return np.where(x <= xp[0], fp[0], between)


def _ufunc(name: str) -> Callable[..., Any]:
    """Return a NumPy function that turns its arguments into `PortableArray`s."""
    ufunc = getattr(np, name)

    def call(*args: Any, **options: Any) -> Any:
        return ufunc(*(np.asarray(value).view(PortableArray) for value in args), **options)

    return call


def _to_number(value: Any) -> Any:
    return float(value) if isinstance(value, np.ndarray | np.floating) else value


def _sum(x: Any) -> Any:
    """Return the sum of all numbers, added in order."""
    return np.add.accumulate(np.ravel(_plain(x)))[-1]


_NUMPY: Final = _Module(
    np,
    {name: _ufunc(name) for name in (*_UFUNCS, *_EXACT_UFUNCS) if hasattr(np, name)}
    | {"interp": _interp, "sum": _sum},
    _EXACT_FUNCTIONS,
    _portable,
)
_MATH: Final = _Module(math, _MATH_FUNCTIONS, _MATH_EXACT, _to_number)


@contextmanager
def portable_tables() -> Iterator[None]:
    """Use the stand-ins in the block, in all loaded modules of diffusers' schedulers."""
    with ExitStack() as stack:
        for name, module in list(sys.modules.items()):
            if name.startswith("diffusers.schedulers.scheduling_"):
                for alias, real, portable in (("np", np, _NUMPY), ("math", math, _MATH)):
                    if getattr(module, alias, None) is real:
                        stack.callback(setattr, module, alias, real)
                        setattr(module, alias, portable)
        yield
