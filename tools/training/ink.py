"""Small drawing vocabulary over skia: colours, paths, parts.

A `Part` is a path in the subject's own box (-1..1, y downwards) with a colour ROLE instead of a
colour, so that each style may choose its own paint. Knows no subject and no style.
"""

from __future__ import annotations

import colorsys
import math
from dataclasses import dataclass

import numpy as np
import skia
from numpy.typing import NDArray

CANVAS_PX = 256
"""Coordinates are of a canvas so wide and high; a picture may have a multiple of its pixels."""

Rgb = tuple[float, float, float]
Palette = dict[str, Rgb]
Pixels = NDArray[np.float32]
"""An RGB picture, shape (H, H, 3), float32 in 0..1; H is 256 times its scale."""
Mask = NDArray[np.float32]
"""Where the subject is, shape (H, H), float32 in 0..1."""


FINENESS = 256.0
"""How finely the ends of thick lines are divided: in pieces of about one over this."""

FINE_WIDTH, FINE_STROKE = 0.36, 0.1
"""In the subject's units: a detail that is narrower is a fine one."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One filled or stroked path of a subject.

    `stroke` is a line width in the subject's units, 0 for a filled path; `is_detail` parts (eyes,
    stripes) get no outline of their own.
    """

    path: skia.Path
    role: str
    stroke: float = 0.0
    is_detail: bool = False

    @property
    def is_fine(self) -> bool:
        """Is it small or thin and on another part: an eye, a whisker, a window's bar."""
        if self.stroke:
            return self.is_detail and self.stroke < FINE_STROKE
        bounds = self.path.getBounds()
        return self.is_detail and min(bounds.width(), bounds.height()) < FINE_WIDTH


def hsv(hue: float, saturation: float, value: float) -> Rgb:
    """A colour from hue (turns), saturation and value."""
    return colorsys.hsv_to_rgb(hue % 1.0, saturation, value)


def mix(first: Rgb, second: Rgb, amount: float) -> Rgb:
    """`first` at 0, `second` at 1."""
    r, g, b = (a + (c - a) * amount for a, c in zip(first, second, strict=True))
    return (r, g, b)


def gradient(stops: tuple[Rgb, ...], position: float) -> Rgb:
    """The colour at `position` (0..1) along evenly spaced stops."""
    scaled = min(max(position, 0.0), 0.9999) * (len(stops) - 1)
    index = int(scaled)
    return mix(stops[index], stops[index + 1], scaled - index)


def luminance(color: Rgb) -> float:
    """Perceived brightness, 0..1."""
    return 0.3 * color[0] + 0.59 * color[1] + 0.11 * color[2]


def color4f(color: Rgb, alpha: float = 1.0) -> skia.Color4f:
    """The same colour as skia wants it."""
    return skia.Color4f(*color, alpha)


def fill(color: Rgb, alpha: float = 1.0) -> skia.Paint:
    """A paint that fills."""
    return skia.Paint(AntiAlias=True, Color4f=color4f(color, alpha))


def line(color: Rgb, width_px: float, alpha: float = 1.0) -> skia.Paint:
    """A paint that draws round-capped lines."""
    return skia.Paint(
        AntiAlias=True,
        Color4f=color4f(color, alpha),
        Style=skia.Paint.kStroke_Style,
        StrokeWidth=width_px,
        StrokeCap=skia.Paint.kRound_Cap,
        StrokeJoin=skia.Paint.kRound_Join,
    )


def polygon(*points: tuple[float, float], is_closed: bool = True) -> skia.Path:
    """A path of straight lines."""
    path = skia.Path()
    path.addPoly([skia.Point(x, y) for x, y in points], is_closed)
    return path


def ellipse(x: float, y: float, rx: float, ry: float, degrees: float = 0.0) -> skia.Path:
    """An ellipse, turned about its centre."""
    path = skia.Path()
    path.addOval(skia.Rect.MakeLTRB(x - rx, y - ry, x + rx, y + ry))
    if degrees:
        matrix = skia.Matrix()
        matrix.setRotate(degrees, x, y)
        path.transform(matrix)
    return path


def box(left: float, top: float, right: float, bottom: float, radius: float = 0.0) -> skia.Path:
    """A rectangle, its corners rounded by `radius`."""
    path = skia.Path()
    path.addRoundRect(skia.Rect.MakeLTRB(left, top, right, bottom), radius, radius)
    return path


def curve(start: tuple[float, float], *quads: tuple[float, float, float, float]) -> skia.Path:
    """A path of quadratic curves (control x, y, end x, y), left open."""
    path = skia.Path()
    path.moveTo(*start)
    for control_x, control_y, x, y in quads:
        path.quadTo(control_x, control_y, x, y)
    return path


def star(x: float, y: float, outer: float, inner: float, tips: int) -> skia.Path:
    """A star with `tips` points."""
    points = []
    for i in range(2 * tips):
        radius = outer if i % 2 == 0 else inner
        angle = math.pi * i / tips - math.pi / 2
        points.append((x + radius * math.cos(angle), y + radius * math.sin(angle)))
    return polygon(*points)


def thick(path: skia.Path, width: float) -> skia.Path:
    """The area that a round-capped line of a width covers, to be joined with others."""
    covered = skia.Path()
    line((0, 0, 0), width).getFillPath(path, covered, None, FINENESS)
    return skia.Op(covered, covered, skia.kUnion_PathOp)


def joined(*paths: skia.Path) -> skia.Path:
    """Everything that any of the paths covers, with one outline."""
    union = skia.Path()
    for path in paths:
        union = skia.Op(union, path, skia.kUnion_PathOp)
    return union


def shared(first: skia.Path, second: skia.Path) -> skia.Path:
    """What both paths cover."""
    return skia.Op(first, second, skia.kIntersect_PathOp)


def without(path: skia.Path, hole: skia.Path) -> skia.Path:
    """What a path covers and the hole does not."""
    return skia.Op(path, hole, skia.kDifference_PathOp)


def closed(start: tuple[float, float], *quads: tuple[float, float, float, float]) -> skia.Path:
    """A path of quadratic curves (control x, y, end x, y), closed by a straight line."""
    path = curve(start, *quads)
    path.close()
    return path


def turned(path: skia.Path, degrees: float, x: float, y: float) -> skia.Path:
    """A copy of the path, turned clockwise about a point."""
    matrix = skia.Matrix()
    matrix.setRotate(degrees, x, y)
    copy = skia.Path(path)
    copy.transform(matrix)
    return copy


def shape(path: skia.Path, role: str, stroke: float = 0.0) -> Part:
    """A part with an outline of its own."""
    return Part(path=path, role=role, stroke=stroke)


def detail(path: skia.Path, role: str, stroke: float = 0.0) -> Part:
    """A part that lies on another one, without an outline."""
    return Part(path=path, role=role, stroke=stroke, is_detail=True)


def new_surface(scale: int = 1) -> tuple[NDArray[np.uint8], skia.Surface]:
    """An empty RGBA canvas and the array behind it, shape (256 * scale, 256 * scale, 4)."""
    array = np.zeros((CANVAS_PX * scale, CANVAS_PX * scale, 4), np.uint8)
    surface = skia.Surface(array, colorType=skia.kRGBA_8888_ColorType)
    surface.getCanvas().scale(scale, scale)
    return array, surface


def scale_of(picture: Pixels | Mask) -> int:
    """How many times as wide as the canvas a picture is."""
    return len(picture) // CANVAS_PX


def to_pixels(array: NDArray[np.uint8]) -> Pixels:
    """RGBA bytes to RGB floats."""
    return array[:, :, :3].astype(np.float32) / 255.0
