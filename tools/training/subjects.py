"""The subjects, as parts: big, bold and unlike each other.

Each is drawn in a box of -1..1 (y downwards, its feet at y = 1). Knows nothing about styles,
colours (only roles) or places.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import skia

from tools.training.ink import Part, Rgb, box, curve, ellipse, polygon, star

Draw = Callable[[float], list[Part]]


def _shape(path: skia.Path, role: str) -> Part:
    return Part(path=path, role=role)


def _detail(path: skia.Path, role: str, stroke: float = 0.0) -> Part:
    return Part(path=path, role=role, stroke=stroke, is_detail=True)


def labrador(pose: float) -> list[Part]:
    """A dog in profile, nose to the right: floppy ear, collar, tail up."""
    tail_y = -0.25 - 0.45 * pose
    stride = 0.10 * pose
    return [
        Part(path=curve((-0.62, 0.0), (-0.95, 0.0, -0.98, tail_y)), role="main", stroke=0.17),
        _shape(box(-0.44 + stride, 0.2, -0.20 + stride, 1.0, 0.1), "second"),
        _shape(box(0.02 + stride, 0.2, 0.26 + stride, 1.0, 0.1), "second"),
        _shape(box(-0.74 - stride, 0.1, -0.48 - stride, 1.0, 0.1), "main"),
        _shape(box(0.26 - stride, 0.2, 0.52 - stride, 1.0, 0.1), "main"),
        _shape(polygon((0.05, 0.0), (0.25, -0.6), (0.72, -0.4), (0.52, 0.3)), "main"),
        _shape(box(-0.76, -0.2, 0.56, 0.5, 0.34), "main"),
        _shape(box(0.50, -0.62, 1.04, -0.26, 0.16), "main"),
        _shape(ellipse(0.48, -0.6, 0.34, 0.31), "main"),
        _detail(polygon((0.06, -0.14), (0.60, -0.06), (0.58, 0.07), (0.02, -0.01)), "accent"),
        _shape(ellipse(0.30, -0.46, 0.16, 0.36, 12), "second"),
        _detail(ellipse(0.99, -0.53, 0.10, 0.09), "dark"),
        _detail(ellipse(0.60, -0.68, 0.065, 0.075), "dark"),
        _detail(curve((0.98, -0.36), (0.85, -0.30, 0.72, -0.34)), "dark", 0.045),
    ]


def cat(pose: float) -> list[Part]:
    """A cat that sits and looks at you: pointed ears, big eyes, whiskers, curled tail."""
    tail = 0.2 + 0.5 * pose
    parts = [
        Part(
            path=curve((0.3, 0.85), (1.05, 0.95, 0.85, 0.3), (0.75, 0.0, 0.95, -tail)),
            role="second",
            stroke=0.19,
        ),
        _shape(ellipse(0.0, 0.48, 0.56, 0.54), "main"),
        _shape(polygon((-0.56, -0.35), (-0.54, -1.0), (-0.08, -0.66)), "main"),
        _shape(polygon((0.56, -0.35), (0.54, -1.0), (0.08, -0.66)), "main"),
        _shape(ellipse(0.0, -0.32, 0.60, 0.47), "main"),
        _detail(polygon((-0.46, -0.62), (-0.46, -0.86), (-0.26, -0.68)), "accent"),
        _detail(polygon((0.46, -0.62), (0.46, -0.86), (0.26, -0.68)), "accent"),
        _shape(ellipse(-0.22, 0.9, 0.2, 0.13), "light"),
        _shape(ellipse(0.22, 0.9, 0.2, 0.13), "light"),
        _detail(ellipse(0.0, 0.45, 0.26, 0.32), "light"),
    ]
    for side in (-1, 1):
        parts += [
            _detail(ellipse(0.25 * side, -0.38, 0.16, 0.17), "light"),
            _detail(ellipse(0.25 * side, -0.38, 0.075, 0.16), "dark"),
            _detail(
                curve((0.16 * side, -0.12), (0.5 * side, -0.16, 0.84 * side, -0.24)), "dark", 0.04
            ),
            _detail(
                curve((0.16 * side, -0.05), (0.5 * side, 0.0, 0.82 * side, -0.02)), "dark", 0.04
            ),
        ]
    parts.append(_detail(polygon((-0.08, -0.19), (0.08, -0.19), (0.0, -0.08)), "accent"))
    return parts


def house(pose: float) -> list[Part]:
    """A house: gable roof, chimney, door, two windows."""
    chimney = 0.38 + 0.14 * pose
    parts = [
        _shape(box(chimney, -0.98, chimney + 0.24, -0.2), "second"),
        _shape(box(-0.78, -0.22, 0.78, 1.0), "main"),
        _shape(polygon((-1.0, -0.18), (0.0, -1.0), (1.0, -0.18)), "accent"),
        _shape(box(-0.19, 0.32, 0.19, 1.0), "dark"),
        _shape(ellipse(0.0, -0.50, 0.15, 0.15), "light"),
    ]
    for x in (-0.5, 0.5):
        parts += [
            _shape(box(x - 0.2, 0.0, x + 0.2, 0.42), "light"),
            _detail(polygon((x, 0.0), (x, 0.42), is_closed=False), "dark", 0.05),
            _detail(polygon((x - 0.2, 0.21), (x + 0.2, 0.21), is_closed=False), "dark", 0.05),
        ]
    return parts


def sailboat(pose: float) -> list[Part]:
    """A boat: two sails, a mast with a pennant, a hull."""
    belly = 0.12 + 0.18 * pose
    main_sail = curve((0.02, -0.88), (0.5 + belly, -0.2, 0.86, 0.42), (0.4, 0.46, 0.02, 0.42))
    fore_sail = curve((-0.10, -0.7), (-0.4 - belly, -0.1, -0.78, 0.42), (-0.4, 0.44, -0.10, 0.42))
    main_sail.close()
    fore_sail.close()
    hull = curve(
        (-0.95, 0.54), (-0.75, 1.0, -0.5, 1.0), (0.0, 1.0, 0.55, 1.0), (0.85, 0.95, 1.0, 0.5)
    )
    hull.close()
    return [
        _shape(box(-0.08, -0.98, 0.01, 0.6), "dark"),
        _shape(polygon((-0.04, -1.0), (-0.42, -0.9), (-0.04, -0.78)), "accent"),
        _shape(main_sail, "main"),
        _shape(fore_sail, "light"),
        _shape(hull, "accent"),
        _detail(polygon((-0.84, 0.7), (0.92, 0.68), is_closed=False), "light", 0.08),
    ]


def lighthouse(pose: float) -> list[Part]:
    """A striped tower on a rock; its lamp throws two beams."""
    lift = 0.16 * (pose - 0.5)

    def tower_x(y: float) -> float:
        return 0.22 + 0.16 * (y + 0.55) / 1.45

    parts = [
        _detail(polygon((0.1, -0.70), (1.5, -1.0 + lift), (1.5, -0.45 + lift)), "beam"),
        _detail(polygon((-0.1, -0.70), (-1.5, -1.0 - lift), (-1.5, -0.45 - lift)), "beam"),
        _shape(polygon((-0.95, 1.0), (-0.6, 0.78), (0.0, 0.72), (0.6, 0.8), (0.95, 1.0)), "dark"),
        _shape(polygon((-0.22, -0.55), (0.22, -0.55), (0.38, 0.9), (-0.38, 0.9)), "light"),
    ]
    for top in (-0.45, 0.03, 0.51):
        bottom = top + 0.24
        a, b = tower_x(top), tower_x(bottom)
        parts.append(_detail(polygon((-a, top), (a, top), (b, bottom), (-b, bottom)), "main"))
    parts += [
        _shape(box(-0.32, -0.60, 0.32, -0.50), "dark"),
        _shape(box(-0.18, -0.82, 0.18, -0.58), "lamp"),
        _shape(polygon((-0.27, -0.80), (0.0, -1.06), (0.27, -0.80)), "main"),
    ]
    return parts


def tree(pose: float) -> list[Part]:
    """A tree: a thick trunk under a crown of round clouds, with fruit."""
    lean = 0.12 * (pose - 0.5)
    crown = [(-0.5, -0.15, 0.42), (0.5, -0.15, 0.42), (0.0, 0.0, 0.4), (-0.3 + lean, -0.55, 0.4)]
    crown += [(0.3 + lean, -0.55, 0.4), (lean, -0.35, 0.5)]
    union = skia.Path()
    for x, y, radius in crown:
        union = skia.Op(union, ellipse(x, y, radius, radius), skia.kUnion_PathOp)
    parts = [
        _shape(
            polygon(
                (-0.14, 0.1), (0.14, 0.1), (0.18, 0.8), (0.34, 1.0), (-0.34, 1.0), (-0.18, 0.8)
            ),
            "dark",
        ),
        _shape(union, "main"),
    ]
    for x, y in ((-0.5, -0.12), (0.5, -0.16), (-0.24, -0.6), (0.32, -0.58), (0.02, -0.14)):
        parts.append(_detail(ellipse(x, y, 0.095, 0.095), "accent"))
    return parts


def mountain(pose: float) -> list[Part]:
    """Two peaks with snow caps; the near one large."""
    peak = -0.15 + 0.3 * pose
    small_x = 0.68
    cap = [(peak, -1.0), (peak + 0.27, -0.46), (peak + 0.12, -0.54), (peak, -0.38)]
    cap += [(peak - 0.13, -0.54), (peak - 0.28, -0.44)]
    small = [(small_x, -0.2), (small_x + 0.18, 0.10), (small_x, 0.02), (small_x - 0.17, 0.12)]
    return [
        _shape(polygon((0.0, 1.0), (small_x, -0.2), (1.3, 1.0)), "second"),
        _detail(polygon(*small), "light"),
        _shape(polygon((-1.15, 1.0), (peak, -1.0), (0.95, 1.0)), "main"),
        _detail(
            polygon(
                (peak, -1.0), (0.95, 1.0), (peak + 0.2, 1.0), (peak - 0.08, 0.1), (peak + 0.1, -0.3)
            ),
            "second",
        ),
        _detail(polygon(*cap), "light"),
    ]


def sunflower(pose: float) -> list[Part]:
    """A flower: a ring of petals about a dark heart, a stem, two leaves."""
    head_x = 0.24 * (pose - 0.5)
    parts = [
        Part(path=curve((head_x, -0.3), (head_x, 0.4, 0.0, 1.0)), role="leaf", stroke=0.13),
        _shape(ellipse(-0.36, 0.58, 0.36, 0.15, 28), "leaf"),
        _shape(ellipse(0.38, 0.68, 0.36, 0.15, -28), "leaf"),
        _shape(star(head_x, -0.36, 0.68, 0.46, 13), "main"),
        _shape(ellipse(head_x, -0.36, 0.34, 0.34), "dark"),
    ]
    for i in range(6):
        angle = math.tau * i / 6
        x, y = head_x + 0.18 * math.cos(angle), -0.36 + 0.18 * math.sin(angle)
        parts.append(_detail(ellipse(x, y, 0.05, 0.05), "main"))
    return parts


def fish(pose: float) -> list[Part]:
    """A striped fish, its mouth to the right, with fins and bubbles."""
    sway = 0.16 * (pose - 0.5)
    body = curve((-0.62, 0.06), (-0.2, -0.75, 0.4, -0.52), (0.86, -0.4, 1.0, 0.08))
    body.quadTo(0.86, 0.54, 0.4, 0.64)
    body.quadTo(-0.2, 0.82, -0.62, 0.06)
    body.close()
    tail = curve((-0.5, 0.06), (-0.8, -0.2, -1.05, -0.5 + sway), (-0.85, 0.06, -1.05, 0.6 + sway))
    tail.quadTo(-0.8, 0.3, -0.5, 0.06)
    tail.close()
    return [
        _shape(tail, "accent"),
        _shape(polygon((-0.15, -0.48), (-0.05, -0.95), (0.5, -0.48)), "accent"),
        _shape(polygon((-0.1, 0.62), (0.0, 0.98), (0.36, 0.6)), "accent"),
        _shape(body, "main"),
        _detail(curve((-0.22, -0.38), (-0.05, 0.05, -0.22, 0.46)), "light", 0.15),
        _detail(curve((0.2, -0.46), (0.38, 0.05, 0.2, 0.58)), "light", 0.15),
        _detail(ellipse(0.66, -0.14, 0.15, 0.15), "light"),
        _detail(ellipse(0.69, -0.14, 0.085, 0.085), "dark"),
        _detail(curve((0.97, 0.2), (0.86, 0.28, 0.74, 0.24)), "dark", 0.05),
    ]


def moon(pose: float) -> list[Part]:
    """A crescent moon with craters about its dark disc, and two stars."""
    bite = 0.42 + 0.12 * pose
    disc = ellipse(0.0, 0.0, 0.98, 0.98)
    crescent = skia.Op(disc, ellipse(bite, -0.06, 0.80, 0.80), skia.kDifference_PathOp)
    parts = [_shape(disc, "night"), _shape(crescent, "main")]
    for x, y, radius in (
        (-0.62, -0.28, 0.13),
        (-0.66, 0.26, 0.16),
        (-0.26, 0.72, 0.12),
        (-0.25, -0.77, 0.09),
    ):
        parts.append(_detail(ellipse(x, y, radius, radius), "second"))
    parts.append(_detail(star(0.42, -0.2, 0.22, 0.09, 5), "light"))
    parts.append(_detail(star(0.22, 0.32, 0.15, 0.06, 5), "light"))
    return parts


SUBJECTS: dict[str, Draw] = {
    "labrador": labrador,
    "cat": cat,
    "house": house,
    "sailboat": sailboat,
    "lighthouse": lighthouse,
    "tree": tree,
    "mountain": mountain,
    "sunflower": sunflower,
    "fish": fish,
    "moon": moon,
}

NATURAL: dict[str, tuple[Rgb, ...]] = {
    "labrador": ((0.95, 0.80, 0.50), (0.85, 0.60, 0.30), (0.50, 0.30, 0.17)),
    "cat": ((0.95, 0.58, 0.20), (0.80, 0.62, 0.45), (0.52, 0.52, 0.58)),
    "house": ((0.95, 0.86, 0.62), (0.90, 0.65, 0.52), (0.70, 0.80, 0.88)),
    "sailboat": ((0.98, 0.96, 0.90), (0.98, 0.86, 0.55), (0.95, 0.72, 0.60)),
    "lighthouse": ((0.85, 0.16, 0.14), (0.80, 0.35, 0.20), (0.15, 0.25, 0.50)),
    "tree": ((0.20, 0.55, 0.20), (0.50, 0.62, 0.18), (0.88, 0.50, 0.14)),
    "mountain": ((0.45, 0.50, 0.62), (0.50, 0.45, 0.55), (0.56, 0.47, 0.42)),
    "sunflower": ((1.0, 0.82, 0.10), (1.0, 0.68, 0.10), (0.95, 0.50, 0.15)),
    "fish": ((1.0, 0.55, 0.12), (0.95, 0.75, 0.15), (0.25, 0.60, 0.75)),
    "moon": ((1.0, 0.95, 0.70), (0.98, 0.88, 0.58), (0.90, 0.92, 0.96)),
}
"""The main colour's range where the words name none."""

AT_SEA = frozenset({"sailboat", "lighthouse", "fish"})
IN_THE_AIR = frozenset({"moon", "fish"})
"""Subjects that stand on nothing and throw no shadow."""
