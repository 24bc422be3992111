"""Elementary functions in float64, as fixed sequences of IEEE 754 operations.

Mathematical libraries round these functions differently on different processors, but additions,
products, quotients and square roots are the same everywhere, and NumPy does not fuse them.
Arguments and results are NumPy arrays. Tested errors are below 2e-13 of max(|result|, 0.01).

    >>> float(exp(np.float64(0.0)))
    1.0
"""

from collections.abc import Sequence
from math import factorial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]

PI: Final = 3.141592653589793
_LN2_HIGH: Final = 6.93147180369123816490e-01  # Has 33 bits, so that n * _LN2_HIGH is exact
_LN2_LOW: Final = 1.90821492927058770002e-10
_LOG2_E: Final = 1.44269504088896338700e00
_SQRT2: Final = 1.4142135623730951
_HALF_PI: Final = (  # pi / 2 in three parts of 33 bits
    1.57079632673412561417e00,
    6.07710050630396597660e-11,
    2.02226624871116645580e-21,
)
# Coefficients of Taylor series, the highest power first; of x in _EXP, of x**2 in the others
_EXP: Final = tuple(1.0 / factorial(n) for n in range(12, -1, -1))
_LOG: Final = tuple(1.0 / n for n in range(23, 0, -2))  # Of the inverse hyperbolic tangent
_SIN: Final = tuple((-1.0) ** (n // 2) / factorial(n) for n in range(15, 0, -2))
_COS: Final = tuple((-1.0) ** (n // 2) / factorial(n) for n in range(16, -1, -2))
_ATAN: Final = tuple((-1.0) ** n / (2 * n + 1) for n in range(15, -1, -1))


def _doubles(x: Any) -> Doubles:
    return np.asarray(x, dtype=np.float64)


def _polynomial(x: Doubles, coefficients: Sequence[float]) -> Doubles:
    """Evaluate a polynomial by Horner's rule; the coefficient of the highest power comes first."""
    total = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total *= x
        total += coefficient
    return total


def _power_of_two(exponent: npt.NDArray[np.int64]) -> Doubles:
    """Return 2**exponent exactly, for exponents -1022 … 1023."""
    return ((exponent + 1023) << 52).view(np.float64)


def exp(x: Any) -> Doubles:
    """Return e**x, x limited to -708 … 709: a Taylor polynomial times a power of two."""
    x = np.clip(_doubles(x), -708.0, 709.0)
    n = np.rint(x * _LOG2_E)
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    whole = np.where(np.isnan(n), 0.0, n).astype(np.int64)
    return _polynomial(r, _EXP) * _power_of_two(whole)


def log(x: Any) -> Doubles:
    """Return ln x = 2 atanh((m - 1) / (m + 1)) + e ln 2, x = m 2**e; -inf for 0 and subnormals."""
    x = _doubles(x)
    bits = np.atleast_1d(x).view(np.int64).reshape(x.shape)
    exponent = ((bits >> 52) & 0x7FF) - 1023
    m = np.atleast_1d((bits & 0xFFFFFFFFFFFFF) | (1023 << 52)).view(np.float64).reshape(x.shape)
    is_high = m > _SQRT2
    m = np.where(is_high, m * 0.5, m)
    e = (exponent + is_high).astype(np.float64)
    f = (m - 1.0) / (m + 1.0)
    value = _polynomial(f * f, _LOG) * f * 2.0 + e * _LN2_LOW + e * _LN2_HIGH
    value = np.where(exponent == -1023, -np.inf, value)
    value = np.where(x == np.inf, np.inf, value)
    return np.where(np.isnan(x) | (x < 0), np.nan, value)


def _sine(x: Any, quarters: int) -> Doubles:
    """Return sin(x + quarters * pi / 2) for |x| below a million."""
    x = _doubles(x)
    k = np.rint(x * (2.0 / PI))
    r = ((x - k * _HALF_PI[0]) - k * _HALF_PI[1]) - k * _HALF_PI[2]
    square = r * r
    quarter = (np.where(np.isnan(k), 0.0, k).astype(np.int64) + quarters) & 3
    is_cosine = (quarter & 1) == 1
    value = np.where(is_cosine, _polynomial(square, _COS), _polynomial(square, _SIN) * r)
    return np.where((quarter & 2) == 2, -value, value)


def sin(x: Any) -> Doubles:
    """Return the sine."""
    return _sine(x, 0)


def cos(x: Any) -> Doubles:
    """Return the cosine."""
    return _sine(x, 1)


def tan(x: Any) -> Doubles:
    """Return the tangent, as the sine divided by the cosine."""
    return sin(x) / cos(x)


def sqrt(x: Any) -> Doubles:
    """Return the square root, which IEEE 754 rounds correctly everywhere; NaN below zero."""
    x = _doubles(x)
    return np.where(x < 0, np.nan, np.sqrt(np.where(x < 0, 0.0, x)))


def tanh(x: Any) -> Doubles:
    """Return the hyperbolic tangent: 1 - 2 / (e**2x + 1), and x - x**3 / 3 near zero."""
    x = _doubles(x)
    far = 1.0 - 2.0 / (exp(x + x) + 1.0)
    return np.where(np.abs(x) < 2.0**-10, x - x * x * x * (1.0 / 3.0), far)


def expm1(x: Any) -> Doubles:
    """Return e**x - 1, by four terms of its series near zero."""
    x = _doubles(x)
    near = x + x * x * 0.5 + x * x * x * (1.0 / 6.0) + x * x * x * x * (1.0 / 24.0)
    return np.where(np.abs(x) < 2.0**-10, near, exp(x) - 1.0)


def atan(x: Any) -> Doubles:
    """Return the arc tangent: the angle is halved twice by x / (1 + sqrt(1 + x**2))."""
    x = _doubles(x)
    y = np.abs(x)
    is_steep = y > 1.0
    y = np.where(is_steep, 1.0 / np.where(is_steep, y, 1.0), y)
    for _ in range(2):
        y = y / (1.0 + np.sqrt(1.0 + y * y))
    value = _polynomial(y * y, _ATAN) * y * 4.0
    value = np.where(is_steep, PI / 2.0 - value, value)
    return np.asarray(np.where(x < 0, -value, value))


def acos(x: Any) -> Doubles:
    """Return the arc cosine of -1 … 1."""
    x = _doubles(x)
    sine = np.sqrt(np.maximum(1.0 - x * x, 0.0))
    value = 2.0 * atan(sine / np.where(x > -1.0, 1.0 + x, 1.0))
    return np.where(x > -1.0, value, PI)


def power(x: Any, y: Any) -> Doubles:
    """Return x**y as e**(y ln x); a single y, if whole to ±8 or ±0.5, by products or the root."""
    if np.ndim(y) == 0:
        return _fixed_power(_doubles(x), float(y))
    x, y = np.broadcast_arrays(_doubles(x), _doubles(y))
    value = exp(log(x) * y)
    return np.where(y == 0, 1.0, np.where((x == 0) & (y > 0), 0.0, value))


def _fixed_power(x: Doubles, y: float) -> Doubles:
    if y == 0.5:
        return sqrt(x)
    if y == -0.5:
        return np.asarray(1.0 / sqrt(x))
    if y == int(y) and abs(y) <= 8:
        product = np.ones_like(x)
        for _ in range(abs(int(y))):
            product = product * x
        return np.asarray(1.0 / product if y < 0 else product)
    return np.where((x == 0) & (y > 0), 0.0, exp(log(x) * y))
