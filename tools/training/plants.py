"""What grows.

Parts in a box of -1..1 (y downwards, feet at y = 1); `pose`, 0..1, moves something.
"""

from __future__ import annotations

import math

import skia

from tools.training.ink import (
    Part,
    closed,
    curve,
    detail,
    ellipse,
    polygon,
    shape,
    star,
    turned,
    without,
)


def tree(pose: float) -> list[Part]:
    """A tree: a thick trunk under a crown of round clouds, with fruit."""
    lean = 0.12 * (pose - 0.5)
    crown = [(-0.5, -0.15, 0.42), (0.5, -0.15, 0.42), (0.0, 0.0, 0.4), (-0.3 + lean, -0.55, 0.4)]
    crown += [(0.3 + lean, -0.55, 0.4), (lean, -0.35, 0.5)]
    union = skia.Path()
    for x, y, radius in crown:
        union = skia.Op(union, ellipse(x, y, radius, radius), skia.kUnion_PathOp)
    parts = [
        shape(
            polygon(
                (-0.14, 0.1), (0.14, 0.1), (0.18, 0.8), (0.34, 1.0), (-0.34, 1.0), (-0.18, 0.8)
            ),
            "dark",
        ),
        shape(union, "main"),
    ]
    for x, y in ((-0.5, -0.12), (0.5, -0.16), (-0.24, -0.6), (0.32, -0.58), (0.02, -0.14)):
        parts.append(detail(ellipse(x, y, 0.095, 0.095), "accent"))
    return parts


def sunflower(pose: float) -> list[Part]:
    """A flower: a ring of petals about a dark heart, a stem, two leaves."""
    head_x = 0.14 * (pose - 0.5)
    parts = [
        Part(path=curve((head_x, -0.3), (head_x, 0.4, 0.0, 1.0)), role="leaf", stroke=0.13),
        shape(ellipse(-0.36, 0.58, 0.36, 0.15, 28), "leaf"),
        shape(ellipse(0.38, 0.68, 0.36, 0.15, -28), "leaf"),
        shape(star(head_x, -0.36, 0.68, 0.46, 13), "main"),
        shape(ellipse(head_x, -0.36, 0.34, 0.34), "dark"),
    ]
    for i in range(6):
        angle = math.tau * i / 6
        x, y = head_x + 0.18 * math.cos(angle), -0.36 + 0.18 * math.sin(angle)
        parts.append(detail(ellipse(x, y, 0.05, 0.05), "main"))
    return parts


def rose(pose: float) -> list[Part]:
    """A rose: petals about a coil, a thorny stem, two leaves; the pose leans its head."""
    x, y = 0.28 * (pose - 0.5), -0.40
    parts = [
        shape(curve((x, 0.0), (x, 0.50, 0.0, 1.0)), "leaf", 0.11),
        shape(polygon((0.02, 0.42), (0.22, 0.30), (0.02, 0.56)), "leaf"),
        shape(
            turned(
                closed((-0.02, 0.72), (-0.40, 0.40, -0.80, 0.62), (-0.45, 0.92, -0.02, 0.72)),
                8,
                0,
                0.72,
            ),
            "leaf",
        ),
        shape(
            turned(
                closed((0.02, 0.86), (0.40, 0.54, 0.80, 0.76), (0.45, 1.06, 0.02, 0.86)),
                -8,
                0,
                0.86,
            ),
            "leaf",
        ),
        shape(
            polygon(
                (x - 0.34, 0.0), (x - 0.42, 0.26), (x, 0.12), (x + 0.42, 0.26), (x + 0.34, 0.0)
            ),
            "leaf",
        ),
    ]
    petal = ellipse(x, y - 0.30, 0.36, 0.30)
    parts += [shape(turned(petal, degrees, x, y), "main") for degrees in (-126, 126, -54, 54, 180)]
    parts += [
        shape(ellipse(x, y - 0.06, 0.40, 0.38), "second"),
        shape(
            closed(
                (x - 0.42, y - 0.10),
                (x - 0.30, y + 0.52, x + 0.10, y + 0.30),
                (x - 0.24, y + 0.10, x - 0.42, y - 0.10),
            ),
            "main",
        ),
        shape(
            closed(
                (x + 0.42, y - 0.10),
                (x + 0.34, y + 0.50, x - 0.06, y + 0.34),
                (x + 0.24, y + 0.16, x + 0.42, y - 0.10),
            ),
            "main",
        ),
        detail(
            curve(
                (x - 0.02, y - 0.06),
                (x + 0.16, y - 0.02, x + 0.12, y - 0.18),
                (x + 0.02, y - 0.32, x - 0.16, y - 0.20),
                (x - 0.28, y - 0.02, x - 0.10, y + 0.10),
            ),
            "main",
            0.09,
        ),
    ]
    return parts


def mushroom(pose: float) -> list[Part]:
    """A toadstool with white spots, a small one beside it; the pose tilts the cap."""

    def cap(x: float, y: float, r: float) -> skia.Path:
        return closed(
            (x - r, y),
            (x - 0.95 * r, y - 1.12 * r, x, y - 1.12 * r),
            (x + 0.95 * r, y - 1.12 * r, x + r, y),
            (x, y + 0.34 * r, x - r, y),
        )

    tilt = 16 * (pose - 0.5)
    parts = [
        shape(
            closed(
                (0.62, 0.60),
                (0.66, 0.85, 0.56, 1.0),
                (0.74, 1.04, 0.92, 1.0),
                (0.82, 0.85, 0.86, 0.60),
            ),
            "light",
        ),
        shape(cap(0.74, 0.66, 0.30), "main"),
        detail(ellipse(0.68, 0.50, 0.07, 0.06), "light"),
        detail(ellipse(0.84, 0.58, 0.06, 0.05), "light"),
        shape(
            closed(
                (-0.30, -0.05),
                (-0.22, 0.60, -0.42, 1.0),
                (-0.08, 1.06, 0.28, 1.0),
                (0.10, 0.60, 0.18, -0.05),
            ),
            "light",
        ),
        shape(turned(ellipse(-0.06, 0.26, 0.34, 0.13), tilt, -0.06, 0.1), "light"),
        shape(turned(cap(-0.06, 0.02, 0.94), tilt, -0.06, 0.1), "main"),
    ]
    for x, y, r in (
        (-0.10, -0.78, 0.15),
        (-0.52, -0.46, 0.16),
        (0.34, -0.52, 0.17),
        (-0.14, -0.28, 0.15),
        (-0.74, -0.08, 0.11),
        (0.62, -0.12, 0.13),
        (0.24, -0.06, 0.10),
    ):
        parts.append(detail(turned(ellipse(x, y, r, 0.85 * r), tilt, -0.06, 0.1), "light"))
    blades = [
        polygon((x - 0.10, 1.02), (x + 0.02, 0.70), (x + 0.10, 1.02)) for x in (-0.72, -0.52, 0.40)
    ]
    return [*parts, *(detail(blade, "leaf") for blade in blades)]


def apple(pose: float) -> list[Part]:
    """An apple: a dent with a stem, a leaf that the pose lifts, a light on its cheek."""
    fruit = skia.Path()
    fruit.moveTo(0.0, -0.36)
    fruit.cubicTo(0.20, -0.66, 0.95, -0.66, 0.95, 0.14)
    fruit.cubicTo(0.95, 0.70, 0.50, 1.05, 0.22, 1.0)
    fruit.cubicTo(0.08, 0.97, -0.08, 0.97, -0.22, 1.0)
    fruit.cubicTo(-0.50, 1.05, -0.95, 0.70, -0.95, 0.14)
    fruit.cubicTo(-0.95, -0.66, -0.20, -0.66, 0.0, -0.36)
    fruit.close()
    leaf = closed((0.06, -0.62), (0.26, -1.08, 0.82, -0.88), (0.62, -0.50, 0.06, -0.62))
    return [
        shape(curve((0.0, -0.30), (0.02, -0.70, -0.14, -0.98)), "wood", 0.13),
        shape(fruit, "main"),
        detail(without(fruit, ellipse(-0.24, 0.12, 0.98, 1.05)), "second"),
        detail(ellipse(-0.54, -0.02, 0.12, 0.28, 22), "light"),
        detail(curve((-0.22, -0.33), (0.0, -0.14, 0.22, -0.33)), "dark", 0.06),
        shape(turned(leaf, 34 * (0.5 - pose), 0.06, -0.62), "leaf"),
    ]
