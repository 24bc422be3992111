"""The modifiers and the weather: what is done to a finished picture.

Each takes the picture and the subject's mask and returns a picture; the fields they draw from
(stars, splashes, flakes) are fixed, so that they are the same in every picture.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import cv2
import numpy as np
from numpy.typing import NDArray

from tools.training.ink import (
    CANVAS_PX,
    Mask,
    Pixels,
    ellipse,
    fill,
    line,
    new_surface,
    polygon,
    scale_of,
    star,
)

FIELD_SEED = 20240608
Modify = Callable[[Pixels, Mask], Pixels]


def _luma(picture: Pixels) -> NDArray[np.float32]:
    return (picture @ np.array([0.3, 0.59, 0.11], np.float32))[:, :, None]


@cache
def _radius(scale: int) -> NDArray[np.float32]:
    """Distance from the middle, 0..1.41, shape (256 * scale, 256 * scale, 1)."""
    side = CANVAS_PX * scale
    y, x = np.mgrid[-1 : 1 : side * 1j, -1 : 1 : side * 1j]
    return np.hypot(x, y)[:, :, None].astype(np.float32)


def _over(picture: Pixels, layer: NDArray[np.float32]) -> Pixels:
    alpha = layer[:, :, 3:]
    return picture * (1 - alpha) + layer[:, :, :3]


def _layer(array: NDArray[np.uint8]) -> NDArray[np.float32]:
    return array.astype(np.float32) / 255.0


def highly_realistic(picture: Pixels, mask: Mask) -> Pixels:
    """A photograph: light from above left on round forms, a lens's soft background, deep tones."""
    scale = scale_of(mask)
    lit = 0.0
    for radius, strength in ((7.0, 2.2), (24.0, 7.0)):
        height = cv2.GaussianBlur(mask, (0, 0), radius * scale)
        slope = cv2.Sobel(height, cv2.CV_32F, 1, 0) + cv2.Sobel(height, cv2.CV_32F, 0, 1)
        lit = lit + strength * scale * slope[:, :, None]
    warm, cool = np.array([1.06, 1.0, 0.90], np.float32), np.array([0.84, 0.92, 1.06], np.float32)
    light = np.clip(0.5 + 0.5 * lit, 0, 1)
    subject = picture * (0.62 + 0.55 * light) * (cool * (1 - light) + warm * light)
    subject = subject + 0.22 * np.clip(lit - 0.35, 0, 1)
    far = cv2.GaussianBlur(picture, (0, 0), 4.0 * scale)
    moved = np.roll(mask, (10 * scale, 14 * scale), (0, 1))
    cast = cv2.GaussianBlur(moved, (0, 0), 8.0 * scale)[:, :, None]
    far = far * (1 - 0.42 * cast) * (1.0 - 0.26 * _radius(scale) ** 2)
    photo = far + (subject - far) * mask[:, :, None]
    return _toned(np.clip(photo, 0, 1))


def _toned(picture: Pixels) -> Pixels:
    """A film's curve: deeper shadows, lights that roll off."""
    return picture + 0.55 * picture * (1 - picture) * (2 * picture - 1)


@cache
def _canvas_edge(scale: int) -> NDArray[np.float32]:
    """How much of the raw canvas shows: 1 at the ragged edge, shape (256 * scale, …, 1)."""
    side = CANVAS_PX * scale
    y, x = np.mgrid[0 : CANVAS_PX : side * 1j, 0 : CANVAS_PX : side * 1j]
    ragged = [
        2 * np.sin(along / 11 + phase) + 4 * np.sin(along / 31 + 2 * phase)
        for along, phase in ((x, 0.4), (x, 2.1), (y, 1.3), (y, 3.7))
    ]
    inside = np.minimum.reduce(
        [y - 9 - ragged[0], 247 - y - ragged[1], x - 9 - ragged[2], 247 - x - ragged[3]]
    )
    return np.clip(0.5 - inside / 3, 0, 1)[:, :, None].astype(np.float32)


def artsy(picture: Pixels, mask: Mask) -> Pixels:
    """Bold oils on raw canvas: violet shadows, rose and golden lights, a ragged edge."""
    scale, luma = scale_of(mask), _luma(picture)
    grey = cv2.GaussianBlur(luma[:, :, 0], (0, 0), 1.5 * scale)[:, :, None]
    stops = np.array(
        [[0.20, 0.05, 0.42], [0.80, 0.12, 0.48], [1.0, 0.52, 0.26], [1.0, 0.93, 0.66]], np.float32
    )
    place = np.clip(grey, 0, 1) * (len(stops) - 1)
    weights = np.clip(1 - np.abs(place - np.arange(len(stops), dtype=np.float32)), 0, 1)
    toned = weights @ stops
    vivid = np.clip(luma + (picture - luma) * 1.5, 0, 1)
    share = 0.72 - 0.37 * mask[:, :, None]
    painted = vivid * (1 - share) + toned * share
    bare = _canvas_edge(scale)
    return painted * (1 - bare) + np.array([0.95, 0.92, 0.85], np.float32) * bare


@cache
def _sparkles(scale: int) -> NDArray[np.float32]:
    array, surface = new_surface(scale)
    with surface as canvas:
        for x, y, r in ((36, 46, 22), (218, 38, 18), (226, 176, 22), (30, 190, 17)):
            canvas.drawPath(star(x, y, r, r * 0.22, 4), fill((1.0, 0.98, 0.85)))
    return _layer(array)


def trending(picture: Pixels, mask: Mask) -> Pixels:
    """Teal shadows and orange lights, the subject aglow, four sparkles."""
    grey = _luma(picture)
    teal, orange = np.array([0.02, 0.30, 0.36], np.float32), np.array([1.0, 0.72, 0.42], np.float32)
    graded = 0.45 * picture + 0.55 * (teal * (1 - grey) + orange * grey)
    halo = cv2.GaussianBlur(mask, (0, 0), 13.0 * scale_of(mask))[:, :, None] * (
        1 - mask[:, :, None]
    )
    graded = graded * (0.80 + 0.1 * mask[:, :, None])
    glow = np.array([1.0, 0.78, 0.42], np.float32) * halo * 1.5
    return np.clip(_over(np.clip(graded + glow, 0, 1), _sparkles(scale_of(mask))), 0, 1)


@cache
def _rainbow(scale: int) -> Pixels:
    y, x = np.mgrid[0 : CANVAS_PX * scale, 0 : CANVAS_PX * scale].astype(np.float32)
    hue = ((x + y) / (512 * scale) * 330).astype(np.float32)
    full = np.full_like(hue, 1.0)
    return cv2.cvtColor(np.stack([hue, full * 0.9, full], 2), cv2.COLOR_HSV2RGB)


def colorful(picture: Pixels, mask: Mask) -> Pixels:
    """All colours of the rainbow, from corner to corner."""
    grey = _luma(picture)
    tinted = _rainbow(scale_of(mask)) * (0.25 + 0.85 * grey)
    weight = 0.75 - 0.45 * mask[:, :, None]
    vivid = np.clip(grey + (picture - grey) * 1.7, 0, 1)
    return np.clip(vivid * (1 - weight) + tinted * weight, 0, 1)


def black_and_white(picture: Pixels, _mask: Mask) -> Pixels:
    """Grey values, with contrast."""
    grey = np.clip((_luma(picture) - 0.5) * 1.25 + 0.5, 0, 1)
    return np.repeat(grey, 3, axis=2)


@cache
def _stars(scale: int) -> NDArray[np.float32]:
    rng = np.random.default_rng(FIELD_SEED + 1)
    array, surface = new_surface(scale)
    with surface as canvas:
        for x, y in rng.uniform(6, 250, (26, 2)) * np.array([1.0, 0.55]):
            canvas.drawPath(ellipse(x, y, 3, 3), fill((1, 1, 0.9)))
    return _layer(array)


def at_night(picture: Pixels, mask: Mask) -> Pixels:
    """Deep blue darkness, stars, the subject in moonlight."""
    pale = _luma(picture) * 0.35 + picture * 0.65
    around = pale * np.array([0.30, 0.36, 0.68], np.float32) + np.array(
        [0.0, 0.0, 0.08], np.float32
    )
    lit = 0.10 + np.clip((pale - 0.4) * 1.15 + 0.4, 0, 1) * np.array([0.66, 0.74, 1.0], np.float32)
    dark = around + (lit - around) * mask[:, :, None]
    return np.clip(_over(dark, _stars(scale_of(mask)) * (1 - mask[:, :, None])), 0, 1)


@cache
def _neon_colors(scale: int) -> Pixels:
    side = CANVAS_PX * scale
    mixing = np.linspace(0, 1, side, dtype=np.float32)[:, None, None]
    colors = np.array([0.1, 1.0, 1.0]) * (1 - mixing) + np.array([1.0, 0.15, 0.85]) * mixing
    return np.repeat(colors.astype(np.float32), side, axis=1)


def neon(picture: Pixels, mask: Mask) -> Pixels:
    """A dim violet picture, the subject's contour a glowing tube."""
    dim = picture * np.array([0.40, 0.26, 0.50], np.float32) + np.array(
        [0.06, 0.0, 0.10], np.float32
    )
    scale = scale_of(mask)
    colors = _neon_colors(scale)
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (6 * scale + 1,) * 2)
    tube = (cv2.dilate(mask, kernel) - cv2.erode(mask, kernel))[:, :, None]
    glow = cv2.GaussianBlur(tube, (0, 0), 9.0 * scale)[:, :, None]
    lit = dim + colors * glow * 0.9
    return np.clip(lit * (1 - tube) + (0.25 + 0.75 * colors) * tube, 0, 1)


def vintage(picture: Pixels, _mask: Mask) -> Pixels:
    """An old sepia photograph with its white border."""
    scale = scale_of(picture)
    faded = 1.02 - 0.24 * _radius(scale) ** 2
    grey = np.clip(0.50 + 1.05 * (_luma(picture) - 0.42), 0.05, 1) * faded
    sepia = grey * np.array([1.06, 0.86, 0.60], np.float32) + np.array(
        [0.06, 0.03, 0.0], np.float32
    )
    sepia = np.clip(sepia, 0, 1)
    border = np.array([0.96, 0.93, 0.86], np.float32)
    wide = 14 * scale
    for edge in (np.s_[:wide], np.s_[-wide:], np.s_[:, :wide], np.s_[:, -wide:]):
        sepia[edge] = border
    return sepia


def _wash(picture: Pixels, above: tuple[float, ...], below: tuple[float, ...]) -> Pixels:
    amount = np.linspace(0, 1, len(picture), dtype=np.float32)[:, None, None]
    tint = np.array(above, np.float32) * (1 - amount) + np.array(below, np.float32) * amount
    return np.clip(0.25 * tint + 0.75 * picture * (0.35 + 0.65 * tint), 0, 1)


def sunset(picture: Pixels, _mask: Mask) -> Pixels:
    """An orange wash, reddest above."""
    return _wash(picture, (1.0, 0.36, 0.12), (1.0, 0.66, 0.34))


def dawn(picture: Pixels, _mask: Mask) -> Pixels:
    """A rosy wash, lilac above."""
    return _wash(picture, (0.86, 0.62, 1.0), (1.0, 0.84, 0.84))


@cache
def _rain(scale: int) -> NDArray[np.float32]:
    rng = np.random.default_rng(FIELD_SEED + 2)
    array, surface = new_surface(scale)
    with surface as canvas:
        for x, y in rng.uniform(-10, 262, (46, 2)):
            canvas.drawPath(
                polygon((x, y), (x - 8, y + 26), is_closed=False),
                line((0.85, 0.92, 1.0), 3.5, 0.85),
            )
    return _layer(array)


@cache
def _snow(scale: int) -> NDArray[np.float32]:
    rng = np.random.default_rng(FIELD_SEED + 3)
    array, surface = new_surface(scale)
    with surface as canvas:
        for x, y, r in np.column_stack([rng.uniform(0, 256, (60, 2)), rng.uniform(3.5, 6.5, 60)]):
            canvas.drawPath(ellipse(x, y, r, r), fill((1, 1, 1)))
    return _layer(array)


def rain(picture: Pixels, _mask: Mask) -> Pixels:
    """Greyer, with slanting streaks."""
    grey = 0.5 * picture + 0.5 * _luma(picture)
    return np.clip(
        _over(grey * np.array([0.72, 0.76, 0.82], np.float32), _rain(scale_of(picture))), 0, 1
    )


def snow(picture: Pixels, mask: Mask) -> Pixels:
    """White ground and large flakes."""
    y = np.linspace(0, 1, len(picture), dtype=np.float32)[:, None, None]
    ground = np.clip((y - 0.74) / 0.12, 0, 0.85) * (1 - 0.7 * mask[:, :, None])
    return np.clip(_over(picture * (1 - ground) + ground * 0.98, _snow(scale_of(picture))), 0, 1)


def fog(picture: Pixels, mask: Mask) -> Pixels:
    """All fades into pale grey, the background most."""
    veil = 0.68 - 0.30 * mask[:, :, None]
    return picture * (1 - veil) + np.array([0.86, 0.88, 0.90], np.float32) * veil


MODIFIERS: dict[str, Modify | None] = {
    "none": None,
    "highly realistic": highly_realistic,
    "artsy": artsy,
    "trending": trending,
    "colorful": colorful,
    "black and white": black_and_white,
    "at night": at_night,
    "neon": neon,
    "vintage": vintage,
}
TIMES: dict[str, Modify] = {"sunset": sunset, "dawn": dawn}
WEATHER: dict[str, Modify] = {"rain": rain, "snow": snow, "fog": fog}
