"""What can be done to pixels, from one step of one colour to another picture altogether."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Final

import numpy as np
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

from seedgrid.core.picture import Pixels

Edit = Callable[[Pixels], Pixels]


def _added(pixels: Pixels, steps: object) -> Pixels:
    changed: Pixels = (pixels.astype(np.int16) + steps).clip(0, 255).astype(np.uint8)
    return changed


def _at(row: int, column: int, colour: int, step: int) -> Edit:
    def edit(pixels: Pixels) -> Pixels:
        changed = pixels.copy()
        value = int(changed[row, column, colour])
        changed[row, column, colour] = value + step if 0 <= value + step <= 255 else value - step
        return changed

    return edit


def _square(size: int, step: int) -> Edit:
    def edit(pixels: Pixels) -> Pixels:
        steps = np.zeros(pixels.shape, np.int16)
        steps[4 : 4 + size, 9 : 9 + size] = step
        return _added(pixels, steps)

    return edit


def _noise(size: int, share: float) -> Edit:
    def edit(pixels: Pixels) -> Pixels:
        random = np.random.default_rng(size)
        steps = random.integers(-size, size + 1, pixels.shape)
        return _added(pixels, steps * (random.random(pixels.shape) < share))

    return edit


def _image(change: Callable[[Image.Image], Image.Image]) -> Edit:
    return lambda pixels: np.asarray(change(Image.fromarray(pixels)).convert("RGB")).copy()


def _through(form: str, **options: object) -> Edit:
    """Save as another format and read back."""

    def change(image: Image.Image) -> Image.Image:
        buffer = io.BytesIO()
        image.save(buffer, form, **options)
        return Image.open(buffer)

    return _image(change)


def _resized(factor: float) -> Edit:
    def change(image: Image.Image) -> Image.Image:
        width, height = (max(1, round(side * factor)) for side in image.size)
        return image.resize((width, height), Image.Resampling.LANCZOS)

    return _image(change)


def _text(image: Image.Image) -> Image.Image:
    from PIL import ImageDraw

    marked = image.copy()
    ImageDraw.Draw(marked).text((3, 3), "by me", fill=(255, 255, 255))
    return marked


def _healed(pixels: Pixels) -> Pixels:
    """Copy one part of the picture over another, as a stamp tool does."""
    changed = pixels.copy()
    changed[20:32, 20:32] = pixels[40:52, 4:16]
    return changed


def _hidden_message(pixels: Pixels) -> Pixels:
    """Write bits into the lowest bit of every value."""
    bits = np.unpackbits(np.frombuffer(b"nobody sees this " * pixels.size, np.uint8))
    changed: Pixels = (pixels & 254) | bits[: pixels.size].reshape(pixels.shape)
    return changed


SAME_SIZE: Final[dict[str, Edit]] = {
    **{f"one pixel by {step}": _at(9, 11, 2, step) for step in (1, -1, 2, 3, 40)},
    "the first pixel by one": _at(0, 0, 0, 1),
    "the last pixel by one": _at(-1, -1, 2, 1),
    "a row by one": lambda p: _added(p, np.eye(p.shape[0], dtype=np.int16)[5][:, None, None]),
    **{
        f"a square of {size} by {step}": _square(size, step)
        for size, step in ((2, 1), (2, -2), (6, 1), (6, 4), (20, 1), (30, 60))
    },
    **{
        f"noise of {size} in {share:.1%}": _noise(size, share)
        for size, share in ((1, 0.001), (1, 0.05), (1, 1), (2, 0.001), (2, 1), (9, 0.002), (20, 1))
    },
    "one channel by one": lambda p: _added(p, np.array([0, 1, 0])),
    "everything by one": lambda p: _added(p, 1),
    "brighter": _image(lambda i: ImageEnhance.Brightness(i).enhance(1.1)),
    "more contrast": _image(lambda i: ImageEnhance.Contrast(i).enhance(1.2)),
    "sharper": _image(lambda i: i.filter(ImageFilter.SHARPEN)),
    "blurred": _image(lambda i: i.filter(ImageFilter.GaussianBlur(0.6))),
    "grey": _image(ImageOps.grayscale),
    "inverted": _image(ImageOps.invert),
    "fewer colours": _image(lambda i: ImageOps.posterize(i, 7)),
    "64 colours": _image(lambda i: i.quantize(64)),
    "colours swapped": lambda p: p[..., ::-1].copy(),
    "mirrored": lambda p: p[:, ::-1].copy(),
    "upside down": lambda p: p[::-1].copy(),
    "turned by 180": _image(lambda i: i.rotate(180)),
    "turned by one degree": _image(lambda i: i.rotate(1)),
    "moved by one pixel": lambda p: np.roll(p, 1, axis=1),
    "a part copied over another": _healed,
    "a name written on it": _image(_text),
    "a hidden message": _hidden_message,
    "down and up again": lambda p: _resized(p.shape[0] / 48)(_resized(48 / p.shape[0])(p))[
        : p.shape[0], : p.shape[1]
    ],
    "JPEG and back": _through("JPEG", quality=95),
    "JPEG at its best and back": _through("JPEG", quality=100, subsampling=0),
    "WebP and back": _through("WEBP", quality=90),
    "all black": np.zeros_like,
    "all of one colour": lambda p: np.full_like(p, 127),
}
"""By name. Each changes something and keeps the size of a square picture."""

OTHER_SIZE: Final[dict[str, Edit]] = {
    "cut at the bottom": lambda p: p[:-8],
    "cut at the left": lambda p: p[:, 3:],
    "the middle of it": lambda p: p[8:-8, 8:-8],
    "one row less": lambda p: p[:-1],
    "one row more": lambda p: np.concatenate([p, p[-1:]]),
    "half as large": _resized(0.5),
    "twice as large": lambda p: p.repeat(2, 0).repeat(2, 1),
    "a frame around it": lambda p: np.pad(p, ((4, 4), (4, 4), (0, 0))),
    "beside itself": lambda p: np.concatenate([p, p], axis=1),
    "one pixel": lambda p: p[:1, :1],
}

LOSSLESS: Final = ("WEBP", "TIFF", "BMP", "PPM")
"""Formats through which every pixel comes back."""
