"""Is portable arithmetic right on this machine, and what does it cost? Tried once a passport.

What was found is kept in the cache folder, like what a probe found. Importing this needs no torch;
`selftest.py` does the work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field

from seedgrid.core.errors import RunError
from seedgrid.core.recipe import Passport, Value
from seedgrid.storage.cache import recall_value, remember_value

if TYPE_CHECKING:
    import torch

_CACHE: Final = "portable"


class PortableTrial(Value):
    """Portable arithmetic as one machine computes it.

    Attributes:
        wrong: The operations whose bits are not those of the definition; it may not be used then.
        times: How many times as long as torch's own arithmetic it takes.
    """

    wrong: tuple[str, ...]
    times: Annotated[float, Field(gt=0)]


def try_portable(device: torch.device, passport: Passport) -> PortableTrial:
    """Return what a trial found; it takes some seconds and is remembered by passport."""
    from seedgrid.portable import selftest

    trial = recall_value(_CACHE, passport.digest, PortableTrial)
    if trial is None:
        trial = PortableTrial(wrong=selftest.check(device), times=selftest.cost(device))
        remember_value(_CACHE, passport.digest, trial)
    return trial


def check_portable(device: torch.device, passport: Passport) -> None:
    """Refuse to call a picture portable whose arithmetic is not that of the definition."""
    wrong = try_portable(device, passport).wrong
    if wrong:
        raise RunError("portable_wrong_here", value=", ".join(wrong))
