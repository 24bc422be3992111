"""The styles: each takes a scene and paints it its own way.

A style gets the setting, the parts, their palette and the matrix that puts them on the canvas, and
returns pixels. Everything is a function of the composition: strokes and wobbles come from fixed
fields, so that no picture holds noise that would have to be learned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import cv2
import numpy as np
import skia
from numpy.typing import NDArray

from tools.training import backdrops
from tools.training.backdrops import Setting
from tools.training.ink import (
    CANVAS_PX,
    Palette,
    Part,
    Pixels,
    Rgb,
    color4f,
    ellipse,
    fill,
    line,
    luminance,
    mix,
    new_surface,
    scale_of,
    to_pixels,
)

FIELD_SEED = 20240607
"""Seed of the fixed fields (stroke places, wobble, glass cells): the same in every picture."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A subject in its setting, ready to be painted."""

    setting: Setting
    parts: list[Part]
    palette: Palette
    matrix: skia.Matrix
    unit_px: float
    has_shadow: bool
    scale: int = 1


Paint = Callable[[Scene], Pixels]


def paint_parts(
    canvas: skia.Canvas, scene: Scene, palette: Palette, outline: Rgb | None, width_px: float
) -> None:
    """Fill and outline every part on the canvas."""
    canvas.save()
    canvas.concat(scene.matrix)
    width = width_px / scene.unit_px
    for part in scene.parts:
        color = palette[part.role]
        alpha = 0.45 if part.role == "beam" else 1.0
        if part.stroke:
            if outline is not None and not part.is_detail:
                canvas.drawPath(part.path, line(outline, part.stroke + 2 * width))
            canvas.drawPath(part.path, line(color, part.stroke))
            continue
        if outline is not None and not part.is_detail:
            canvas.drawPath(part.path, line(outline, 2 * width))
        canvas.drawPath(part.path, fill(color, alpha))
    canvas.restore()


def paint_shadow(canvas: skia.Canvas, scene: Scene, color: Rgb, alpha: float) -> None:
    """A flat oval under the feet."""
    if not scene.has_shadow:
        return
    canvas.save()
    canvas.concat(scene.matrix)
    canvas.drawPath(ellipse(0, 1.0, 1.0, 0.16), fill(color, alpha))
    canvas.restore()


def subject_mask(scene: Scene) -> NDArray[np.float32]:
    """Where the subject is: shape (256 * scale, 256 * scale), 0..1."""
    array, surface = new_surface(scene.scale)
    solid = [part for part in scene.parts if part.role != "beam"]
    with surface as canvas:
        canvas.concat(scene.matrix)
        for part in solid:
            paint = line((1, 1, 1), part.stroke) if part.stroke else fill((1, 1, 1))
            canvas.drawPath(part.path, paint)
    return array[:, :, 3].astype(np.float32) / 255.0


def _vivid(palette: Palette, amount: float) -> Palette:
    result = {}
    for role, color in palette.items():
        grey = luminance(color)
        result[role] = tuple(min(1.0, max(0.0, grey + (c - grey) * amount)) for c in color)
    return result  # type: ignore[return-value]  # a generator of three floats is an Rgb


def _tinted(palette: Palette, tint: Rgb, amount: float) -> Palette:
    return {role: mix(color, tint, amount) for role, color in palette.items()}


def plain(scene: Scene) -> Pixels:
    """A flat picture-book illustration."""
    array, surface = new_surface(scene.scale)
    with surface as canvas:
        backdrops.landscape(canvas, scene.setting)
        paint_shadow(canvas, scene, (0.05, 0.12, 0.10), 0.35)
        paint_parts(
            canvas, scene, scene.palette, mix(scene.palette["dark"], (0.1, 0.1, 0.1), 0.3), 1.5
        )
    return to_pixels(array)


def vermeer(scene: Scene) -> Pixels:
    """A quiet room, light falling from its window on warm colours."""
    array, surface = new_surface(scene.scale)
    with surface as canvas:
        backdrops.room(canvas, scene.setting)
        canvas.save()
        canvas.concat(scene.matrix)
        canvas.drawPath(ellipse(0.1, 1.0, 1.15, 0.2), fill((0.06, 0.04, 0.03), 0.6))
        canvas.restore()
        palette = _tinted(scene.palette, (0.98, 0.80, 0.46), 0.15)
        paint_parts(canvas, scene, palette, (0.12, 0.06, 0.03), 3)
    light = np.linspace(1.22, 0.70, len(array), dtype=np.float32)[None, :, None]
    if scene.setting.is_lit_from_right:
        light = light[:, ::-1]
    dim = np.linspace(0.88, 1.06, len(array), dtype=np.float32)[:, None, None]
    picture = to_pixels(array) * light * dim * np.array([1.0, 0.93, 0.80], np.float32)
    return np.clip(cv2.GaussianBlur(picture, (0, 0), 0.8 * scene.scale), 0, 1)


@cache
def _strokes() -> NDArray[np.float32]:
    """Fixed brush strokes, shape (N, 5): x, y, dx, dy, brightness."""
    rng = np.random.default_rng(FIELD_SEED)
    grid = np.stack(np.meshgrid(np.arange(-6, 264, 13.0), np.arange(-6, 264, 13.0)), -1).reshape(
        -1, 2
    )
    places = grid + rng.uniform(-4, 4, grid.shape)
    x, y = places[:, 0], places[:, 1]
    angle = 0.5 * np.sin(x / 40) * np.cos(y / 46)
    for cx, cy, turn in ((70, 56, 1.0), (186, 74, -1.0)):
        dx, dy = x - cx, y - cy
        near = np.exp(-(dx**2 + dy**2) / 52**2)
        angle = angle * (1 - near) + near * (np.arctan2(dy, dx) + turn * np.pi / 2)
    order = rng.permutation(len(x))
    bright = rng.choice([-0.16, -0.05, 0.06, 0.17], len(x))
    return np.stack([x, y, 16 * np.cos(angle), 16 * np.sin(angle), bright], 1)[order].astype(
        np.float32
    )


def van_gogh(scene: Scene) -> Pixels:
    """Swirling strokes of strong blue and yellow, dark contours."""
    array, surface = new_surface(scene.scale)
    with surface as canvas:
        backdrops.landscape(canvas, scene.setting)
    sky = to_pixels(array)
    grey = sky.mean(2, keepdims=True)
    sky = np.clip(grey + (sky - grey) * 1.9, 0, 1) * np.array([0.85, 0.88, 0.95], np.float32)
    base, surface = new_surface(scene.scale)
    base[:, :, :3] = (sky * 255).astype(np.uint8)
    base[:, :, 3] = 255
    sample = cv2.blur(sky, (9 * scene.scale | 1,) * 2)[:: scene.scale, :: scene.scale]
    palette = _vivid(scene.palette, 1.4)
    with surface as canvas:
        brush = line((0, 0, 0), 12)
        for x, y, dx, dy, bright in _strokes().tolist():
            r, g, b = sample[min(max(int(y), 0), 255), min(max(int(x), 0), 255)]
            brush.setColor4f(color4f((_lit(r, bright), _lit(g, bright), _lit(b, bright * 0.6))))
            canvas.drawLine(x - dx, y - dy, x + dx, y + dy, brush)
        paint_parts(canvas, scene, palette, (0.05, 0.08, 0.28), 5)
    picture = to_pixels(base)
    return _brushed(picture, subject_mask(scene))


def _lit(value: float, amount: float) -> float:
    return min(1.0, max(0.0, float(value) + amount))


@cache
def _brush_relief(scale: int) -> Pixels:
    """Fixed light and dark strokes that lie on the subject, shape (256 * scale, …, 1)."""
    array, surface = new_surface(scale)
    array[:] = 128
    with surface as canvas:
        for x, y, dx, dy, bright in _strokes().tolist():
            grey = 0.5 + bright
            canvas.drawLine(x - dx, y - dy, x + dx, y + dy, line((grey, grey, grey), 12))
    return to_pixels(array)[:, :, :1] - 0.5


def _brushed(picture: Pixels, mask: NDArray[np.float32]) -> Pixels:
    return np.clip(picture + _brush_relief(scale_of(mask)) * mask[:, :, None] * 0.8, 0, 1)


def hokusai(scene: Scene) -> Pixels:
    """A woodblock print: parchment, Prussian blue, firm contours, a cream margin."""
    array, surface = new_surface(scene.scale)
    with surface as canvas:
        backdrops.great_wave(canvas, scene.setting)
        palette = _tinted(_vivid(scene.palette, 0.75), (0.90, 0.80, 0.58), 0.25)
        paint_parts(canvas, scene, palette, (0.06, 0.12, 0.28), 4)
        backdrops.paper_frame(canvas)
    return to_pixels(array)


def mondrian(scene: Scene) -> Pixels:
    """Flat primaries in thick black lines on a white plane."""
    array, surface = new_surface(scene.scale)
    with surface as canvas:
        backdrops.neoplastic(canvas, scene.setting)
        palette = dict(_vivid(scene.palette, 1.8))
        palette |= {
            "dark": (0.05, 0.05, 0.06),
            "light": (0.97, 0.97, 0.95),
            "accent": (0.86, 0.12, 0.10),
        }
        palette |= {
            "beam": (0.98, 0.82, 0.10),
            "night": (0.08, 0.25, 0.65),
            "leaf": (0.08, 0.25, 0.65),
        }
        paint_parts(canvas, scene, palette, (0.05, 0.05, 0.06), 6)
    return to_pixels(array)


@cache
def _wobble(scale: int) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Fixed displacement maps and the mask of the painted area, each (256 * scale, …)."""
    side = CANVAS_PX * scale
    rng = np.random.default_rng(FIELD_SEED + 1)
    coarse = rng.normal(size=(10, 10, 3)).astype(np.float32)
    field = cv2.resize(coarse, (side, side), interpolation=cv2.INTER_CUBIC)
    grid_y, grid_x = np.mgrid[0:side, 0:side].astype(np.float32)
    inwards = np.minimum.reduce([grid_x, grid_y, side - 1 - grid_x, side - 1 - grid_y])
    mask = np.clip((inwards / scale + 7 * field[:, :, 2] - 15) / 9, 0, 1)
    moved = 4 * scale * field
    return grid_x + moved[:, :, 0], grid_y + moved[:, :, 1], mask


def watercolor(scene: Scene) -> Pixels:
    """Pale washes on white paper, wet edges."""
    map_x, map_y, area = _wobble(scene.scale)
    picture = plain(scene)
    picture = cv2.remap(picture, map_x, map_y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)
    soft = cv2.GaussianBlur(picture, (0, 0), 3.0 * scene.scale)
    wet = np.clip(picture - cv2.GaussianBlur(picture, (0, 0), 7.0 * scene.scale), -0.3, 0.1)
    wash = 0.32 + 0.68 * soft + 0.45 * wet
    paper = np.array([0.99, 0.98, 0.95], np.float32)
    return np.clip(paper + (wash - paper) * area[:, :, None], 0, 1)


SPRITE_CELLS = 32
DEEP_BLUE, BRICK, GRASS_GREEN, SEA_BLUE, BLACK = np.array(
    [(29, 43, 83), (171, 82, 54), (0, 228, 54), (41, 173, 255), (0, 0, 0)], np.float32
) / np.float32(255)
"""The colours of the ground, from a fantasy console's screen (PICO-8, whose palette is CC0)."""

HEART = ("01010", "11111", "11111", "01110", "00100")


def _to_cells(array: NDArray[np.uint8]) -> Pixels:
    return cv2.resize(to_pixels(array), (SPRITE_CELLS,) * 2, interpolation=cv2.INTER_AREA)


def _in_few_colors(cells: Pixels) -> Pixels:
    """More vivid, and five steps a channel."""
    grey = cells.mean(-1, keepdims=True)
    return np.round(np.clip(grey + (cells - grey) * 1.8, 0, 1) * 5) / 5


def _paint_bricks(cells: Pixels, scene: Scene) -> None:
    """The ground as a game's floor: a bright edge and rows of bricks, or waves at sea."""
    top = round(scene.setting.horizon_px / 8)
    rows, columns = np.indices(cells.shape[:2])
    depth = rows - top
    shifted = (columns + 4 * (depth // 4 % 2)) % 8
    if scene.setting.is_at_sea:
        edge, body, mark = SEA_BLUE, DEEP_BLUE, SEA_BLUE
        is_mark = (depth % 4 == 1) & (shifted < 4)
    else:
        edge, body, mark = GRASS_GREEN, BRICK, BLACK
        is_mark = (depth % 4 == 1) | (shifted == 0)
    ground = np.where(is_mark[:, :, None], mark, body)
    ground = np.where((depth == 0)[:, :, None], edge, ground)
    cells[top:] = ground[top:]


def _paint_hearts(cells: Pixels) -> None:
    heart = np.array([[int(bit) for bit in row] for row in HEART], bool)
    for left in (1, 7, 13):
        cells[1 : 1 + heart.shape[0], left : left + heart.shape[1]][heart] = (1.0, 0.0, 0.30)


def pixel_art(scene: Scene) -> Pixels:
    """A 32 by 32 sprite with a dark contour, in the few colours of an old game."""
    array, surface = new_surface(scene.scale)
    with surface as canvas:
        backdrops.landscape(canvas, scene.setting)
    cells = _in_few_colors(_to_cells(array))
    _paint_bricks(cells, scene)
    _paint_hearts(cells)
    array, surface = new_surface(scene.scale)
    with surface as canvas:
        paint_parts(canvas, scene, _vivid(scene.palette, 1.4), (0.05, 0.03, 0.10), 7)
    alpha = cv2.resize(array[:, :, 3], (SPRITE_CELLS,) * 2, interpolation=cv2.INTER_AREA)
    sprite = np.round(_to_cells(array) / np.maximum(alpha / 255.0, 0.01)[:, :, None] * 5) / 5
    cells = np.where((alpha > 110)[:, :, None], sprite, cells)
    side = CANVAS_PX * scene.scale
    return np.clip(cv2.resize(cells, (side, side), interpolation=cv2.INTER_NEAREST), 0, 1)


def blueprint(scene: Scene) -> Pixels:
    """White contours on blue paper with its dimension lines."""
    array, surface = new_surface(scene.scale)
    with surface as canvas:
        backdrops.drafting_grid(canvas, scene.setting)
        palette: Palette = {}
        for role, color in scene.palette.items():
            palette[role] = mix((0.08, 0.26, 0.60), (0.66, 0.82, 1.0), luminance(color))
        palette |= {"dark": (0.06, 0.20, 0.48), "beam": (0.45, 0.62, 0.90)}
        paint_parts(canvas, scene, palette, (0.94, 0.97, 1.0), 6)
        canvas.save()
        canvas.concat(scene.matrix)
        rule = line((0.92, 0.96, 1.0), 3 / scene.unit_px)
        canvas.drawLine(-1.0, 1.2, 1.0, 1.2, rule)
        for x in (-1.0, 1.0):
            canvas.drawLine(x, 1.11, x, 1.29, rule)
        canvas.restore()
    return to_pixels(array)


@cache
def _cells(scale: int) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
    """Fixed glass cells: label per pixel (H * H,), pixels per cell (N, 1), lead (H, H, 1)."""
    side = CANVAS_PX * scale
    rng = np.random.default_rng(FIELD_SEED + 2)
    grid = np.stack(np.meshgrid(np.arange(21, 256, 43), np.arange(21, 256, 43)), -1).reshape(-1, 2)
    seeds = grid + rng.uniform(-13, 13, grid.shape)
    y, x = (np.mgrid[0:side, 0:side] + 0.5) / scale - 0.5
    distance = np.hypot(x[:, :, None] - seeds[:, 0], y[:, :, None] - seeds[:, 1])
    nearest = np.sort(distance, axis=2)
    lead = np.clip(((nearest[:, :, 1] - nearest[:, :, 0]) - 3.0) / 2.0, 0, 1)
    labels = distance.argmin(2).reshape(-1)
    counts = np.bincount(labels, minlength=len(seeds)).astype(np.float32)[:, None]
    return labels, counts, lead[:, :, None].astype(np.float32)


def stained_glass(scene: Scene) -> Pixels:
    """Panes of bright glass in black lead."""
    array, surface = new_surface(scene.scale)
    with surface as canvas:
        backdrops.landscape(canvas, scene.setting)
    labels, counts, lead = _cells(scene.scale)
    flat = to_pixels(array).reshape(-1, 3)
    sums = np.stack([np.bincount(labels, flat[:, k], len(counts)) for k in range(3)], 1)
    mean = (sums / counts).astype(np.float32)
    grey = mean.mean(1, keepdims=True)
    odd = 0.86 + 0.22 * (np.arange(len(mean))[:, None] % 3 == 0)
    panes = np.clip((grey + (mean - grey) * 2.6) * odd, 0, 1)[labels]
    glass = (panes.reshape(*lead.shape[:2], 3) * lead).astype(np.float32)
    base, surface = new_surface(scene.scale)
    base[:, :, :3] = (glass * 255).astype(np.uint8)
    base[:, :, 3] = 255
    with surface as canvas:
        paint_parts(canvas, scene, _vivid(scene.palette, 1.7), (0.03, 0.03, 0.05), 6)
    return to_pixels(base)


STYLES: dict[str, Paint] = {
    "plain": plain,
    "vermeer": vermeer,
    "van gogh": van_gogh,
    "hokusai": hokusai,
    "mondrian": mondrian,
    "watercolor": watercolor,
    "pixel art": pixel_art,
    "blueprint": blueprint,
    "stained glass": stained_glass,
}
