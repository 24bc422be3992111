"""NumPy and `math` for the modules of schedulers, whose tables are made outside torch.

Their logarithm, exponential and powers differ from processor to processor. Arrays made here use
those of functions.py; a function that is neither exact nor replaced is refused by name.

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

_OF_BOTH: Final[dict[str, Callable[..., Any]]] = {  # In NumPy and in `math`
    name: getattr(functions, name) for name in ("exp", "expm1", "log", "sin", "cos", "tan", "tanh")
}
_OWN: Final = _OF_BOTH | {
    "sqrt": functions.sqrt,
    "arctan": functions.atan,
    "power": functions.power,
    "float_power": functions.power,
}
# One IEEE operation a number, or none at all.
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
_MATH_OWN: Final = _OF_BOTH | {
    "atan": functions.atan,
    "acos": functions.acos,
    "pow": functions.power,
}
_MATH_EXACT_WORDS: Final = """
    sqrt pi e inf nan fabs copysign floor ceil trunc isnan isinf isfinite gcd lcm comb
"""
_MATH_EXACT: Final = frozenset(_MATH_EXACT_WORDS.split())


class PortableArray(np.ndarray):
    """An array whose functions and operators give the same bits everywhere."""

    __array_priority__ = 2000.0  # above a tensor's, so that sums of both are computed here

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [_plain(value) for value in inputs]
        if "out" in options:
            options["out"] = tuple(_plain(value) for value in options["out"])
        name = ufunc.__name__
        if name in _EXACT_UFUNCS and (method != "reduce" or name != "add"):
            return _own_kind(getattr(ufunc, method)(*plain, **options))
        if method == "reduce":
            return _own_kind(np.add.accumulate(*plain, **options)[-1])
        if name not in _OWN or method != "__call__":
            raise refusal(f"numpy.{name}")
        return _own_kind(_computed(_OWN[name], plain, options.get("out")))

    def item(self, *place: Any) -> Any:
        """Return one number, whose powers are portable too."""
        value = super().item(*place)
        return Number(value) if isinstance(value, float) else value


class Number(float):
    """A Python number taken out of a `PortableArray`."""

    def __pow__(self, other: Any, _: None = None) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return Number(functions.power(float(self), float(other)))


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.numpy()
    return value.view(np.ndarray) if isinstance(value, PortableArray) else value


def _own_kind(value: Any) -> Any:
    return value.view(PortableArray) if isinstance(value, np.ndarray) else value


def _computed(function: Callable[..., Any], inputs: list[Any], out: Any) -> Any:
    """Compute in float64 and round once to what NumPy would have given."""
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
    """Replaces a module: portable functions, exact ones, and a refusal for all others."""

    def __init__(
        self,
        module: types.ModuleType,
        own: dict[str, Callable[..., Any]],
        exact: frozenset[str],
        wrap: Callable[[Any], Any],
    ) -> None:
        super().__init__(module.__name__)
        self._module, self._own, self._exact, self._wrap = module, own, exact, wrap

    def __getattr__(self, name: str) -> Any:
        if name in self._own:
            return self._wrapped(self._own[name])
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


def interp(x: Any, places: Any, values: Any) -> Any:
    """Interpolate as `numpy.interp`, by separate IEEE operations; `places` rise."""
    x, places, values = (np.asarray(_plain(v), dtype=np.float64) for v in (x, places, values))
    upper = np.clip(np.searchsorted(places, x, side="right"), 1, len(places) - 1)
    lower = upper - 1
    slope = (values[upper] - values[lower]) / (places[upper] - places[lower])
    between = slope * (x - places[lower]) + values[lower]
    between = np.where(x >= places[-1], values[-1], between)
    return _own_kind(np.where(x <= places[0], values[0], between))


def _ufunc(name: str) -> Callable[..., Any]:
    """Return a function that computes with `PortableArray` for any arguments."""
    ufunc = getattr(np, name)

    def call(*args: Any, **options: Any) -> Any:
        return ufunc(*(np.asarray(value).view(PortableArray) for value in args), **options)

    return call


def _to_number(value: Any) -> Any:
    return float(value) if isinstance(value, np.ndarray | np.floating) else value


_NUMPY: Final = _Module(
    np,
    {name: _ufunc(name) for name in (*_OWN, *_EXACT_UFUNCS) if hasattr(np, name)}
    | {"interp": interp, "sum": lambda x: _own_kind(np.add.accumulate(np.ravel(_plain(x)))[-1])},
    _EXACT_FUNCTIONS,
    _own_kind,
)
_MATH: Final = _Module(math, _MATH_OWN, _MATH_EXACT, _to_number)


@contextmanager
def portable_tables() -> Iterator[None]:
    """Let the loaded modules of diffusers' schedulers compute their tables portably."""
    with ExitStack() as stack:
        for name, module in list(sys.modules.items()):
            if name.startswith("diffusers.schedulers.scheduling_"):
                for alias, real, own in (("np", np, _NUMPY), ("math", math, _MATH)):
                    if getattr(module, alias, None) is real:
                        stack.callback(setattr, module, alias, real)
                        setattr(module, alias, own)
        yield
