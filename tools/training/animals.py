"""Animals on four feet, and the fish.

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
)


def labrador(pose: float) -> list[Part]:
    """A dog in profile, nose to the right: floppy ear, collar, tail up."""
    tail_y = -0.25 - 0.45 * pose
    stride = 0.10 * pose
    return [
        Part(path=curve((-0.62, 0.0), (-0.95, 0.0, -0.98, tail_y)), role="main", stroke=0.17),
        shape(box(-0.44 + stride, 0.2, -0.20 + stride, 1.0, 0.1), "second"),
        shape(box(0.02 + stride, 0.2, 0.26 + stride, 1.0, 0.1), "second"),
        shape(box(-0.74 - stride, 0.1, -0.48 - stride, 1.0, 0.1), "main"),
        shape(box(0.26 - stride, 0.2, 0.52 - stride, 1.0, 0.1), "main"),
        shape(polygon((0.05, 0.0), (0.25, -0.6), (0.72, -0.4), (0.52, 0.3)), "main"),
        shape(box(-0.76, -0.2, 0.56, 0.5, 0.34), "main"),
        shape(box(0.50, -0.62, 1.04, -0.26, 0.16), "main"),
        shape(ellipse(0.48, -0.6, 0.34, 0.31), "main"),
        detail(polygon((0.06, -0.14), (0.60, -0.06), (0.58, 0.07), (0.02, -0.01)), "accent"),
        shape(ellipse(0.30, -0.46, 0.16, 0.36, 12), "second"),
        detail(ellipse(0.99, -0.53, 0.10, 0.09), "dark"),
        detail(ellipse(0.60, -0.68, 0.065, 0.075), "dark"),
        detail(curve((0.98, -0.36), (0.85, -0.30, 0.72, -0.34)), "dark", 0.045),
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
        shape(ellipse(0.0, 0.48, 0.56, 0.54), "main"),
        shape(polygon((-0.56, -0.35), (-0.54, -1.0), (-0.08, -0.66)), "main"),
        shape(polygon((0.56, -0.35), (0.54, -1.0), (0.08, -0.66)), "main"),
        shape(ellipse(0.0, -0.32, 0.60, 0.47), "main"),
        detail(polygon((-0.46, -0.62), (-0.46, -0.86), (-0.26, -0.68)), "accent"),
        detail(polygon((0.46, -0.62), (0.46, -0.86), (0.26, -0.68)), "accent"),
        shape(ellipse(-0.22, 0.9, 0.2, 0.13), "light"),
        shape(ellipse(0.22, 0.9, 0.2, 0.13), "light"),
        detail(ellipse(0.0, 0.45, 0.26, 0.32), "light"),
    ]
    for side in (-1, 1):
        parts += [
            detail(ellipse(0.25 * side, -0.38, 0.16, 0.17), "light"),
            detail(ellipse(0.25 * side, -0.38, 0.075, 0.16), "dark"),
            detail(
                curve((0.16 * side, -0.12), (0.5 * side, -0.16, 0.84 * side, -0.24)), "dark", 0.04
            ),
            detail(
                curve((0.16 * side, -0.05), (0.5 * side, 0.0, 0.82 * side, -0.02)), "dark", 0.04
            ),
        ]
    parts.append(detail(polygon((-0.08, -0.19), (0.08, -0.19), (0.0, -0.08)), "accent"))
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
        shape(tail, "accent"),
        shape(polygon((-0.15, -0.48), (-0.05, -0.95), (0.5, -0.48)), "accent"),
        shape(polygon((-0.1, 0.62), (0.0, 0.98), (0.36, 0.6)), "accent"),
        shape(body, "main"),
        detail(curve((-0.22, -0.38), (-0.05, 0.05, -0.22, 0.46)), "light", 0.15),
        detail(curve((0.2, -0.46), (0.38, 0.05, 0.2, 0.58)), "light", 0.15),
        detail(ellipse(0.66, -0.14, 0.15, 0.15), "light"),
        detail(ellipse(0.69, -0.14, 0.085, 0.085), "dark"),
        detail(curve((0.97, 0.2), (0.86, 0.28, 0.74, 0.24)), "dark", 0.05),
    ]


def fox(pose: float) -> list[Part]:
    """A fox that sits in profile: pointed snout, white bib, a brush with a white tip."""
    tip_y = -0.15 - 0.40 * pose
    tail = closed(
        (-0.15, 1.0),
        (-1.1, 1.08, -1.08, 0.42),
        (-1.06, 0.05, -0.80, tip_y),
        (-0.56, 0.10, -0.56, 0.42),
        (-0.50, 0.72, -0.05, 0.72),
    )
    body = closed(
        (-0.45, 1.0),
        (-0.66, 0.42, -0.16, 0.05),
        (0.02, -0.12, 0.02, -0.36),
        (0.20, -0.10, 0.52, -0.28),
        (0.62, 0.30, 0.46, 1.0),
    )
    head = closed(
        (-0.10, -0.45),
        (0.05, -0.82, 0.42, -0.70),
        (0.66, -0.56, 1.06, -0.30),
        (0.90, -0.14, 0.52, -0.12),
        (0.05, -0.08, -0.10, -0.45),
    )
    return [
        shape(tail, "main"),
        detail(shared(tail, box(-1.2, -1.0, 0.0, tip_y + 0.36)), "light"),
        shape(body, "main"),
        detail(closed((0.10, -0.10), (0.14, 0.35, 0.38, 0.52), (0.54, 0.20, 0.52, -0.15)), "light"),
        shape(box(0.20, 0.45, 0.46, 1.0, 0.1), "main"),
        detail(box(0.20, 0.74, 0.46, 1.0, 0.1), "dark"),
        shape(box(-0.36, 0.82, 0.12, 1.0, 0.09), "dark"),
        shape(polygon((0.24, -0.66), (0.44, -1.06), (0.54, -0.58)), "second"),
        shape(polygon((-0.08, -0.50), (-0.02, -1.10), (0.30, -0.70)), "main"),
        detail(polygon((0.03, -0.70), (0.04, -0.95), (0.18, -0.74)), "dark"),
        shape(head, "main"),
        detail(
            shared(
                head,
                closed(
                    (1.1, -0.20),
                    (0.75, -0.34, 0.45, -0.30),
                    (0.2, -0.28, -0.2, -0.36),
                    (0.0, 0.1, 0.6, 0.0),
                ),
            ),
            "light",
        ),
        detail(ellipse(0.44, -0.47, 0.075, 0.085), "dark"),
        detail(ellipse(1.02, -0.29, 0.10, 0.085), "dark"),
    ]


def rabbit(pose: float) -> list[Part]:
    """A rabbit in profile: a round back, a white tail, two ears that the pose lays back."""

    def ear(x: float, degrees: float, width: float, length: float) -> skia.Path:
        return turned(ellipse(x, -0.30 - length, width, length), degrees, x, -0.22)

    back = -34 * pose
    return [
        shape(ellipse(-0.84, 0.58, 0.22, 0.21), "light"),
        shape(ear(0.56, back + 20, 0.12, 0.38), "second"),
        shape(box(0.40, 0.45, 0.60, 1.0, 0.1), "second"),
        shape(joined(ellipse(-0.20, 0.42, 0.64, 0.50), ellipse(0.26, 0.38, 0.38, 0.44)), "main"),
        shape(ear(0.42, back, 0.14, 0.40), "main"),
        detail(ear(0.42, back, 0.07, 0.30), "accent"),
        shape(joined(ellipse(0.54, -0.12, 0.38, 0.33), ellipse(0.80, -0.04, 0.20, 0.18)), "main"),
        shape(
            joined(ellipse(-0.38, 0.62, 0.36, 0.36), box(-0.66, 0.82, 0.06, 1.0, 0.09)), "second"
        ),
        shape(box(0.22, 0.55, 0.42, 1.0, 0.1), "main"),
        detail(ellipse(0.58, -0.20, 0.10, 0.11), "dark"),
        detail(ellipse(0.61, -0.24, 0.04, 0.04), "light"),
        detail(ellipse(0.96, -0.10, 0.08, 0.07), "accent"),
        detail(curve((0.94, 0.06), (0.84, 0.10, 0.76, 0.04)), "dark", 0.045),
    ]


def horse(pose: float) -> list[Part]:
    """A horse in profile: an arched neck, dark mane and tail, a saddle; the pose is its stride."""
    stride = 0.16 * pose
    tail = closed(
        (-0.60, -0.34), (-1.08, -0.36, -1.0 - 0.12 * pose, 0.60), (-0.74, 0.40, -0.64, -0.06)
    )
    parts = [shape(tail, "dark")]
    legs = ((-0.38 + stride, "second"), (0.12 + stride, "second"))
    legs += ((-0.66 - stride, "main"), (0.36 - stride, "main"))
    for x, role in legs:
        parts.append(
            shape(polygon((x, 0.0), (x + 0.24, 0.0), (x + 0.20, 1.0), (x + 0.02, 1.0)), role)
        )
        parts.append(
            detail(polygon((x + 0.01, 0.86), (x + 0.21, 0.86), (x + 0.22, 1.0), (x, 1.0)), "dark")
        )
    neck = closed(
        (-0.02, -0.20),
        (0.26, -0.50, 0.42, -1.0),
        (0.58, -0.98, 0.72, -0.80),
        (0.62, -0.40, 0.62, 0.05),
    )
    head = turned(
        joined(ellipse(0.74, -0.74, 0.26, 0.19), box(0.66, -0.84, 1.16, -0.59, 0.12)),
        34,
        0.60,
        -0.76,
    )
    mane = closed(
        (0.46, -1.08),
        (0.10, -0.98, -0.12, -0.22),
        (0.10, -0.22, 0.22, -0.36),
        (0.36, -0.58, 0.56, -0.94),
    )
    saddle = closed(
        (-0.34, -0.36),
        (-0.06, -0.22, 0.10, -0.36),
        (0.12, -0.10, 0.08, 0.02),
        (-0.12, 0.06, -0.30, 0.02),
    )
    return [
        *parts,
        shape(joined(box(-0.72, -0.36, 0.62, 0.20, 0.27), neck, head), "main"),
        shape(polygon((0.42, -0.92), (0.46, -1.18), (0.62, -0.96)), "main"),
        shape(mane, "dark"),
        detail(ellipse(0.72, -0.76, 0.065, 0.07), "dark"),
        detail(ellipse(1.0, -0.44, 0.05, 0.05), "dark"),
        shape(saddle, "accent"),
    ]
