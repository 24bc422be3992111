"""The functions that run over whole feature maps, as fixed sequences of float32 operations.

Float64 would cost several times as much. They are within 3e-7 of the true value of sigmoid, normal
distribution and 2**t, which is less than the step of the grids (grids.py).
"""

from collections.abc import Callable
from typing import Final

import torch

from seedgrid.portable.threads import cuts, spread

PIECE: Final = 1 << 17  # Numbers computed at a time, to stay in the processor's cache

_LOG2_E: Final = 1.4426950216293335
_EXP2: Final = (  # 2**t on -0.5 … 0.5, relative error 1.8e-7; the constant term is 1
    0.001326472731307149,
    0.009671512991189957,
    0.05550733581185341,
    0.24022242426872253,
    0.6931470036506653,
    1.0,
)
_NORMAL_LIMIT: Final = 5.5
# The distribution function of a normal number: 0.5 + x numerator(x**2) / denominator(x**2).
_NORMAL_NUMERATOR: Final = (
    2.2749359729345997e-08,
    6.352125637931749e-06,
    0.00016882647469174117,
    0.004677265416830778,
    0.033852722495794296,
    0.398942232131958,
)
_NORMAL_DENOMINATOR: Final = (
    1.1975042752965237e-06,
    7.364777411567047e-05,
    0.0018844493897631764,
    0.028645915910601616,
    0.25152212381362915,
    1.0,
)
_TANH_CUBE: Final = 0.044714998453855515
_TANH_SCALE: Final = 1.5957691669464111  # 2 * sqrt(2 / pi)

Function = Callable[[torch.Tensor], torch.Tensor]


def polynomial(x: torch.Tensor, coefficients: tuple[float, ...]) -> torch.Tensor:
    """Evaluate by Horner's rule, the coefficient of the highest power first."""
    total = x * coefficients[0]
    for coefficient in coefficients[1:-1]:
        total.add_(coefficient).mul_(x)
    return total.add_(coefficients[-1])


def exp(x: torch.Tensor, factor: float = _LOG2_E) -> torch.Tensor:
    """Return e**x, or 2**(x * factor), for contiguous float32; between 2**-126 and 2**126."""
    t = (x * factor).clamp_(-126.0, 126.0)
    whole = t.round()
    t.sub_(whole)
    value = polynomial(t, _EXP2)
    # Added to the exponent's bits, a whole number multiplies by its power of two. NaN becomes 0 or
    # -2**31, whose lowest 9 bits are 0, too: NaN stays NaN.
    value.view(torch.int32).add_(whole.to(torch.int32), alpha=1 << 23)
    return value


def _growth(x: torch.Tensor, factor: float) -> torch.Tensor:
    return exp(x, factor).add_(1.0)


def silu(x: torch.Tensor) -> torch.Tensor:
    """Return x / (1 + e**-x)."""
    return x / _growth(x, -_LOG2_E)


def sigmoid(x: torch.Tensor) -> torch.Tensor:
    """Return 1 / (1 + e**-x)."""
    growth = _growth(x, -_LOG2_E)
    return torch.ones_like(growth).div_(growth)


def gelu(x: torch.Tensor) -> torch.Tensor:
    """Return x times the normal distribution at x, by a quotient of two polynomials."""
    near = x.clamp(-_NORMAL_LIMIT, _NORMAL_LIMIT)
    square = near * near
    numerator = polynomial(square, _NORMAL_NUMERATOR).mul_(near)
    return numerator.div_(polynomial(square, _NORMAL_DENOMINATOR)).add_(0.5).mul_(x)


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    """Return GELU's approximation by the hyperbolic tangent: x / (1 + e**-2z)."""
    z = (x * x).mul_(x).mul_(_TANH_CUBE).add_(x).mul_(_TANH_SCALE)
    return x / _growth(z, -_LOG2_E)


def in_pieces(function: Function, x: torch.Tensor) -> torch.Tensor:
    """Run a function over a tensor of any size piece by piece, in its own order in memory."""
    if x.numel() <= PIECE:
        return function(x.contiguous()).view(x.shape)
    dense = torch.empty_like(x)  # of the same layout where that has no gaps
    source = x if dense.stride() == x.stride() else x.contiguous()
    result = torch.empty_like(source)
    from_flat, to_flat = _flat(source), _flat(result)

    def compute(piece: slice) -> None:
        to_flat[piece] = function(from_flat[piece])

    spread(compute, cuts(from_flat.numel(), PIECE))
    return result


def _flat(x: torch.Tensor) -> torch.Tensor:
    """View a tensor without gaps as one row, in the order of its memory."""
    return x.as_strided((x.numel(),), (1,))
