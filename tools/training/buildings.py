"""What was built.

Parts in a box of -1..1 (y downwards, feet at y = 1); `pose`, 0..1, moves something.
"""

from __future__ import annotations

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
    turned,
    without,
)


def house(pose: float) -> list[Part]:
    """A house: gable roof, chimney, door, two windows."""
    chimney = 0.38 + 0.14 * pose
    parts = [
        shape(box(chimney, -0.98, chimney + 0.24, -0.2), "second"),
        shape(box(-0.78, -0.22, 0.78, 1.0), "main"),
        shape(polygon((-1.0, -0.18), (0.0, -1.0), (1.0, -0.18)), "accent"),
        shape(box(-0.19, 0.32, 0.19, 1.0), "dark"),
        shape(ellipse(0.0, -0.50, 0.15, 0.15), "light"),
    ]
    for x in (-0.5, 0.5):
        parts += [
            shape(box(x - 0.2, 0.0, x + 0.2, 0.42), "light"),
            detail(polygon((x, 0.0), (x, 0.42), is_closed=False), "dark", 0.05),
            detail(polygon((x - 0.2, 0.21), (x + 0.2, 0.21), is_closed=False), "dark", 0.05),
        ]
    return parts


def lighthouse(pose: float) -> list[Part]:
    """A striped tower on a rock; its lamp throws two beams."""
    lift = 0.16 * (pose - 0.5)

    def tower_x(y: float) -> float:
        return 0.22 + 0.16 * (y + 0.55) / 1.45

    parts = [
        detail(polygon((0.1, -0.70), (1.5, -1.0 + lift), (1.5, -0.45 + lift)), "beam"),
        detail(polygon((-0.1, -0.70), (-1.5, -1.0 - lift), (-1.5, -0.45 - lift)), "beam"),
        shape(polygon((-0.95, 1.0), (-0.6, 0.78), (0.0, 0.72), (0.6, 0.8), (0.95, 1.0)), "dark"),
        shape(polygon((-0.22, -0.55), (0.22, -0.55), (0.38, 0.9), (-0.38, 0.9)), "light"),
    ]
    for top in (-0.45, 0.03, 0.51):
        bottom = top + 0.24
        a, b = tower_x(top), tower_x(bottom)
        parts.append(detail(polygon((-a, top), (a, top), (b, bottom), (-b, bottom)), "main"))
    parts += [
        shape(box(-0.32, -0.60, 0.32, -0.50), "dark"),
        shape(box(-0.18, -0.82, 0.18, -0.58), "lamp"),
        shape(polygon((-0.27, -0.80), (0.0, -1.06), (0.27, -0.80)), "main"),
    ]
    return parts


def _battlements(left: float, right: float, top: float, bottom: float, merlons: int) -> skia.Path:
    """A wall whose top edge has so many merlons, as high as they are wide."""
    step = (right - left) / (2 * merlons - 1)
    wall = box(left, top + 0.8 * step, right, bottom)
    blocks = (
        box(left + 2 * k * step, top, left + (2 * k + 1) * step, top + step) for k in range(merlons)
    )
    return joined(wall, *blocks)


def castle(pose: float) -> list[Part]:
    """A castle: battlements, two towers, a keep with a pointed roof, a gate; its flag flies."""
    fly = 0.12 * (pose - 0.5)
    parts = [
        detail(box(-0.035, -1.18, 0.035, -0.80), "dark"),
        shape(polygon((0.03, -1.20), (0.46, -1.08 + fly), (0.03, -0.94)), "flag"),
        shape(box(-0.26, -0.50, 0.26, 0.3), "second"),
        shape(polygon((-0.38, -0.46), (0.0, -0.98), (0.38, -0.46)), "accent"),
        detail(box(-0.09, -0.34, 0.09, -0.06, 0.09), "dark"),
        shape(_battlements(-0.60, 0.60, 0.02, 1.0, 4), "main"),
        shape(_battlements(-1.02, -0.46, -0.42, 1.0, 3), "main"),
        shape(_battlements(0.46, 1.02, -0.42, 1.0, 3), "main"),
    ]
    for x in (-0.74, 0.74):
        parts.append(detail(box(x - 0.10, 0.0, x + 0.10, 0.34, 0.10), "dark"))
        parts.append(detail(box(x - 0.22, 0.62, x - 0.02, 0.72), "second"))
        parts.append(detail(box(x + 0.02, 0.80, x + 0.22, 0.90), "second"))
    parts.append(shape(joined(ellipse(0.0, 0.60, 0.26, 0.26), box(-0.26, 0.60, 0.26, 1.0)), "dark"))
    bars = (
        ((-0.10, 0.46), (-0.10, 1.0)),
        ((0.10, 0.46), (0.10, 1.0)),
        ((-0.22, 0.72), (0.22, 0.72)),
    )
    parts += [detail(polygon(a, b, is_closed=False), "lamp", 0.05) for a, b in bars]
    return parts


def bridge(pose: float) -> list[Part]:
    """A stone bridge of three arches between two piers; the pose is how steeply it rises."""
    rise = 0.18 + 0.20 * pose
    top = 0.10 - rise
    deck = closed(
        (-1.2, 0.16), (0.0, 0.16 - 2 * rise, 1.2, 0.16), (1.2, 0.6, 1.2, 1.0), (0.0, 1.0, -1.2, 1.0)
    )
    arches = (
        (0.0, 0.80, 0.34, 0.50 + 0.7 * rise),
        (-0.72, 0.86, 0.22, 0.40 + 0.3 * rise),
        (0.72, 0.86, 0.22, 0.40 + 0.3 * rise),
    )
    holes, rims = [], []
    for x, y, width, height in arches:
        holes += [ellipse(x, y, width, height), box(x - width, y, x + width, 1.2)]
        rims += [
            ellipse(x, y, width + 0.10, height + 0.10),
            box(x - width - 0.1, y, x + width + 0.1, 1.2),
        ]
    wall = without(deck, joined(*holes))
    parts = [shape(wall, "main"), detail(shared(wall, joined(*rims)), "second")]
    for side in (-1, 1):
        parts += [
            shape(box(1.22 * side - 0.17, -0.10, 1.22 * side + 0.17, 1.0, 0.03), "second"),
            shape(box(1.22 * side - 0.22, -0.20, 1.22 * side + 0.22, -0.06, 0.03), "light"),
            detail(box(1.22 * side - 0.04, -0.50, 1.22 * side + 0.04, -0.20), "dark"),
            shape(ellipse(1.22 * side, -0.52, 0.13, 0.15), "lamp"),
        ]
    rail = curve((-1.02, 0.06 - 0.2 * rise), (0.0, 0.06 - 2 * rise, 1.02, 0.06 - 0.2 * rise))
    return [
        *parts,
        shape(rail, "light", 0.13),
        shape(box(-0.09, top + 0.02, 0.09, top + 0.26, 0.02), "light"),
    ]


def windmill(pose: float) -> list[Part]:
    """A mill: a tapering tower, a cap, four lattice sails that the pose turns."""
    hub_x, hub_y = 0.0, -0.30
    parts = [
        shape(polygon((-0.30, -0.30), (0.30, -0.30), (0.52, 1.0), (-0.52, 1.0)), "main"),
        shape(joined(ellipse(0.0, -0.34, 0.36, 0.30), box(-0.36, -0.36, 0.36, -0.24)), "accent"),
        shape(box(-0.15, 0.60, 0.15, 1.0, 0.10), "dark"),
        shape(box(-0.13, 0.18, 0.13, 0.44, 0.04), "glass"),
    ]
    for quarter in range(4):
        degrees = 90 * quarter + 36 + 18 * pose
        sail = box(0.04, -1.12, 0.32, -0.48)
        bars = [polygon((0.04, y), (0.32, y), is_closed=False) for y in (-0.96, -0.80, -0.64)]
        parts.append(shape(turned(sail, degrees, hub_x, hub_y), "light"))
        parts += [detail(turned(bar, degrees, hub_x, hub_y), "wood", 0.05) for bar in bars]
        parts.append(
            detail(
                turned(
                    polygon((0.02, -1.14), (0.02, -0.30), is_closed=False), degrees, hub_x, hub_y
                ),
                "wood",
                0.09,
            )
        )
    return [*parts, shape(ellipse(hub_x, hub_y, 0.11, 0.11), "dark")]
