"""A mix of noise as people write it: `5:0.1, 7:0.3` goes a tenth towards seed 5, then on to 7.

>>> write_mix(read_mix("5:.1, 7:0.3"))
'5:0.1,7:0.3'
"""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from seedgrid.core.errors import InputError
from seedgrid.core.recipe import MAX_SHARES, NoiseShare
from seedgrid.core.seeds import MAX_SEED

MAX_CHARACTERS: Final = 420 * MAX_SHARES
# As many decimals as the smallest number has; none is lost on the way.
_SHARE: Final = re.compile(r"(\d{1,10}):(0?\.\d{1,400}|1(?:\.0+)?)", re.ASCII)


def read_mix(text: str) -> tuple[NoiseShare, ...]:
    """Read what `write_mix` wrote, every digit.

    Args:
        text: `SEED:WEIGHT`, parted by commas, mixed in this order; blank for none.

    Raises:
        InputError: `mix_text`, by the field `mix`.
    """
    parts = text.replace(" ", "").split(",") if text.strip() else []
    if len(text) > MAX_CHARACTERS or len(parts) > MAX_SHARES:
        raise _refused(text)
    return tuple(_share(part) for part in parts)


def write_mix(mix: Sequence[NoiseShare]) -> str:
    """Write the noise of other seeds as people can: `"5:0.1,7:0.3"`; empty for none."""
    return ",".join(f"{share.seed}:{write_decimal(share.weight)}" for share in mix)


def write_decimal(value: float) -> str:
    """Write a number so that it comes back as the very same: no exponent, no digit too few."""
    return f"{Decimal(repr(value)):f}".removesuffix(".0")


def _share(text: str) -> NoiseShare:
    match = _SHARE.fullmatch(text)
    seed, weight = (int(match[1]), float(match[2])) if match else (0, 0.0)
    if weight == 0 or seed > MAX_SEED:
        raise _refused(text)
    return NoiseShare(seed=seed, weight=weight)


def _refused(text: str) -> InputError:
    return InputError("mix_text", field="mix", value=text.strip()[:40])
