"""Subjects with wings.

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
    thick,
    turned,
)


def owl(pose: float) -> list[Part]:
    """An owl on a branch: two great eyes in pale discs, ear tufts; the pose spreads its wings."""
    head = joined(
        ellipse(0.0, -0.38, 0.62, 0.46),
        polygon((-0.60, -0.45), (-0.62, -1.05), (-0.10, -0.76)),
        polygon((0.60, -0.45), (0.62, -1.05), (0.10, -0.76)),
    )
    parts = [
        shape(polygon((-0.22, 0.70), (0.22, 0.70), (0.16, 1.12), (-0.16, 1.12)), "second"),
        shape(curve((-1.05, 0.98), (0.0, 0.82, 1.05, 0.92)), "wood", 0.15),
        shape(ellipse(0.86, 0.76, 0.20, 0.10, -30), "leaf"),
    ]
    for side in (-1, 1):
        wing = turned(
            ellipse(0.56 * side, 0.30, 0.22, 0.54), -side * (12 + 14 * pose), 0.5 * side, -0.1
        )
        parts.append(shape(wing, "second"))
    parts += [
        shape(joined(ellipse(0.0, 0.24, 0.58, 0.66), head), "main"),
        detail(ellipse(0.0, 0.44, 0.36, 0.40), "light"),
    ]
    for x, y in ((-0.17, 0.30), (0.17, 0.30), (0.0, 0.46), (-0.17, 0.62), (0.17, 0.62)):
        parts.append(
            detail(curve((x - 0.10, y - 0.06), (x, y + 0.10, x + 0.10, y - 0.06)), "second", 0.06)
        )
    for side in (-1, 1):
        parts += [
            shape(ellipse(0.27 * side, -0.38, 0.28, 0.29), "light"),
            detail(ellipse(0.26 * side, -0.38, 0.20, 0.20), "lamp"),
            detail(ellipse(0.25 * side, -0.38, 0.12, 0.13), "dark"),
            detail(ellipse(0.21 * side, 0.90, 0.13, 0.09), "accent"),
        ]
    parts.append(shape(polygon((-0.10, -0.26), (0.10, -0.26), (0.0, -0.02)), "accent"))
    return parts


def bird(pose: float) -> list[Part]:
    """A songbird in flight: a pale belly, a small beak; the pose beats its wings."""
    tip_y = -1.02 + 0.50 * pose
    body = joined(ellipse(0.08, 0.26, 0.62, 0.36, -10), ellipse(0.56, -0.04, 0.33, 0.31))
    far = closed((0.40, 0.0), (0.55, -0.4, 0.36, tip_y + 0.08), (0.0, -0.3, 0.0, 0.1))
    near = closed(
        (0.36, 0.14),
        (0.26, -0.45, -0.30, tip_y),
        (-0.40, -0.40, -0.48, tip_y + 0.52),
        (-0.44, 0.20, -0.16, 0.30),
        (0.20, 0.36, 0.36, 0.14),
    )
    return [
        shape(
            polygon((-0.36, 0.22), (-1.05, 0.10), (-0.92, 0.34), (-1.05, 0.58), (-0.34, 0.48)),
            "second",
        ),
        shape(far, "second"),
        shape(polygon((0.80, -0.16), (1.16, 0.0), (0.78, 0.14)), "lamp"),
        shape(body, "main"),
        detail(shared(body, ellipse(0.30, 0.56, 0.66, 0.34, -22)), "light"),
        shape(near, "second"),
        detail(curve((0.16, 0.06), (0.02, -0.3, -0.26, tip_y + 0.26)), "main", 0.07),
        detail(curve((0.06, 0.18), (-0.16, 0.0, -0.36, tip_y + 0.62)), "main", 0.07),
        detail(ellipse(0.64, -0.12, 0.085, 0.09), "dark"),
    ]


def butterfly(pose: float) -> list[Part]:
    """A butterfly from above: dark-rimmed wings with eyes on them; the pose opens them."""
    w = 0.72 + 0.28 * pose
    parts = []
    for side in (-1, 1):
        s = side * w
        upper = closed(
            (0.05 * side, 0.10),
            (0.15 * s, -0.90, 0.80 * s, -0.95),
            (1.22 * s, -0.86, 1.02 * s, -0.30),
            (0.85 * s, 0.16, 0.05 * side, 0.16),
        )
        lower = closed(
            (0.05 * side, 0.10),
            (0.80 * s, 0.10, 0.80 * s, 0.55),
            (0.70 * s, 1.05, 0.36 * s, 0.95),
            (0.10 * s, 0.75, 0.05 * side, 0.20),
        )
        upper_field = closed(
            (0.10 * side, 0.04),
            (0.24 * s, -0.70, 0.74 * s, -0.78),
            (1.02 * s, -0.72, 0.87 * s, -0.32),
            (0.72 * s, 0.04, 0.10 * side, 0.06),
        )
        lower_field = closed(
            (0.12 * side, 0.22),
            (0.66 * s, 0.22, 0.66 * s, 0.55),
            (0.58 * s, 0.88, 0.38 * s, 0.82),
            (0.20 * s, 0.66, 0.12 * side, 0.26),
        )
        parts += [
            shape(lower, "dark"),
            shape(upper, "dark"),
            detail(lower_field, "second"),
            detail(upper_field, "main"),
            detail(ellipse(0.70 * s, -0.50, 0.14 * w, 0.15), "light"),
            detail(ellipse(0.40 * s, -0.22, 0.10 * w, 0.11), "light"),
            detail(ellipse(0.45 * s, 0.55, 0.13 * w, 0.14), "accent"),
            detail(
                curve((0.04 * side, -0.45), (0.08 * side, -0.85, 0.30 * side, -1.0)), "dark", 0.055
            ),
            detail(ellipse(0.31 * side, -1.0, 0.06, 0.06), "dark"),
        ]
    parts += [
        shape(ellipse(0.0, 0.10, 0.10, 0.56), "dark"),
        shape(ellipse(0.0, -0.46, 0.13, 0.13), "dark"),
    ]
    return parts


def dragon(pose: float) -> list[Part]:
    """A dragon that breathes fire: a bat's wing, horns, a spiked back, a barbed tail."""
    top = -0.76 - 0.22 * pose
    body = joined(
        ellipse(-0.10, 0.46, 0.46, 0.40),
        thick(curve((0.10, 0.40), (0.58, 0.20, 0.36, -0.50)), 0.34),
        thick(curve((-0.35, 0.62), (-0.95, 0.95, -0.92, 0.22)), 0.17),
        ellipse(0.40, -0.58, 0.28, 0.24),
        box(0.36, -0.66, 0.92, -0.38, 0.13),
    )
    wing = skia.Path()
    wing.moveTo(0.06, 0.26)
    wing.lineTo(-0.02, top)
    wing.lineTo(-1.05, top + 0.22)
    wing.quadTo(-0.70, top + 0.40, -0.84, top + 0.82)
    wing.quadTo(-0.50, top + 0.72, -0.42, 0.36)
    wing.close()
    spikes = [(0.06, -0.62, 0.20, -0.42), (0.10, -0.22, 0.26, -0.02), (-0.98, 0.66, -0.76, 0.86)]
    parts = [
        shape(
            closed(
                (0.84, -0.50),
                (1.10, -0.85, 1.44, -0.62),
                (1.26, -0.52, 1.46, -0.36),
                (1.15, -0.20, 0.84, -0.42),
            ),
            "accent",
        ),
        detail(
            closed((0.88, -0.48), (1.05, -0.64, 1.26, -0.54), (1.12, -0.36, 0.88, -0.44)), "lamp"
        ),
        shape(polygon((-0.92, -0.10), (-0.66, 0.30), (-0.92, 0.22), (-1.18, 0.30)), "accent"),
        shape(polygon((0.22, -0.66), (-0.02, -1.02), (0.42, -0.78)), "light"),
    ]
    for x0, y0, x1, y1 in spikes[:2]:
        parts.append(
            shape(polygon((x1, y0 - 0.06), (x0 - 0.06, (y0 + y1) / 2), (x1, y1 + 0.08)), "accent")
        )
    parts += [
        shape(box(-0.52, 0.62, -0.26, 1.0, 0.1), "second"),
        shape(body, "main"),
        detail(shared(body, thick(curve((0.12, 0.78), (0.66, 0.30, 0.52, -0.28)), 0.20)), "light"),
        shape(joined(ellipse(-0.22, 0.66, 0.22, 0.26), box(-0.34, 0.82, 0.06, 1.0, 0.09)), "main"),
        shape(box(0.10, 0.66, 0.34, 1.0, 0.09), "main"),
        shape(wing, "second"),
        detail(polygon((-0.02, top + 0.06), (-0.80, top + 0.76), is_closed=False), "main", 0.07),
        detail(polygon((-0.02, top + 0.06), (-0.40, 0.34), is_closed=False), "main", 0.07),
        detail(ellipse(0.48, -0.62, 0.10, 0.10), "lamp"),
        detail(ellipse(0.50, -0.62, 0.05, 0.07), "dark"),
        detail(ellipse(0.84, -0.56, 0.045, 0.04), "dark"),
        detail(polygon((0.56, -0.44), (0.90, -0.44), is_closed=False), "dark", 0.045),
    ]
    return parts
