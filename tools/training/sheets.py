"""Contact sheets: what one looks at, beside the table."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from tools.training.sampling import Sampler
from tools.training.words import MODIFIER_WORDS, STYLE_WORDS, SUBJECT_WORDS, Wording, plain_caption

MARGIN_PX = 16
GUIDE_PROMPT = "Labrador in the style of Vermeer"
GUIDE_SUFFIXES = ("", ", highly realistic", ", artsy", ", trending", ", colorful")

Picture = NDArray[np.uint8]


def sheet(rows: list[list[Picture]], cell_px: int, columns: list[str]) -> Image.Image:
    """Lay pictures out in rows under a line of captions."""
    lines = [
        np.hstack([cv2.resize(p, (cell_px, cell_px), interpolation=cv2.INTER_AREA) for p in row])
        for row in rows
    ]
    body = np.vstack(lines)
    head = np.full((MARGIN_PX, body.shape[1], 3), 255, np.uint8)
    image = Image.fromarray(np.vstack([head, body]))
    pen = ImageDraw.Draw(image)
    for index, name in enumerate(columns):
        pen.text((index * cell_px + 3, 2), name[: cell_px // 6], fill=(40, 40, 40))
    return image


def subjects_by_style(sampler: Sampler, cell_px: int = 112) -> Image.Image:
    """Every subject in every style, each row one seed."""
    rows = []
    for seed, subject in enumerate(SUBJECT_WORDS):
        prompts = [plain_caption(Wording(subject=subject, style=style)) for style in STYLE_WORDS]
        rows.append(list(sampler.pictures(prompts, [seed] * len(prompts))))
    return sheet(rows, cell_px, list(STYLE_WORDS))


def seed_by_modifiers(sampler: Sampler, cell_px: int = 112) -> Image.Image:
    """One seed a row, every modifier a column: the lock, to be seen."""
    rows = []
    scenes = (
        ("labrador", "vermeer"),
        ("cat", "van gogh"),
        ("sailboat", "hokusai"),
        ("house", "plain"),
    )
    for seed, (subject, style) in enumerate(scenes, start=20):
        wordings = [Wording(subject=subject, style=style, modifier=name) for name in MODIFIER_WORDS]
        prompts = [plain_caption(wording) for wording in wordings]
        rows.append(list(sampler.pictures(prompts, [seed] * len(prompts))))
    return sheet(rows, cell_px, list(MODIFIER_WORDS))


def seeds_of_prompts(sampler: Sampler, cell_px: int = 112) -> Image.Image:
    """Eight seeds a row, one prompt each row."""
    prompts = (
        "cat, watercolor",
        "lighthouse at sunset",
        "red fish, stained glass",
        "tree on the left, in the snow",
    )
    rows = [list(sampler.pictures([prompt] * 8, list(range(8)))) for prompt in prompts]
    return sheet(rows, cell_px, [f"seed {seed}" for seed in range(8)])


def guide_example(sampler: Sampler, cell_px: int = 200) -> Image.Image:
    """The guide's example: four seeds down, the prompt and its four suffixes across."""
    prompts = [GUIDE_PROMPT + suffix for suffix in GUIDE_SUFFIXES]
    rows = [list(sampler.pictures(prompts, [seed] * len(prompts))) for seed in range(4)]
    return sheet(rows, cell_px, ["(the prompt)", *GUIDE_SUFFIXES[1:]])


def write_sheets(sampler: Sampler, folder: Path) -> list[Path]:
    """Draw all sheets into `folder` as JPEG files."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {
        "guide.jpg": guide_example(sampler),
        "subjects_by_style.jpg": subjects_by_style(sampler),
        "seed_by_modifiers.jpg": seed_by_modifiers(sampler),
        "seeds.jpg": seeds_of_prompts(sampler),
    }
    for name, image in made.items():
        image.save(folder / name, quality=82, optimize=True)
    return [folder / name for name in made]
