"""What drives, sails and flies.

Parts in a box of -1..1 (y downwards, feet at y = 1); `pose`, 0..1, moves something.
"""

from __future__ import annotations

import math

from tools.training.ink import (
    Part,
    box,
    closed,
    curve,
    detail,
    ellipse,
    joined,
    polygon,
    shape,
    shared,
    thick,
    turned,
)


def sailboat(pose: float) -> list[Part]:
    """A boat: two sails, a mast with a pennant, a hull."""
    belly = 0.12 + 0.18 * pose
    main_sail = closed((0.02, -0.88), (0.5 + belly, -0.2, 0.86, 0.42), (0.4, 0.46, 0.02, 0.42))
    fore_sail = closed((-0.10, -0.7), (-0.4 - belly, -0.1, -0.78, 0.42), (-0.4, 0.44, -0.10, 0.42))
    hull = closed(
        (-0.95, 0.54), (-0.75, 1.0, -0.5, 1.0), (0.0, 1.0, 0.55, 1.0), (0.85, 0.95, 1.0, 0.5)
    )
    return [
        shape(box(-0.08, -0.98, 0.01, 0.6), "dark"),
        shape(polygon((-0.04, -1.0), (-0.42, -0.9), (-0.04, -0.78)), "accent"),
        shape(main_sail, "main"),
        shape(fore_sail, "light"),
        shape(hull, "accent"),
        detail(polygon((-0.84, 0.7), (0.92, 0.68), is_closed=False), "light", 0.08),
    ]


def _wheel(x: float, y: float, radius: float, role: str = "dark") -> list[Part]:
    """A tyre and its hub."""
    return [
        shape(ellipse(x, y, radius, radius), role),
        detail(ellipse(x, y, 0.46 * radius, 0.46 * radius), "light"),
    ]


def car(pose: float) -> list[Part]:
    """A small car in profile: two windows, lamps, hubs; the pose moves its roof."""
    dx = 0.26 * (pose - 0.5)
    roof = closed(
        (-0.74 + dx, 0.25),
        (-0.66 + dx, -0.55, -0.10 + dx, -0.55),
        (0.44 + dx, -0.58, 0.66 + dx, 0.25),
    )
    inner = closed(
        (-0.58 + dx, 0.14),
        (-0.52 + dx, -0.40, -0.08 + dx, -0.40),
        (0.34 + dx, -0.42, 0.50 + dx, 0.14),
    )
    body = closed(
        (-1.05, 0.74), (-1.12, 0.10, -0.70, 0.10), (0.0, 0.04, 0.62, 0.12), (1.12, 0.18, 1.06, 0.74)
    )
    return [
        shape(joined(roof, body), "main"),
        detail(shared(inner, box(-2, -1, -0.08 + dx, 1)), "glass"),
        detail(shared(inner, box(0.03 + dx, -1, 2, 1)), "glass"),
        detail(box(-0.03 + dx, 0.24, 0.15 + dx, 0.31, 0.03), "dark"),
        detail(polygon((-0.08 + dx, 0.18), (-0.08 + dx, 0.62), is_closed=False), "second", 0.05),
        shape(box(-1.12, 0.58, 1.12, 0.76, 0.08), "metal"),
        shape(ellipse(0.90, 0.36, 0.12, 0.12), "lamp"),
        detail(box(-1.04, 0.30, -0.92, 0.48, 0.04), "accent"),
        *_wheel(-0.60, 0.70, 0.31),
        *_wheel(0.60, 0.70, 0.31),
    ]


def bicycle(pose: float) -> list[Part]:
    """A bicycle: spoked wheels, a frame, a saddle, a basket; the pose turns its pedals."""
    parts = []
    for x in (-0.60, 0.62):
        for turn in (0, 60, 120):
            spoke = turned(
                polygon((x - 0.40, 0.56), (x + 0.40, 0.56), is_closed=False), turn, x, 0.56
            )
            parts.append(detail(spoke, "metal", 0.045))
        parts.append(shape(ellipse(x, 0.56, 0.43, 0.43), "dark", 0.11))
    angle = math.pi * (0.3 + 0.4 * pose)
    pedal_x, pedal_y = 0.26 * math.cos(angle), 0.26 * math.sin(angle)
    bars = [
        ((-0.60, 0.56), (-0.06, 0.56)),
        ((-0.60, 0.56), (-0.24, -0.12)),
        ((-0.06, 0.56), (-0.30, -0.36)),
    ]
    bars += [
        ((-0.24, -0.12), (0.40, -0.16)),
        ((-0.06, 0.56), (0.44, -0.06)),
        ((0.62, 0.56), (0.36, -0.42)),
    ]
    frame = joined(*(thick(polygon(a, b, is_closed=False), 0.12) for a, b in bars))
    return [
        *parts,
        shape(frame, "main"),
        shape(box(-0.54, -0.50, -0.10, -0.34, 0.08), "dark"),
        shape(curve((0.14, -0.52), (0.36, -0.56, 0.40, -0.40)), "dark", 0.10),
        shape(polygon((0.46, -0.46), (0.98, -0.46), (0.90, -0.06), (0.52, -0.06)), "accent"),
        detail(polygon((0.54, -0.27), (0.90, -0.27), is_closed=False), "light", 0.06),
        detail(
            polygon(
                (-0.06 - pedal_x, 0.56 - pedal_y),
                (-0.06 + pedal_x, 0.56 + pedal_y),
                is_closed=False,
            ),
            "metal",
            0.08,
        ),
        shape(ellipse(-0.06, 0.56, 0.12, 0.12), "second"),
        detail(box(-0.18 + pedal_x, 0.51 + pedal_y, 0.06 + pedal_x, 0.61 + pedal_y, 0.03), "dark"),
        detail(box(-0.18 - pedal_x, 0.51 - pedal_y, 0.06 - pedal_x, 0.61 - pedal_y, 0.03), "dark"),
    ]


def train(pose: float) -> list[Part]:
    """A steam engine: boiler, cab, chimney with smoke, a cowcatcher; the pose turns the rod."""
    angle = math.tau * (0.15 + 0.2 * pose)
    rod_x, rod_y = 0.12 * math.cos(angle), 0.12 * math.sin(angle)
    drift = 0.06 + 0.08 * pose
    parts = [
        shape(
            joined(
                ellipse(0.40 - drift, -0.92, 0.20, 0.17),
                ellipse(0.04 - 2 * drift, -1.00, 0.26, 0.22),
                ellipse(0.22 - 1.5 * drift, -0.94, 0.2, 0.16),
            ),
            "light",
        ),
        shape(
            polygon(
                (0.42, -0.15),
                (0.42, -0.50),
                (0.32, -0.74),
                (0.76, -0.74),
                (0.66, -0.50),
                (0.66, -0.15),
            ),
            "dark",
        ),
        shape(box(-0.06, -0.40, 0.22, 0.0, 0.12), "lamp"),
        shape(box(-0.46, -0.22, 0.74, 0.46, 0.10), "main"),
        detail(box(-0.16, -0.22, -0.06, 0.46), "lamp"),
        detail(box(0.26, -0.22, 0.36, 0.46), "lamp"),
        shape(box(0.66, -0.26, 0.90, 0.50, 0.06), "dark"),
        shape(ellipse(0.92, -0.02, 0.13, 0.13), "lamp"),
        shape(box(-0.98, -0.58, -0.38, 0.50), "main"),
        shape(box(-0.82, -0.42, -0.52, -0.08, 0.04), "glass"),
        shape(box(-1.10, -0.74, -0.28, -0.56, 0.05), "second"),
        shape(polygon((0.66, 0.52), (0.86, 0.52), (1.16, 1.0), (0.66, 1.0)), "accent"),
        shape(box(-1.04, 0.44, 0.86, 0.62), "dark"),
    ]
    for x, radius in ((-0.66, 0.32), (0.04, 0.32), (0.52, 0.20)):
        parts += [
            shape(ellipse(x, 1.0 - radius, radius, radius), "accent"),
            detail(ellipse(x, 1.0 - radius, 0.42 * radius, 0.42 * radius), "dark"),
        ]
    rod = polygon((-0.66 + rod_x, 0.68 + rod_y), (0.04 + rod_x, 0.68 + rod_y), is_closed=False)
    return [*parts, detail(rod, "light", 0.09)]


def rocket(pose: float) -> list[Part]:
    """A rocket that flies: a red nose, fins, a round window; the pose lengthens its flame."""
    long = 1.0 + 0.36 * pose
    hull = closed(
        (0.0, -1.08),
        (0.52, -0.60, 0.38, 0.52),
        (0.0, 0.58, -0.38, 0.52),
        (-0.52, -0.60, 0.0, -1.08),
    )
    return [
        shape(closed((-0.30, 0.50), (-0.50, 0.80, 0.0, long), (0.50, 0.80, 0.30, 0.50)), "fire"),
        detail(
            closed((-0.18, 0.50), (-0.24, 0.76, 0.0, long - 0.16), (0.24, 0.76, 0.18, 0.50)), "lamp"
        ),
        shape(
            closed((-0.36, 0.0), (-0.84, 0.28, -0.80, 0.90), (-0.60, 0.64, -0.30, 0.56)), "accent"
        ),
        shape(closed((0.36, 0.0), (0.84, 0.28, 0.80, 0.90), (0.60, 0.64, 0.30, 0.56)), "accent"),
        shape(hull, "main"),
        detail(shared(hull, box(0.14, -0.5, 1.0, 0.7)), "second"),
        detail(shared(hull, box(-1.0, -1.2, 1.0, -0.58)), "accent"),
        shape(ellipse(0.0, -0.20, 0.24, 0.24), "metal"),
        detail(ellipse(0.0, -0.20, 0.16, 0.16), "night"),
        detail(ellipse(-0.05, -0.25, 0.06, 0.06), "light"),
        shape(
            closed(
                (-0.07, 0.18),
                (0.0, 0.14, 0.07, 0.18),
                (0.08, 0.44, 0.06, 0.66),
                (0.0, 0.68, -0.06, 0.66),
            ),
            "accent",
        ),
    ]
