"""What a picture holds besides its words: the composition, a function of twelve normal numbers.

The numbers are independent of the text, and the training writes them into the noise (see
`coupling.py`): so one seed means one composition, whatever the prompt says.
Knows nothing about drawing.

    Composition.from_normals(np.zeros(NUM_NORMALS)).x  # 0.5: in the middle
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NUM_NORMALS = 12
"""How many independent standard normal numbers decide a composition."""


@dataclass(frozen=True, kw_only=True)
class Composition:
    """Where things are; every field but `flip` is a number in 0..1."""

    x: float
    y: float
    scale: float
    flip: bool
    horizon: float
    hue: float
    sky: float
    sun: float
    hills: float
    layout: float
    ground: float
    pose: float

    @classmethod
    def from_normals(cls, normals: NDArray[np.floating]) -> Composition:
        """Read a composition from standard normal numbers.

        Args:
            normals: shape `(12,)`, in the order of the fields.
        """
        u = [0.5 * (1.0 + math.erf(float(z) / math.sqrt(2.0))) for z in normals]
        return cls(
            x=u[0],
            y=u[1],
            scale=u[2],
            flip=u[3] > 0.5,
            horizon=u[4],
            hue=u[5],
            sky=u[6],
            sun=u[7],
            hills=u[8],
            layout=u[9],
            ground=u[10],
            pose=u[11],
        )


@dataclass(frozen=True, kw_only=True)
class Placement:
    """The subject's place on the 256 px canvas, after the words had their say."""

    center_x_px: float
    center_y_px: float
    half_size_px: float
    flip: bool


def place(composition: Composition, side: str | None, size: str | None) -> Placement:
    """Decide where the subject goes; words such as "on the left" narrow the range.

    Args:
        composition: the seed's composition.
        side: "left", "right" or None.
        size: "large", "small" or None.
    """
    low_x, high_x = {"left": (0.27, 0.40), "right": (0.60, 0.73)}.get(side or "", (0.31, 0.69))
    low_s, high_s = {"small": (42, 54), "large": (96, 110)}.get(size or "", (62, 94))
    half = low_s + (high_s - low_s) * composition.scale
    return Placement(
        center_x_px=256 * (low_x + (high_x - low_x) * composition.x),
        center_y_px=256 * (0.50 + 0.12 * composition.y),
        half_size_px=half,
        flip=composition.flip,
    )
