"""Mountains, the moon, and what stands in a room.

Parts in a box of -1..1 (y downwards, feet at y = 1); `pose`, 0..1, moves something.
"""

from __future__ import annotations

import math

import skia

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
    star,
    turned,
    without,
)


def mountain(pose: float) -> list[Part]:
    """Two peaks with snow caps; the near one large."""
    peak = -0.15 + 0.3 * pose
    small_x = 0.68
    cap = [(peak, -1.0), (peak + 0.27, -0.46), (peak + 0.12, -0.54), (peak, -0.38)]
    cap += [(peak - 0.13, -0.54), (peak - 0.28, -0.44)]
    small = [(small_x, -0.2), (small_x + 0.18, 0.10), (small_x, 0.02), (small_x - 0.17, 0.12)]
    return [
        shape(polygon((0.0, 1.0), (small_x, -0.2), (1.3, 1.0)), "second"),
        detail(polygon(*small), "light"),
        shape(polygon((-1.15, 1.0), (peak, -1.0), (0.95, 1.0)), "main"),
        detail(
            polygon(
                (peak, -1.0), (0.95, 1.0), (peak + 0.2, 1.0), (peak - 0.08, 0.1), (peak + 0.1, -0.3)
            ),
            "second",
        ),
        detail(polygon(*cap), "light"),
    ]


def moon(pose: float) -> list[Part]:
    """A crescent moon with craters about its dark disc, and two stars."""
    bite = 0.42 + 0.12 * pose
    disc = ellipse(0.0, 0.0, 0.98, 0.98)
    crescent = without(disc, ellipse(bite, -0.06, 0.80, 0.80))
    parts = [shape(disc, "night"), shape(crescent, "main")]
    for x, y, radius in (
        (-0.62, -0.28, 0.13),
        (-0.66, 0.26, 0.16),
        (-0.26, 0.72, 0.12),
        (-0.25, -0.77, 0.09),
    ):
        parts.append(detail(ellipse(x, y, radius, radius), "second"))
    parts.append(detail(star(0.42, -0.2, 0.22, 0.09, 5), "light"))
    parts.append(detail(star(0.22, 0.32, 0.15, 0.06, 5), "light"))
    return parts


def teapot(pose: float) -> list[Part]:
    """A teapot: a spout, a handle, a band of dots; the pose lifts its lid."""
    lift, tilt = 0.18 * pose, 12 * pose
    belly = ellipse(0.0, 0.36, 0.68, 0.60)
    spout = closed(
        (0.50, 0.20),
        (0.72, 0.10, 0.80, -0.24),
        (0.95, -0.34, 1.14, -0.30),
        (1.06, 0.60, 0.45, 0.76),
    )
    lid = joined(
        closed((-0.44, -0.16), (-0.34, -0.50, 0.0, -0.50), (0.34, -0.50, 0.44, -0.16)),
        ellipse(0.0, -0.58, 0.13, 0.13),
    )
    parts = [
        shape(
            curve((-0.50, 0.0), (-1.10, -0.26, -1.06, 0.26), (-0.98, 0.68, -0.50, 0.62)),
            "main",
            0.17,
        ),
        shape(spout, "main"),
        shape(box(-0.40, 0.84, 0.40, 1.0, 0.06), "second"),
        shape(ellipse(0.0, -0.16, 0.40, 0.12), "dark"),
        shape(belly, "main"),
        detail(shared(belly, box(-1.0, 0.22, 1.0, 0.54)), "light"),
    ]
    parts += [detail(ellipse(x, 0.38, 0.09, 0.09), "accent") for x in (-0.44, -0.15, 0.15, 0.44)]
    moved = skia.Path(lid)
    moved.offset(0.0, -lift)
    parts.append(shape(turned(moved, -tilt, -0.44, -0.16 - lift), "second"))
    return parts


def robot(pose: float) -> list[Part]:
    """A robot: lamps for eyes, an antenna, dials on its chest; the pose raises an arm."""
    angle = math.radians(45 - 60 * pose)
    hand_x, hand_y = 0.56 + 0.44 * math.cos(angle), 0.06 + 0.44 * math.sin(angle)
    return [
        detail(polygon((0.0, -0.80), (0.0, -1.04), is_closed=False), "dark", 0.07),
        shape(ellipse(0.0, -1.06, 0.10, 0.10), "accent"),
        shape(box(-0.58, -0.64, -0.40, -0.36, 0.05), "metal"),
        shape(box(0.40, -0.64, 0.58, -0.36, 0.05), "metal"),
        shape(box(-0.12, -0.25, 0.12, 0.0), "metal"),
        shape(curve((-0.52, 0.04), (-0.82, 0.10, -0.82, 0.46)), "metal", 0.17),
        shape(polygon((0.52, 0.06), (hand_x, hand_y), is_closed=False), "metal", 0.17),
        shape(ellipse(-0.82, 0.52, 0.15, 0.15), "main"),
        shape(ellipse(hand_x, hand_y, 0.15, 0.15), "main"),
        shape(box(-0.38, 0.50, -0.12, 0.95, 0.04), "metal"),
        shape(box(0.12, 0.50, 0.38, 0.95, 0.04), "metal"),
        shape(box(-0.50, 0.84, -0.08, 1.0, 0.08), "second"),
        shape(box(0.08, 0.84, 0.50, 1.0, 0.08), "second"),
        shape(box(-0.52, -0.10, 0.52, 0.62, 0.10), "main"),
        shape(box(-0.44, -0.82, 0.44, -0.20, 0.12), "main"),
        shape(box(-0.34, 0.04, 0.34, 0.44, 0.05), "light"),
        detail(ellipse(-0.17, 0.24, 0.12, 0.12), "accent"),
        detail(box(0.04, 0.12, 0.26, 0.20), "leaf"),
        detail(box(0.04, 0.28, 0.26, 0.36), "dark"),
        shape(ellipse(-0.20, -0.56, 0.15, 0.15), "lamp"),
        shape(ellipse(0.20, -0.56, 0.15, 0.15), "lamp"),
        detail(ellipse(-0.20, -0.56, 0.07, 0.07), "dark"),
        detail(ellipse(0.20, -0.56, 0.07, 0.07), "dark"),
        detail(box(-0.24, -0.36, 0.24, -0.27, 0.04), "dark"),
    ]


def portrait(pose: float) -> list[Part]:
    """A woman's head and shoulders, down to the picture's edge; the pose turns her face."""
    turn = 0.16 * (pose - 0.5)
    face = closed(
        (-0.42, -0.40),
        (-0.44, -0.92, 0.0, -0.92),
        (0.44, -0.92, 0.42, -0.40),
        (0.42, 0.02, 0.0, 0.24),
        (-0.42, 0.02, -0.42, -0.40),
    )
    hair = joined(
        ellipse(0.0, -0.40, 0.60, 0.60),
        closed(
            (-0.60, -0.40),
            (-0.62, 0.10, -0.74, 0.62),
            (0.0, 0.90, 0.74, 0.62),
            (0.62, 0.10, 0.60, -0.40),
        ),
    )
    dress = closed(
        (-0.34, 0.50),
        (-1.00, 0.58, -1.10, 1.10),
        (-1.16, 2.0, -1.20, 3.2),
        (0.0, 3.2, 1.20, 3.2),
        (1.16, 2.0, 1.10, 1.10),
        (1.00, 0.58, 0.34, 0.50),
    )
    bosom = closed((-0.42, 0.48), (-0.40, 0.98, 0.0, 1.0), (0.40, 0.98, 0.42, 0.48))
    neck = closed(
        (-0.18, 0.0), (-0.14, 0.40, -0.40, 0.52), (0.0, 0.70, 0.40, 0.52), (0.14, 0.40, 0.18, 0.0)
    )
    brow = closed(
        (-0.62 + turn, 0.4),
        (-0.52 + turn, -0.24, 0.10 + turn, -0.76),
        (0.40 + turn, -0.40, 0.62 + turn, 0.4),
    )
    parts = [
        shape(hair, "hair"),
        shape(dress, "main"),
        shape(bosom, "light"),
        detail(closed((-0.36, 0.44), (-0.34, 0.88, 0.0, 0.90), (0.34, 0.88, 0.36, 0.44)), "skin"),
        shape(neck, "skin"),
        detail(box(-0.28, 0.50, 0.28, 0.60, 0.05), "skin"),
        shape(face, "skin"),
        shape(without(ellipse(0.0, -0.42, 0.52, 0.54), brow), "hair"),
    ]
    for side in (-1, 1):
        x = 0.19 * side + turn
        parts += [
            detail(ellipse(0.25 * side + turn, -0.12, 0.09, 0.06), "blush"),
            detail(ellipse(x, -0.31, 0.13, 0.095), "light"),
            detail(ellipse(x + 0.3 * turn, -0.31, 0.07, 0.085), "dark"),
            detail(curve((x - 0.13, -0.33), (x, -0.47, x + 0.13, -0.33)), "dark", 0.05),
            detail(
                curve((x - 0.11, -0.51), (x + 0.02 * side, -0.58, x + 0.11, -0.51)), "hair", 0.045
            ),
            shape(ellipse(0.45 * side, 0.02, 0.08, 0.09), "lamp"),
        ]
    parts += [
        detail(ellipse(x, y, 0.06, 0.06), "accent")
        for x, y in ((-0.22, 0.56), (-0.11, 0.64), (0.0, 0.67), (0.11, 0.64), (0.22, 0.56))
    ]
    parts += [
        detail(
            curve((0.02 + 1.4 * turn, -0.26), (0.07 + 1.6 * turn, -0.12, 1.3 * turn - 0.03, -0.13)),
            "blush",
            0.05,
        ),
        detail(
            closed(
                (turn - 0.15, -0.01),
                (turn - 0.05, 0.0, turn, 0.02),
                (turn + 0.05, 0.0, turn + 0.15, -0.01),
                (turn, 0.17, turn - 0.15, -0.01),
            ),
            "accent",
        ),
    ]
    return parts
