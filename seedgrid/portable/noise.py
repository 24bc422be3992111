"""Normal numbers from a CPU generator, close to `torch.randn`'s and equal on every processor.

The generator (mt19937) gives the same integers everywhere, but torch uses the processor's logarithm
and cosine. The number and order of draws are torch's, so a seed keeps its composition.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import torch

from seedgrid.portable import functions
from seedgrid.portable.functions import Doubles

BLOCK: Final = 16  # From this many numbers on, torch draws all at once, in blocks of this size

_MAX_SPARE: Final = 64
_spare: dict[int, tuple[torch.Generator, float]] = {}
"""By a generator's id: the unused number of its last pair. The generator is held to keep its id."""


def normal(shape: Sequence[int], generator: torch.Generator) -> torch.Tensor:
    """Draw normal numbers; float32, on the CPU."""
    count = math.prod(shape)
    values = _in_blocks(count, generator) if count >= BLOCK else _one_by_one(count, generator)
    return torch.from_numpy(values.astype(np.float32)).view(*shape)


def _in_blocks(count: int, generator: torch.Generator) -> Doubles:
    """Turn blocks of 16 uniform numbers into 8 radii and 8 angles; an odd end is drawn again."""
    uniform = torch.rand(count, generator=generator, dtype=torch.float32).numpy()
    values = np.empty(count)
    whole = count - count % BLOCK
    values[:whole] = _transformed(uniform[:whole])
    if whole < count:
        again = torch.rand(BLOCK, generator=generator, dtype=torch.float32).numpy()
        values[count - BLOCK :] = _transformed(again)
    return values


def _transformed(uniform: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> Doubles:
    """Apply Box and Muller's transform to blocks of 16 numbers, 0 up to 1."""
    radii, angles = np.moveaxis(uniform.astype(np.float64).reshape(-1, 2, BLOCK // 2), 1, 0)
    radius = functions.sqrt(functions.log(1.0 - radii) * -2.0)
    angle = angles * (2.0 * functions.PI)
    pair = (radius * functions.cos(angle), radius * functions.sin(angle))
    return np.stack(pair, 1).reshape(-1)


def _one_by_one(count: int, generator: torch.Generator) -> Doubles:
    """Draw fewer than 16: pairs from two uniform float64 numbers; an unused second one is kept."""
    values: list[float] = []
    while len(values) < count:
        spare = _take_spare(generator)
        if spare is not None:
            values.append(spare)
            continue
        angle, share = torch.rand(2, generator=generator, dtype=torch.float64).tolist()
        radius = float(functions.sqrt(functions.log(np.float64(1.0 - share)) * -2.0))
        turn = 2.0 * functions.PI * angle
        values.append(radius * float(functions.cos(turn)))
        _keep_spare(generator, radius * float(functions.sin(turn)))
    return np.array(values)


def _keep_spare(generator: torch.Generator, value: float) -> None:
    while len(_spare) >= _MAX_SPARE:
        del _spare[next(iter(_spare))]
    _spare[id(generator)] = (generator, value)


def _take_spare(generator: torch.Generator) -> float | None:
    """Return the unused number of the last pair, whatever was drawn in blocks since."""
    _, value = _spare.pop(id(generator), (generator, None))
    return value
