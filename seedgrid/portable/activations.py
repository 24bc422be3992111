"""Activation functions of whole feature maps, as fixed sequences of float32 operations.

Float64 would take several times as long. Sigmoid, normal distribution and 2**t are within 3e-7 of
their true values, which is less than the step of the grids (grids.py).
"""

from collections.abc import Callable
from typing import Final

import torch

from seedgrid.portable.threads import cuts, spread

_PIECE: Final = 1 << 17  # Numbers computed at a time, to stay in the processor's cache

_LOG2_E: Final = 1.4426950216293335
_EXP2: Final = (  # 2**t on -0.5 … 0.5, relative error 1.8e-7; the constant term is 1
    0.001326472731307149,
    0.009671512991189957,
    0.05550733581185341,
    0.24022242426872253,
    0.6931470036506653,
    1.0,
)
# The normal distribution function is 0.5 + x numerator(x**2) / denominator(x**2), if |x| <= 5.5.
_NORMAL_LIMIT: Final = 5.5
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
    """Evaluate a polynomial by Horner's rule; the coefficient of the highest power comes first."""
    total = x * coefficients[0]
    for coefficient in coefficients[1:-1]:
        total.add_(coefficient).mul_(x)
    return total.add_(coefficients[-1])


def exp(x: torch.Tensor, factor: float = _LOG2_E) -> torch.Tensor:
    """Return 2**(x * factor), by default e**x, within 2**-126 … 2**126; x contiguous float32."""
    t = (x * factor).clamp_(-126.0, 126.0)
    whole = t.round()
    t.sub_(whole)
    value = polynomial(t, _EXP2)
    # Adding a whole number to the exponent's bits multiplies by a power of two. A NaN becomes the
    # whole number 0 or -2**31; its lowest 9 bits are 0, so nothing is added, and NaN stays NaN.
    value.view(torch.int32).add_(whole.to(torch.int32), alpha=1 << 23)
    return value


def _one_plus_exp_minus(x: torch.Tensor) -> torch.Tensor:
    return exp(x, -_LOG2_E).add_(1.0)


def silu(x: torch.Tensor) -> torch.Tensor:
    """Return x / (1 + e**-x)."""
    return x / _one_plus_exp_minus(x)


def sigmoid(x: torch.Tensor) -> torch.Tensor:
    """Return 1 / (1 + e**-x)."""
    divisor = _one_plus_exp_minus(x)
    return torch.ones_like(divisor).div_(divisor)


def gelu(x: torch.Tensor) -> torch.Tensor:
    """Return x times the normal distribution function of x, by a quotient of polynomials."""
    near = x.clamp(-_NORMAL_LIMIT, _NORMAL_LIMIT)
    square = near * near
    numerator = polynomial(square, _NORMAL_NUMERATOR).mul_(near)
    return numerator.div_(polynomial(square, _NORMAL_DENOMINATOR)).add_(0.5).mul_(x)


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    """Return GELU's approximation by the hyperbolic tangent, as x / (1 + e**-z)."""
    z = (x * x).mul_(x).mul_(_TANH_CUBE).add_(x).mul_(_TANH_SCALE)
    return x / _one_plus_exp_minus(z)


def in_pieces(function: Function, x: torch.Tensor) -> torch.Tensor:
    """Apply an element-wise function to a tensor piece by piece, in the order of its memory."""
    if x.numel() <= _PIECE:
        return function(x.contiguous()).view(x.shape)
    # If the strides of an empty copy are x's own, x has no gaps in memory.
    source = x if torch.empty_like(x).stride() == x.stride() else x.contiguous()
    result = torch.empty_like(source)
    flat_source, flat_result = _flat(source), _flat(result)

    def compute(piece: slice) -> None:
        flat_result[piece] = function(flat_source[piece])

    spread(compute, cuts(x.numel(), _PIECE))
    return result


def _flat(x: torch.Tensor) -> torch.Tensor:
    """View a tensor without gaps as one-dimensional, in the order of its memory."""
    return x.as_strided((x.numel(),), (1,))
