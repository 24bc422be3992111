"""Arguments and results of a studio: seeds, options, masks, and pictures to save and pass on."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict

import numpy as np
from numpy.typing import NDArray

from seedgrid.core.checks import check_seed, parse_seeds, parse_start
from seedgrid.core.errors import InputError, Notice, PictureError
from seedgrid.core.picture import Entry, Pixels
from seedgrid.core.recipe import Recipe
from seedgrid.core.request import Request
from seedgrid.core.variations import Region, check_feather
from seedgrid.diffusion.backend import Placement
from seedgrid.formats import png
from seedgrid.storage import starts

if TYPE_CHECKING:
    from PIL.Image import Image

    from seedgrid.library import Library

Seeds = str | int | Sequence[int]  # `"0-3"`, `7`, or `[7, 11, 42]`

_ID_DIGITS: Final = frozenset("0123456789abcdef")


class RunOptions(TypedDict, total=False):
    """Options of a run; a missing one means the studio's default."""

    owner: str  # Whose run it is; owners take turns. On the page each visitor is one.
    address: str  # The owner's network address, as the server sees it
    library: Library  # Where the pictures go, and where their parents are
    placement: Placement  # Where to compute
    fresh: bool  # Compute pictures that the library already has, too
    live: bool  # It follows the typing and is not saved; see `Engine.submit`


class Pictures(tuple[Entry, ...]):
    """The pictures of one round, in the order of their cells."""

    notices: tuple[Notice, ...] = ()  # Of the run

    def __repr__(self) -> str:
        return f"Pictures({', '.join(f'seed {p.seed}: {p.prompt!r}' for p in self)})"

    def _repr_png_(self) -> bytes:
        """Show the round in a notebook."""
        target = io.BytesIO()
        self.sheet().save(target, "PNG")
        return target.getvalue()

    def sheet(self) -> Image:
        """Return the pictures as one grid: 2x2 for four, nearly square for other numbers."""
        from seedgrid.export.sheets import make_grid

        return make_grid((picture.image for picture in self), count=len(self))


AnyPicture = Entry | str | Path
"""An entry, a PNG file, or an id in the library or the beginning of one."""


def find_picture(picture: AnyPicture, library: Callable[[], Library]) -> Entry:
    """Return the entry of a picture; the library is opened for an id only.

    Raise for a bad file, and `picture_unknown` or `picture_ambiguous` for an id.
    """
    if isinstance(picture, Entry):
        return picture
    if is_id(picture):
        return library().find(str(picture))
    path = Path(picture).expanduser()
    data = png.read_bytes(path)
    record = png.read(data)
    return Entry(
        path=path.absolute(),
        recipe=record.recipe,
        passport=record.passport,
        lineage=record.lineage,
        pixels_sha256=record.pixels_sha256,
        file_sha256=hashlib.sha256(data).hexdigest(),
    )


def keep_start(picture: AnyPicture, library: Callable[[], Library]) -> str:
    """Keep a picture as a start and return its digest; raise if it cannot be read or kept."""
    if isinstance(picture, str) and starts.place_of(picture) is not None:
        return picture
    if isinstance(picture, str | Path) and not is_id(picture):
        pixels = starts.read_picture(png.read_bytes(Path(picture).expanduser()))
    else:
        pixels = png.read_pixels(find_picture(picture, library).path)
    return library().keep_start(pixels)


AnyMask = str | Path | NDArray[Any]
"""A file, the digest of a kept mask, or an array: (height, width), or with colours."""


def take_region(
    only: AnyMask | None, feather: int | None, recipe: Recipe, library: Callable[[], Library]
) -> tuple[Region | None, tuple[Notice, ...]]:
    """Keep the mask of what may change, resized to the picture; return the region and notices.

    Raises:
        InputError: `mask_empty`, `mask_full`, `feather_range`, `feather_alone`.
        PictureError: The mask is missing, or no picture.
    """
    if only is None:
        if feather is not None:
            raise InputError("feather_alone", field="feather", value=feather)
        return None, ()
    feather = check_feather(feather, recipe)
    given = _read_mask(only)
    kept = starts.check_mask(given, recipe.width, recipe.height)
    region = Region(mask=library().keep_start(kept), feather=feather)
    if given.shape == kept.shape:
        return region, ()
    was, now = (f"{each.shape[1]}x{each.shape[0]}" for each in (given, kept))
    return region, (Notice("mask_fitted", value=was, instead=now),)


def _read_mask(only: AnyMask) -> Pixels:
    if isinstance(only, np.ndarray):
        if only.ndim not in (2, 3) or only.dtype not in (np.bool_, np.uint8) or not only.size:
            raise PictureError("start_unreadable")
        grey = only if only.ndim == 2 else only[..., :3].max(axis=2)
        white = grey if grey.dtype == np.bool_ else grey >= starts.WHITE
        return np.where(white[..., None], np.uint8(255), np.uint8(0)).repeat(3, axis=2)
    if isinstance(only, str) and starts.place_of(only) is not None:
        return starts.pixels(only)
    return starts.read_picture(png.read_bytes(Path(only).expanduser()))


def with_start(request: Request, library: Callable[[], Library]) -> Request:
    """Return the request with the digest of its start instead of an id; a path is not read.

    Raise `start_unknown`, by the field `start`, if it is not in the library.
    """
    if not request.start:
        return request
    start = parse_start(request.start)
    if starts.place_of(start) is None:
        try:
            entry = library().find(start)
        except InputError as error:
            if error.code != "picture_unknown":
                raise
            raise InputError("start_unknown", field="start", value=start[:12]) from error
        start = keep_start(entry, library)
    return replace(request, start=start)


def check_starts(recipes: Iterable[Recipe], library: Library) -> None:
    """Refuse recipes whose starts or masks a library lacks; raise `start_missing`."""
    for recipe in recipes:
        for digest in recipe.kept_pixels:
            if not _is_kept(digest, library):
                raise PictureError("start_missing", value=digest[:12])


def has_starts(recipe: Recipe, library: Library) -> bool:
    """Tell whether a library holds the starts and masks of a recipe."""
    return all(_is_kept(digest, library) for digest in recipe.kept_pixels)


def _is_kept(digest: str, library: Library) -> bool:
    return (library.starts / f"{digest}.png").is_file()


def is_id(picture: str | Path) -> bool:
    """Tell whether this can be an id or the beginning of one, and is no file."""
    return set(str(picture)) <= _ID_DIGITS and not Path(picture).exists()


def read_seeds(seeds: Seeds) -> tuple[int, ...]:
    """Return the seeds as numbers; raise if one is no seed."""
    if isinstance(seeds, str):
        return parse_seeds(seeds)
    if isinstance(seeds, Sequence):
        return tuple(check_seed(seed) for seed in seeds)
    return (check_seed(seeds),)
