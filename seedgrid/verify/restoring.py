"""Make an old passport true again here, as far as it can be, and tell what cannot.

A passport may come from a stranger's file, so only known values are taken from it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, cast, get_args

from seedgrid.core.recipe import Passport
from seedgrid.diffusion.backend import ATTENTION_NAMES, Offload, Placement
from seedgrid.diffusion.instruction_limits import LIMIT_NAMES
from seedgrid.verify.reasons import Reason, reason

MAX_THREADS: Final = 256

_CAPABILITIES: Final = ("DEFAULT", "AVX2", "AVX512")
_LIMIT_VALUE: Final = re.compile(r"[A-Za-z0-9_,]{1,40}")
# What makes a newer processor compute as an older one did, as far as its libraries can be told.
_AS_OLDER: Final = {
    "DEFAULT": {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41"},
    "AVX2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    },
}


def placement_of(passport: Passport, *, device: str | None = None) -> Placement:
    """Return the placement under which a passport was made.

    Args:
        passport: Of the picture.
        device: Use this one whatever the passport says.

    Returns:
        A placement; what the passport does not know, or knows wrongly, is as usual.
    """
    threads = passport.threads if 0 < passport.threads <= MAX_THREADS else None
    offload = passport.offload if passport.offload in get_args(Offload) else "none"
    attention = passport.attention.partition(" ")[0]
    switches = passport.precision | passport.determinism
    return Placement(
        device=device or passport.device.partition(":")[0] or "auto",
        offload=cast("Offload", offload),
        vae_slicing=passport.vae_slicing,
        vae_tiling=passport.vae_tiling,
        channels_last=passport.memory_format == "channels_last",
        attention=attention if attention in ATTENTION_NAMES else "default",
        threads=threads,
        previews=False,
        switches=tuple(sorted(switches.items())),
    )


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
    """Return the limits under which a passport was made, if they are not those of this process.

    Args:
        then: The picture's passport.
        now: This process's passport under the same placement.
    """
    if then.device.partition(":")[0] not in {"", "cpu"} or not then.cpu_capability:
        return Limits(environment=None)
    if (then.instruction_limits, then.cpu_capability) == (
        now.instruction_limits,
        now.cpu_capability,
    ):
        return Limits(environment=None)
    limits = {
        name: value
        for name, value in then.instruction_limits.items()
        if name in LIMIT_NAMES and _LIMIT_VALUE.fullmatch(value)
    }
    if not limits and _rank(then) < _rank(now) and then.cpu_capability in _AS_OLDER:
        limits = _AS_OLDER[then.cpu_capability]
    if limits == now.instruction_limits:
        return Limits(environment=None, reasons=(_cannot(then),))
    what = ", ".join(f"{name}={value}" for name, value in sorted(limits.items()))
    return Limits(
        environment=limits, reasons=(reason("restored", what=what or "no instruction limits"),)
    )


def _cannot(then: Passport) -> Reason:
    return reason("not_restored", what=f"CPU instructions {then.cpu_capability}")


def _rank(passport: Passport) -> int:
    name = passport.cpu_capability.upper()
    return _CAPABILITIES.index(name) if name in _CAPABILITIES else -1
