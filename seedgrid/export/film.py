"""Writes the steps of a picture, from noise on, as a looping WebP or GIF; interpolates nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from PIL import Image

from seedgrid.core.errors import InputError, RunError
from seedgrid.core.picture import Entry, Pixels, pixels_sha256
from seedgrid.diffusion.backend import Backend, Placement, PreviewMaker, Unwatched
from seedgrid.formats.own_texts import mark_text
from seedgrid.storage.files import open_atomically

MAX_FRAMES: Final = 100
MAX_SIDE_PX: Final = 512
SUFFIXES: Final = (".webp", ".gif")

_NOISE_MS: Final = 700
_STEPS_MS: Final = 3000  # Of all steps together, about; one step is within `_STEP_MS`
_STEP_MS: Final = (60, 450)
_END_MS: Final = 2200
_WEBP_QUALITY: Final = 82


@dataclass(frozen=True, kw_only=True)
class Film:
    """The previews of a picture that was painted again."""

    steps: tuple[Pixels, ...]  # the noise and the previews of the steps, (height, width, 3) each
    end: Pixels  # the finished picture in its full size
    is_same: bool  # whether `end` equals the picture in the library bit for bit
    has_start: bool = False  # whether the picture began from another one


def paint_film(entry: Entry, backend: Backend, placement: Placement) -> Film:
    """Paint a picture again with its steps' previews, on the backend's thread; raise on failure."""
    recorder = _PreviewRecorder()
    backend.prepare(entry.recipe, placement)
    (end,) = backend.paint([entry.recipe], placement, recorder)
    if isinstance(end, RunError):
        raise end
    return Film(
        steps=tuple(recorder.frames),
        end=end,
        is_same=pixels_sha256(end) == entry.pixels_sha256,
        has_start=bool(entry.recipe.start),
    )


class _PreviewRecorder(Unwatched):
    """Keeps the previews of the first picture of a batch."""

    def __init__(self) -> None:
        self.frames: list[Pixels] = []

    def noise(self, previews: PreviewMaker) -> None:
        self.frames = list(previews()[:1])

    def step(self, number: int, total: int, previews: PreviewMaker) -> None:
        # Of very many steps only every n-th preview is taken: about `MAX_FRAMES`.
        every = -(-total // MAX_FRAMES)
        if number % every == 0 or number == total:
            self.frames += previews()[:1]

    def freed(self) -> None:
        self.frames = []  # The batch is painted again from the beginning.


def check_suffix(path: Path) -> str:
    """Return the suffix of a film's file, in small letters; others raise `film_suffix`."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError("film_suffix", field="film", value=path.name)
    return suffix


def write_film(film: Film, path: Path) -> None:
    """Write a film as WebP or GIF; raise `film_suffix`, or if the file cannot be written."""
    suffix = check_suffix(path)
    first, *others = _frames(film)
    how: dict[str, Any] = {"optimize": True}  # GIF files have no mark (XMP).
    if suffix == ".webp":
        how = {"quality": _WEBP_QUALITY, "xmp": mark_text(has_start=film.has_start).encode()}
    with open_atomically(path) as file:
        times = {"duration": durations_ms(len(film.steps)), "loop": 0}
        first.save(file, suffix[1:], save_all=True, append_images=others, **times, **how)


def durations_ms(num_steps: int) -> list[int]:
    """Return the duration of each frame in ms: the noise, the steps, the end."""
    if num_steps == 0:
        return [_END_MS]
    shortest, longest = _STEP_MS
    step_ms = min(max(_STEPS_MS // max(1, num_steps - 1), shortest), longest)
    return [_NOISE_MS, *[step_ms] * (num_steps - 1), _END_MS]


def _frames(film: Film) -> Sequence[Image.Image]:
    end = Image.fromarray(film.end)
    scale = min(1.0, MAX_SIDE_PX / max(end.size))
    size = (max(1, round(end.width * scale)), max(1, round(end.height * scale)))
    images = [Image.fromarray(pixels) for pixels in film.steps]
    small = [image.resize(size, Image.Resampling.BICUBIC) for image in images]
    return [*small, end.resize(size, Image.Resampling.LANCZOS)]
