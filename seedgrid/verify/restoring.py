"""Make an old passport true again here, as far as it can be, and tell what cannot.

A passport may come from a stranger's file, so only known values are taken from it.
"""

from dataclasses import dataclass
from typing import Final

from seedgrid.core.recipe import Passport
from seedgrid.diffusion import instruction_limits
from seedgrid.verify.reasons import Reason

_CAPABILITIES: Final = ("DEFAULT", "AVX2", "AVX512")
# What makes a newer processor compute as an older one did, as far as its libraries can be told.
_AS_OLDER: Final = {
    "DEFAULT": {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41"},
    "AVX2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    },
}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The instruction limits to compute under; None is this process's own.

    Attributes:
        environment: Variables of the child process that computes; empty is no limit at all.
        reasons: What that restores, and what it cannot.
    """

    environment: dict[str, str] | None
    reasons: tuple[Reason, ...] = ()


def limits_of(then: Passport, now: Passport) -> Limits:
    """Return the limits under which a passport was made, if they are not those of this process."""
    if then.device.partition(":")[0] not in {"", "cpu"} or not then.cpu_capability:
        return Limits(environment=None)
    if (then.instruction_limits, then.cpu_capability) == (
        now.instruction_limits,
        now.cpu_capability,
    ):
        return Limits(environment=None)
    limits = instruction_limits.accepted(then.instruction_limits)
    if not limits and _rank(then) < _rank(now) and then.cpu_capability in _AS_OLDER:
        limits = _AS_OLDER[then.cpu_capability]
    if limits == now.instruction_limits:
        return Limits(environment=None, reasons=(_cannot(then),))
    what = ", ".join(f"{name}={value}" for name, value in sorted(limits.items()))
    return Limits(
        environment=limits, reasons=(Reason("restored", what=what or "no instruction limits"),)
    )


def _cannot(then: Passport) -> Reason:
    return Reason("not_restored", what=f"CPU instructions {then.cpu_capability}")


def _rank(passport: Passport) -> int:
    name = passport.cpu_capability.upper()
    return _CAPABILITIES.index(name) if name in _CAPABILITIES else -1
