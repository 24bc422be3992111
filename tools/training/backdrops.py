"""What is behind the subject: open landscapes for most styles, a room, a wave and a grid for some.

Each function paints a whole canvas from a composition and the few words that matter (time of day).
"""

from __future__ import annotations

from dataclasses import dataclass

import skia

from tools.training.composition import Composition
from tools.training.ink import (
    CANVAS_PX,
    Rgb,
    box,
    color4f,
    curve,
    ellipse,
    fill,
    gradient,
    line,
    mix,
    polygon,
)

SKY = {
    None: ((0.45, 0.72, 0.95), (0.60, 0.80, 0.93), (0.68, 0.70, 0.92)),
    "sunset": ((0.95, 0.42, 0.20), (0.93, 0.36, 0.30), (0.86, 0.32, 0.40)),
    "dawn": ((0.93, 0.66, 0.78), (0.86, 0.62, 0.86), (0.74, 0.62, 0.90)),
}
LOW_SKY = {None: (0.90, 0.95, 0.97), "sunset": (1.0, 0.82, 0.38), "dawn": (1.0, 0.90, 0.80)}
GRASS = ((0.42, 0.68, 0.28), (0.56, 0.72, 0.30), (0.75, 0.70, 0.38))
SEA = ((0.10, 0.38, 0.62), (0.12, 0.48, 0.62), (0.16, 0.34, 0.55))


@dataclass(frozen=True, kw_only=True)
class Setting:
    """All a backdrop needs to know."""

    composition: Composition
    is_at_sea: bool
    time: str | None
    is_moonlit: bool = False

    @property
    def horizon_px(self) -> float:
        """Height of the horizon on the canvas."""
        return CANVAS_PX * (0.58 + 0.14 * self.composition.horizon)

    @property
    def sun_x_px(self) -> float:
        """Where the sun is."""
        return CANVAS_PX * (0.12 + 0.76 * self.composition.sun)

    @property
    def is_lit_from_right(self) -> bool:
        """On which side a room has its window."""
        return self.composition.hills > 0.5


def vertical(canvas: skia.Canvas, top_px: float, bottom_px: float, above: Rgb, below: Rgb) -> None:
    """Fill a band of the canvas with a vertical gradient."""
    shader = skia.GradientShader.MakeLinear(
        [skia.Point(0, top_px), skia.Point(0, bottom_px)],
        [color4f(above).toColor(), color4f(below).toColor()],
    )
    canvas.drawRect(skia.Rect.MakeLTRB(0, top_px, CANVAS_PX, bottom_px), skia.Paint(Shader=shader))


def landscape(canvas: skia.Canvas, setting: Setting) -> None:
    """Sky, sun, two clouds, hills, and grass or sea."""
    c = setting.composition
    high, low = gradient(SKY[setting.time], c.sky), LOW_SKY[setting.time]
    if setting.is_moonlit:
        high, low = mix(high, (0.10, 0.12, 0.35), 0.8), mix(low, (0.36, 0.32, 0.58), 0.8)
    vertical(canvas, 0, setting.horizon_px, high, low)
    sun = {"sunset": (1.0, 0.30, 0.12), "dawn": (1.0, 0.96, 0.88)}.get(
        setting.time or "", (1.0, 0.90, 0.45)
    )
    if not setting.is_moonlit:
        sun_y = setting.horizon_px - 14 if setting.time == "sunset" else 42
        canvas.drawPath(ellipse(setting.sun_x_px, sun_y, 22, 22), fill(sun))
    cloud_x = (setting.sun_x_px + 128) % CANVAS_PX
    for dx, dy, r in ((-24, 4, 13), (0, 0, 18), (24, 5, 12)):
        canvas.drawPath(ellipse(cloud_x + dx, 46 + dy, r * 1.3, r * 0.8), fill((1, 1, 1), 0.85))
    _hills(canvas, setting, mix(high, (0.35, 0.50, 0.45), 0.6))
    if setting.is_at_sea:
        _sea(canvas, setting)
    else:
        grass = gradient(GRASS, c.ground)
        vertical(canvas, setting.horizon_px, CANVAS_PX, grass, mix(grass, (0.1, 0.2, 0.05), 0.4))


def _hills(canvas: skia.Canvas, setting: Setting, color: Rgb) -> None:
    horizon, top = setting.horizon_px, 256 * (0.10 + 0.10 * setting.composition.hills)
    left = setting.composition.hills > 0.5
    peaks = (60, 200) if left else (196, 40)
    canvas.save()
    canvas.clipRect(skia.Rect.MakeLTRB(0, 0, CANVAS_PX, horizon))
    canvas.drawPath(ellipse(peaks[0], horizon, 110, top * 1.2), fill(color))
    canvas.drawPath(ellipse(peaks[1], horizon, 100, top * 0.7), fill(mix(color, (1, 1, 1), 0.2)))
    canvas.restore()


def _sea(canvas: skia.Canvas, setting: Setting) -> None:
    water = gradient(SEA, setting.composition.ground)
    vertical(canvas, setting.horizon_px, CANVAS_PX, mix(water, (1, 1, 1), 0.25), water)
    paint = line(mix(water, (1, 1, 1), 0.55), 4)
    for row, y in enumerate((196, 218, 240)):
        for column in range(-1, 5):
            x = column * 64 + (row % 2) * 32
            canvas.drawPath(curve((x, y), (x + 20, y - 12, x + 40, y)), paint)


def room(canvas: skia.Canvas, setting: Setting) -> None:
    """Vermeer's corner: a window on one side, its light on the wall, a curtain, a tiled floor."""
    c = setting.composition
    wall = mix((0.82, 0.76, 0.62), (0.70, 0.72, 0.66), c.sky)
    canvas.drawRect(skia.Rect.MakeWH(CANVAS_PX, CANVAS_PX), fill(wall))
    floor = 256 * (0.68 + 0.08 * c.horizon)
    low = 16 * (c.ground - 0.5)
    canvas.save()
    _face_window(canvas, setting)
    beam = polygon((58, 30 + low), (256, 120 + 50 * c.sun), (256, 250), (58, 120 + low))
    canvas.drawPath(beam, fill((1.0, 0.92, 0.66), 0.35))
    canvas.restore()
    _tiles(canvas, floor)
    canvas.save()
    _face_window(canvas, setting)
    _curtain(canvas, c)
    canvas.translate(0, low)
    _window(canvas)
    canvas.restore()


def _face_window(canvas: skia.Canvas, setting: Setting) -> None:
    """Turn the canvas so that the window is on the left of what is drawn."""
    if setting.is_lit_from_right:
        canvas.translate(CANVAS_PX, 0)
        canvas.scale(-1, 1)


def _tiles(canvas: skia.Canvas, floor: float) -> None:
    vanish = CANVAS_PX / 2
    canvas.drawRect(skia.Rect.MakeLTRB(0, floor, CANVAS_PX, CANVAS_PX), fill((0.22, 0.17, 0.12)))
    for row, (top, bottom) in enumerate(((0.0, 0.28), (0.28, 0.62), (0.62, 1.05))):
        y0, y1 = floor + (256 - floor) * top, floor + (256 - floor) * bottom
        for column in range(-5, 5):
            if (row + column) % 2:
                continue
            k0, k1 = 42 * (0.62 + 0.5 * top), 42 * (0.62 + 0.5 * bottom)
            tile = polygon(
                (vanish + column * k0, y0),
                (vanish + (column + 1) * k0, y0),
                (vanish + (column + 1) * k1, y1),
                (vanish + column * k1, y1),
            )
            canvas.drawPath(tile, fill((0.82, 0.74, 0.56)))


def _window(canvas: skia.Canvas) -> None:
    canvas.drawPath(polygon((0, 14), (50, 34), (50, 136), (0, 150)), fill((0.30, 0.20, 0.11)))
    canvas.drawPath(polygon((0, 24), (42, 42), (42, 128), (0, 139)), fill((1.0, 0.97, 0.80)))
    frame = line((0.30, 0.20, 0.11), 6)
    canvas.drawPath(polygon((21, 32), (21, 134), is_closed=False), frame)
    canvas.drawPath(polygon((0, 82), (44, 86), is_closed=False), frame)


def _curtain(canvas: skia.Canvas, composition: Composition) -> None:
    inner = 256 * (0.80 + 0.10 * composition.layout)
    cloth = curve((inner, 0), (inner + 14, 120, inner + 34, 256))
    cloth.lineTo(256, 256)
    cloth.lineTo(256, 0)
    cloth.close()
    canvas.drawPath(cloth, fill((0.10, 0.17, 0.42)))
    for dx in (16, 34):
        fold = curve((inner + dx, 0), (inner + dx + 10, 120, inner + dx + 26, 256))
        canvas.drawPath(fold, line((0.22, 0.34, 0.66), 6))


def great_wave(canvas: skia.Canvas, setting: Setting) -> None:
    """Hokusai's shore: parchment sky, a red sun, a far Fuji, one wave with claws of foam."""
    c = setting.composition
    paper, ink, foam = (0.93, 0.86, 0.68), (0.07, 0.16, 0.36), (0.97, 0.95, 0.86)
    vertical(canvas, 0, CANVAS_PX, mix(paper, (0.62, 0.66, 0.62), 0.25 + 0.4 * c.sky), paper)
    canvas.drawPath(ellipse(setting.sun_x_px, 46, 25, 25), fill((0.82, 0.24, 0.16)))
    horizon = setting.horizon_px
    fuji = 60 + 136 * c.hills
    canvas.drawPath(
        polygon((fuji - 70, horizon), (fuji, horizon - 50), (fuji + 70, horizon)),
        fill((0.45, 0.55, 0.62)),
    )
    canvas.drawPath(
        polygon((fuji - 21, horizon - 35), (fuji, horizon - 50), (fuji + 21, horizon - 35)),
        fill(foam),
    )
    vertical(canvas, horizon, CANVAS_PX, (0.35, 0.55, 0.66), ink)
    for y in (200, 222, 244):
        for column in range(-1, 5):
            x = column * 60 + (y % 4) * 15
            canvas.drawPath(curve((x, y), (x + 22, y - 14, x + 44, y)), line(foam, 4))
    canvas.save()
    if c.layout > 0.5:
        canvas.translate(CANVAS_PX, 0)
        canvas.scale(-1, 1)
    wave = curve((0, 60), (60, 44, 92, 96), (60, 84, 58, 128), (60, 190, 130, 256))
    wave.lineTo(0, 256)
    wave.close()
    canvas.drawPath(wave, fill(ink))
    for x, y, r in (
        (30, 56, 12),
        (56, 60, 13),
        (78, 76, 12),
        (92, 98, 11),
        (76, 102, 9),
        (62, 118, 9),
    ):
        canvas.drawPath(ellipse(x, y, r, r), fill(foam))
    for dx in (10, 28):
        canvas.drawPath(curve((dx, 100), (dx + 6, 190, dx + 50, 256)), line((0.45, 0.65, 0.75), 6))
    canvas.restore()


def paper_frame(canvas: skia.Canvas) -> None:
    """The cream margin and red seal of a woodblock print."""
    cream = (0.95, 0.90, 0.76)
    canvas.drawRect(
        skia.Rect.MakeLTRB(4, 4, 252, 252),
        skia.Paint(
            AntiAlias=True, Color4f=color4f(cream), Style=skia.Paint.kStroke_Style, StrokeWidth=12
        ),
    )
    canvas.drawPath(box(222, 200, 240, 236, 2), fill((0.78, 0.16, 0.12)))


def neoplastic(canvas: skia.Canvas, setting: Setting) -> None:
    """Mondrian's white plane, black bars and three primaries at its edges."""
    c = setting.composition
    canvas.drawRect(skia.Rect.MakeWH(CANVAS_PX, CANVAS_PX), fill((0.96, 0.95, 0.91)))
    left, right = 26 + 34 * c.sun, 256 - 26 - 34 * c.layout
    top, bottom = 22 + 30 * c.sky, 256 - 20 - 30 * c.ground
    red, blue, yellow = (0.86, 0.12, 0.10), (0.08, 0.25, 0.65), (0.98, 0.82, 0.10)
    corners = (red, yellow, blue, red) if c.hills > 0.5 else (blue, red, yellow, blue)
    for (x0, y0, x1, y1), color in zip(
        ((0, 0, left, top), (right, 0, 256, 140), (0, 150, left, 256), (right, bottom, 256, 256)),
        corners,
        strict=True,
    ):
        canvas.drawRect(skia.Rect.MakeLTRB(x0, y0, x1, y1), fill(color))
    bar = line((0.05, 0.05, 0.06), 9)
    for x0, y0, x1, y1 in (
        (left, 0, left, 256),
        (right, 0, right, 256),
        (0, top, 256, top),
        (0, bottom, 256, bottom),
        (right, 140, 256, 140),
        (0, 150, left, 150),
    ):
        canvas.drawLine(x0, y0, x1, y1, bar)


def drafting_grid(canvas: skia.Canvas, setting: Setting) -> None:
    """Blueprint paper: a grid, a ground line, a title block."""
    blue = mix((0.08, 0.26, 0.60), (0.06, 0.32, 0.62), setting.composition.sky)
    canvas.drawRect(skia.Rect.MakeWH(CANVAS_PX, CANVAS_PX), fill(blue))
    thin = line(mix(blue, (1, 1, 1), 0.28), 2)
    for k in range(16, 256, 32):
        canvas.drawLine(k, 0, k, 256, thin)
        canvas.drawLine(0, k, 256, k, thin)
    white = line((0.85, 0.92, 1.0), 3)
    canvas.drawLine(0, setting.horizon_px + 30, 256, setting.horizon_px + 30, white)
    canvas.drawPath(box(8, 8, 248, 248), white)
    block = 180 if setting.composition.layout > 0.5 else 12
    for y in (212, 224, 236):
        canvas.drawLine(block, y, block + 60, y, line((0.85, 0.92, 1.0), 4))
