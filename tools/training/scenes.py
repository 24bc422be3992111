"""One picture from its wording and its twelve numbers: the whole drawing, in order.

picture = draw(Wording(subject="labrador", style="vermeer"), np.zeros(12))  # (256, 256, 3) uint8
"""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import skia
from numpy.typing import NDArray

from tools.training.backdrops import Setting
from tools.training.composition import Composition, place
from tools.training.ink import Palette, Rgb, gradient, luminance, mix
from tools.training.modifiers import MODIFIERS, TIMES, WEATHER
from tools.training.styles import STYLES, Scene, subject_mask
from tools.training.subjects import ACCENTS, AT_SEA, IN_THE_AIR, NATURAL, SUBJECTS
from tools.training.words import COLORS, Wording

RED: Rgb = (0.86, 0.20, 0.16)

FINE_CONTRAST = 24
"""Of 255: a fine part is there where it changes a colour by as much."""
FINE_RIM = np.ones((7, 7), np.uint8)
"""Three pixels around it belong to it."""


def palette_for(wording: Wording, composition: Composition) -> Palette:
    """The colour of every role: the main one from the words, or else from the seed."""
    if wording.color is not None:
        main = COLORS[wording.color]
    else:
        main = gradient(NATURAL[wording.subject], composition.hue)
    accent = ACCENTS.get(wording.subject, RED)
    if wording.subject == "fish":
        accent = mix(main, (0.85, 0.20, 0.20), 0.55)
    return {
        "main": main,
        "second": mix(
            main, (0.10, 0.05, 0.05) if luminance(main) > 0.25 else (0.5, 0.5, 0.5), 0.32
        ),
        "light": (0.98, 0.96, 0.90),
        "dark": (0.20, 0.13, 0.10),
        "accent": accent,
        "leaf": (0.22, 0.55, 0.20),
        "lamp": (1.0, 0.90, 0.45),
        "beam": (1.0, 0.95, 0.62),
        "night": (0.16, 0.18, 0.36),
        "flag": RED,
        "fire": (0.98, 0.48, 0.10),
        "glass": (0.66, 0.86, 0.96),
        "metal": (0.64, 0.67, 0.72),
        "wood": (0.45, 0.29, 0.17),
        "hair": (0.34, 0.19, 0.10),
        "skin": (0.96, 0.78, 0.64),
        "blush": (0.90, 0.60, 0.50),
    }


def compose(wording: Wording, composition: Composition, scale: int = 1) -> Scene:
    """Put the subject into its setting."""
    spot = place(composition, wording.side, wording.size)
    matrix = skia.Matrix()
    matrix.setTranslate(spot.center_x_px, spot.center_y_px)
    matrix.preScale(-spot.half_size_px if spot.flip else spot.half_size_px, spot.half_size_px)
    setting = Setting(
        composition=composition,
        is_at_sea=wording.subject in AT_SEA,
        time=wording.time,
        is_moonlit=wording.subject == "moon",
    )
    return Scene(
        setting=setting,
        parts=SUBJECTS[wording.subject](composition.pose),
        palette=palette_for(wording, composition),
        matrix=matrix,
        unit_px=spot.half_size_px,
        has_shadow=wording.subject not in AT_SEA | IN_THE_AIR,
        scale=scale,
    )


def draw(wording: Wording, normals: NDArray[np.floating], scale: int = 1) -> NDArray[np.uint8]:
    """Draw one picture.

    Args:
        wording: what it shows.
        normals: its composition, shape `(12,)`, standard normal.
        scale: how many times as wide and high as 256 px.

    Returns:
        The picture, shape `(256 * scale, 256 * scale, 3)`, uint8 RGB.
    """
    return _painted(compose(wording, Composition.from_normals(normals), scale), wording)


def fine_places(
    picture: NDArray[np.uint8], wording: Wording, normals: NDArray[np.floating]
) -> NDArray[np.bool_]:
    """Where a drawing has eyes, whiskers and the like: what changes without them, and its rim.

    Args:
        picture: what `draw` makes of the other two, shape `(256, 256, 3)`.
        wording: what it shows.
        normals: its composition, shape `(12,)`.

    Returns:
        Shape `(256, 256)`.
    """
    scene = compose(wording, Composition.from_normals(normals))
    coarse = replace(scene, parts=[part for part in scene.parts if not part.is_fine])
    changed = np.ptp(np.stack([picture, _painted(coarse, wording)]), axis=0).max(axis=2)
    return cv2.dilate((changed >= FINE_CONTRAST).astype(np.uint8), FINE_RIM) > 0


def _painted(scene: Scene, wording: Wording) -> NDArray[np.uint8]:
    picture = STYLES[wording.style](scene)
    mask = subject_mask(scene)
    if wording.time is not None:
        picture = TIMES[wording.time](picture, mask)
    if wording.weather is not None:
        picture = WEATHER[wording.weather](picture, mask)
    modify = MODIFIERS[wording.modifier]
    if modify is not None:
        picture = modify(picture, mask)
    return np.round(np.clip(picture, 0, 1) * 255).astype(np.uint8)
