"""A misty landscape painted from noise and words: what `FakeBackend` shows instead of a model.

The composition (ridges, moon, trees, clouds) follows the noise, the colours follow the words, so
the workflow can be felt, and tested, without weights. Knows numpy and nothing else.

    paint(draw_noise(np.random.default_rng(7)), "misty mountains, colorful", 256, 256)
"""

from __future__ import annotations

import colorsys
import hashlib
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from seedgrid.core.picture import Pixels

Noise = NDArray[np.float64]
"""Standard normal numbers, shape (NUM_NUMBERS,): all that a composition is made of."""

_NUM_LAYERS: Final = 5
_KNOTS: Final = (3, 6, 12, 24, 48, 96)
_NUM_TREES: Final = 26
_CLOUD_SIDE: Final = 24
_SIZES: Final = {
    "ridges": _NUM_LAYERS * (sum(_KNOTS) + len(_KNOTS)),
    "heights": _NUM_LAYERS,
    "moon": 3,
    "trees": 2 * _NUM_TREES,
    "clouds": _CLOUD_SIDE**2,
}
NUM_NUMBERS: Final = sum(_SIZES.values())

_HUES: Final = {
    "red": 0.0, "orange": 0.07, "gold": 0.12, "yellow": 0.14, "green": 0.33, "teal": 0.48,
    "blue": 0.6, "violet": 0.75, "purple": 0.78, "pink": 0.9, "dawn": 0.05, "night": 0.64,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Look:
    """What the words ask for; the composition is none of its business.

    Attributes:
        hue: Of the sky, 0 … 1; the mountains take the opposite one.
        saturation: 1 is natural.
        light: 1 is a bright day.
        texture: How rough rock and cloud are.
        levels: Tones a channel; 256 is all of them.
    """

    hue: float
    saturation: float = 1.0
    light: float = 1.0
    texture: float = 0.05
    levels: int = 256


def draw_noise(generator: np.random.Generator) -> Noise:
    """Draw the noise of one picture, shape (NUM_NUMBERS,); this uses the generator up."""
    return generator.standard_normal(NUM_NUMBERS)


def mix_noise(first: Noise, second: Noise, weight: float) -> Noise:
    """Go from one noise towards another on the sphere; `weight` 0 … 1."""
    angle = weight * np.pi / 2
    return np.asarray(np.cos(angle) * first + np.sin(angle) * second)


def read_look(prompt: str, negative_prompt: str = "") -> Look:
    """Read a look out of words: the first clause gives the hue, the others change it."""
    subject, _, rest = prompt.casefold().partition(",")
    hue = next((_HUES[word] for word in subject.split() if word in _HUES), _number(subject))
    look = Look(
        hue=(hue + 0.1 * _number(rest) - 0.05 + 0.05 * _number(negative_prompt)) % 1.0,
        light=0.55 if "night" in subject else 1.0,
    )
    changes = {
        "color": {"saturation": 1.9},
        "realistic": {"saturation": 0.75, "texture": 0.11},
        "artsy": {"levels": 7, "texture": 0.08},
        "trending": {"saturation": 0.3, "light": 0.8 * look.light},
    }
    chosen = {k: v for word, change in changes.items() if word in rest for k, v in change.items()}
    return Look(**{**look.__dict__, **chosen})


def paint(noise: Noise, look: Look, width: int, height: int) -> Pixels:
    """Paint a landscape.

    Args:
        noise: Shape (NUM_NUMBERS,).
        look: What the words ask for.
        width: In pixels.
        height: In pixels.

    Returns:
        RGB, shape (height, width, 3), uint8.
    """
    parts = dict(zip(_SIZES, np.split(noise, np.cumsum(list(_SIZES.values()))[:-1]), strict=True))
    x = (np.arange(width) + 0.5) / width  # (W,)
    y = ((np.arange(height) + 0.5) / height)[:, None]  # (H, 1)
    clouds = _clouds(parts["clouds"].reshape(_CLOUD_SIDE, _CLOUD_SIDE), width, height)  # (H, W)
    picture = _sky(x, y, clouds, parts["moon"], look)
    layers = np.split(parts["ridges"], _NUM_LAYERS)
    for depth, (knots, lift) in enumerate(zip(layers, parts["heights"], strict=True)):
        nearness = depth / (_NUM_LAYERS - 1)
        top = 0.42 + 0.42 * nearness + 0.02 * lift - (0.2 - 0.13 * nearness) * _ridge(knots, x)
        if depth == _NUM_LAYERS - 1:
            top = np.minimum(top, 0.95 - _trees(parts["trees"], x))
        _lay(picture, y - top, nearness, clouds, look)
    tones = look.levels - 1
    return np.asarray(np.rint(np.rint(picture.clip(0, 1) * tones) / tones * 255), dtype=np.uint8)


def _sky(
    x: NDArray[np.float64], y: NDArray[np.float64], clouds: Noise, moon: Noise, look: Look
) -> NDArray[np.float64]:
    top, low = _colour(look, 0.0, 0.55, 0.45), _colour(look, 0.06, 0.35, 0.9)
    picture = _between(top, low, np.broadcast_to((y * 1.6).clip(0, 1), clouds.shape))
    picture += ((clouds - 0.1).clip(0, 1) * (1 - 2.2 * y).clip(0, 1) * 0.5)[..., None]
    along, down, size = _unit(moon)
    radius = 0.04 + 0.035 * size
    distance = np.hypot(x - (0.15 + 0.7 * along), y - (0.12 + 0.22 * down))  # (H, W)
    glow = 0.3 * np.exp(-5 * distance)[..., None]
    disc = ((radius - distance) * len(x) / 2 + 0.5).clip(0, 1)
    return _between(picture + glow, _colour(look, 0.45, 0.22, 0.98), disc)


def _lay(
    picture: NDArray[np.float64],
    depth: NDArray[np.float64],
    nearness: float,
    clouds: Noise,
    look: Look,
) -> None:
    """Lay one ridge over the picture; `depth` (H, W) is how far a pixel is below its crest."""
    rock = _colour(look, 0.42 + 0.12 * nearness, 0.5 + 0.2 * nearness, 0.72 - 0.62 * nearness)
    mist = _colour(look, 0.3, 0.25, 0.8 - 0.5 * nearness)
    body = _between(rock, mist, (2.2 * depth * (1 - nearness)).clip(0, 0.7))
    body += (look.texture * (1 - 0.8 * nearness) * clouds)[..., None]
    cover = (depth * picture.shape[0] + 0.5).clip(0, 1)[..., None]
    picture += (body - picture) * cover


def _ridge(knots: Noise, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a crest line over x: rough lines of ever more knots, summed."""
    line = np.zeros_like(x)
    start = 0
    for octave, count in enumerate(_KNOTS):
        values = knots[start : start + count + 1]
        line += 0.55**octave * np.interp(x, np.linspace(0, 1, count + 1), values)
        start += count + 1
    return line * 0.6


def _trees(numbers: Noise, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how high the firs stand over x."""
    place, size = np.split(_unit(numbers)[:, None], 2)  # (NUM_TREES, 1) each
    height = 0.06 + 0.12 * size
    below_tip = np.abs(x - place) * 3.4  # (NUM_TREES, W)
    branches = 0.35 * (below_tip % 0.03)
    return np.asarray((height - below_tip - branches).max(axis=0).clip(0))


def _clouds(grid: Noise, width: int, height: int) -> Noise:
    """Return soft noise, shape (height, width), from a coarse grid in three octaves."""
    total = np.zeros((height, width))
    for octave, side in enumerate((4, 9, _CLOUD_SIDE)):
        total += 0.7**octave * _stretch(_stretch(grid[:side, :side], height).T, width).T
    return total * 0.5


def _stretch(rows: Noise, count: int) -> Noise:
    """Interpolate rows (n, m) to (count, m), smoothly."""
    place = np.linspace(0, len(rows) - 1.001, count)
    index = place.astype(int)
    part = place - index
    part = (part * part * (3 - 2 * part))[:, None]
    return np.asarray(rows[index] * (1 - part) + rows[index + 1] * part)


def _between(
    first: NDArray[np.float64], second: NDArray[np.float64], share: NDArray[np.float64]
) -> NDArray[np.float64]:
    return first + (second - first) * share[..., None]


def _colour(look: Look, turn: float, saturation: float, value: float) -> NDArray[np.float64]:
    hue = (look.hue + turn) % 1.0
    strength = min(saturation * look.saturation, 1.0)
    return np.array(colorsys.hsv_to_rgb(hue, strength, value * look.light))


def _unit(numbers: Noise) -> Noise:
    """Bring normal numbers to 0 … 1, smoothly."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.8 * numbers))


def _number(words: str) -> float:
    """Return a number 0 … 1 that is always the same for the same words."""
    return hashlib.sha256(" ".join(words.split()).encode()).digest()[0] / 256
