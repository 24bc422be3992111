"""The types of the Studio's arguments and results; the functions that turn requests into recipes.

They read word lists and LoRAs, find start pictures, choose batch widths, and refuse what a public
page does not offer.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict

import numpy as np
from numpy.typing import NDArray

from seedgrid.core.card import ModelCard
from seedgrid.core.checks import check_count, check_seed, parse_seeds, parse_start
from seedgrid.core.errors import InputError, Notice, PictureError
from seedgrid.core.picture import Entry, Pixels
from seedgrid.core.prompts import alternatives, names_list, read_tags
from seedgrid.core.recipe import Lora, Recipe
from seedgrid.core.request import Request, ask_again, resolve
from seedgrid.core.text import expanded
from seedgrid.core.variables import is_public
from seedgrid.core.variations import Region, check_feather
from seedgrid.diffusion.backend import Placement
from seedgrid.diffusion.probe_results import advised_width
from seedgrid.formats import png
from seedgrid.models.loras import LORAS, find_lora
from seedgrid.models.shelf import UPSCALERS
from seedgrid.storage import starts

if TYPE_CHECKING:
    from PIL.Image import Image

    from seedgrid.library import Library

Seeds = str | int | Sequence[int]  # `"0-3"`, `7`, or `[7, 11, 42]`

MAX_LIST_KB: Final = 64
_ID_DIGITS: Final = frozenset("0123456789abcdef")


class RunOptions(TypedDict, total=False):
    """Options of a run; a missing one means the studio's default."""

    owner: str  # Whose run this is; owners take turns. Each visitor of the page is an owner.
    address: str  # The owner's network address, as the server sees it
    library: Library  # Where the pictures go, and where their parents are
    placement: Placement  # Where to compute
    fresh: bool  # Compute pictures that the library already has, too
    live: bool  # The run shows what is being typed, unsaved; see `Engine.submit`


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

    Raise PictureError for a bad file, `picture_unknown` or `picture_ambiguous` for an id.
    """
    if isinstance(picture, Entry):
        return picture
    if is_id(picture):
        return library().find(str(picture))
    path = expanded(picture)
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
    """Store a picture as a start; return its digest. Raise if it cannot be read or stored."""
    if isinstance(picture, str) and starts.place_of(picture) is not None:
        return picture
    if isinstance(picture, str | Path) and not is_id(picture):
        pixels = starts.read_picture(png.read_bytes(expanded(picture)))
    else:
        pixels = png.read_pixels(find_picture(picture, library).path)
    return library().keep_start(pixels)


AnyMask = str | Path | NDArray[Any]
"""A file, a stored mask's digest, or an array of shape (height, width) or (height, width, 3)."""


def make_region(
    only: AnyMask | None, feather: int | None, recipe: Recipe, library: Callable[[], Library]
) -> tuple[Region | None, tuple[Notice, ...]]:
    """Store a mask, resized to the picture; return the region that may change, and notices.

    Raises:
        InputError: `mask_empty`, `mask_full`, `feather_range`, `feather_alone`.
        PictureError: The mask is missing, or is no picture.
    """
    if only is None:
        if feather is not None:
            raise InputError("feather_alone", field="feather", value=feather)
        return None, ()
    feather = check_feather(feather, recipe)
    mask = _read_mask(only)
    fitted = starts.check_mask(mask, recipe.width, recipe.height)
    region = Region(mask=library().keep_start(fitted), feather=feather)
    if mask.shape == fitted.shape:
        return region, ()
    old_size, new_size = (f"{each.shape[1]}x{each.shape[0]}" for each in (mask, fitted))
    return region, (Notice("mask_fitted", value=old_size, instead=new_size),)


def _read_mask(only: AnyMask) -> Pixels:
    if isinstance(only, np.ndarray):
        if only.ndim not in (2, 3) or only.dtype not in (np.bool_, np.uint8) or not only.size:
            raise PictureError("start_unreadable")
        grey = only if only.ndim == 2 else only[..., :3].max(axis=2)
        white = grey if grey.dtype == np.bool_ else grey >= starts.WHITE
        return np.where(white[..., None], np.uint8(255), np.uint8(0)).repeat(3, axis=2)
    if isinstance(only, str) and starts.place_of(only) is not None:
        return starts.pixels(only)
    return starts.read_picture(png.read_bytes(expanded(only)), paper="black")


def with_start(request: Request, library: Callable[[], Library]) -> Request:
    """Return the request with its start's digest in place of a picture's id; no path is read.

    Raise `start_unknown`, at the field `start`, if the library lacks the picture.
    """
    if not request.start:
        return request
    start = parse_start(request.start)
    if not _is_stored(start, library()):
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
            if not _is_stored(digest, library):
                raise PictureError("start_missing", value=digest[:12])


def has_starts(recipe: Recipe, library: Library) -> bool:
    """Tell whether a library holds the starts and masks of a recipe."""
    return all(_is_stored(digest, library) for digest in recipe.kept_pixels)


def _is_stored(digest: str, library: Library) -> bool:
    return (library.starts / f"{digest}.png").is_file()


def is_id(picture: str | Path) -> bool:
    """Tell whether a text can be an id or the beginning of one, and is no file's path."""
    return set(str(picture)) <= _ID_DIGITS and not Path(picture).exists()


def read_seeds(seeds: Seeds) -> tuple[int, ...]:
    """Return the seeds as numbers; raise if one is no seed."""
    if isinstance(seeds, str):
        return parse_seeds(seeds)
    if isinstance(seeds, Sequence):
        return tuple(check_seed(seed) for seed in seeds)
    return (check_seed(seeds),)


def resolve_prompts(
    request: Request, prompts: Sequence[str], card: ModelCard
) -> tuple[Recipe, ...]:
    """Turn a request into recipes, each prompt on every seed; raise for a wrong field or LoRA.

    A `lock_width` of None becomes the model's, or less if a probe on this machine found a leak.
    """
    find = cache(find_lora)  # Each file is read once
    chosen = dict.fromkeys(one for prompt in prompts for one in alternatives(prompt))
    check_count(len(chosen) * len(request.seeds), field="prompt")
    requested = [_with_loras(replace(request, prompt=prompt), find) for prompt in chosen]
    recipes = tuple(recipe for one in requested for recipe in resolve(one, card))
    if request.lock_width is not None:
        return recipes
    return tuple(at_advised_width(recipe) for recipe in recipes)


def list_lines(folder: Path | None, field: str, name: str) -> list[str]:
    """Return the lines of a word list; empty ones and those with `#` in front are left out.

    A line may hold braces, weights and LoRAs; `folder` is None on a public page. Raise
    `list_unknown`, `list_public` or `list_file`.
    """
    if folder is None:
        raise InputError("list_public", field=field, value=name)
    path = folder / f"{name}.txt"
    if not path.is_file():
        raise InputError("list_unknown", field=field, value=name, path=path)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_LIST_KB * 1000 + 1)
        lines = [line.strip() for line in data.decode("utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError):
        data, lines = b"", []
    choices = [line for line in lines if line and not line.startswith("#")]
    if not choices or len(data) > MAX_LIST_KB * 1000 or any(map(names_list, choices)):
        raise InputError("list_file", field=field, value=name, path=path, limit=MAX_LIST_KB)
    return [each for line in choices for each in alternatives(line)]


def at_advised_width(recipe: Recipe) -> Recipe:
    """Return the recipe, with a smaller batch width if a probe found a leak at its own.

    Portable pictures do not depend on the width, so their recipe is the same on every machine.
    """
    if recipe.is_portable:
        return recipe
    width = advised_width(recipe.model.weights_sha256, recipe.dtype, recipe.lock_width)
    return recipe.model_copy(update={"lock_width": width})


def check_offered(recipes: Collection[Recipe], card: Callable[[str | None], ModelCard]) -> None:
    """Refuse recipes with models, number formats, LoRAs or upscalers that a public page lacks.

    Raise `dtype_not_offered`, `lora_not_offered`, `upscaler_not_offered`, or what `card` raises.
    """
    if not is_public():
        return
    recipes = [each for recipe in recipes for each in recipe.line]
    for model, dtype in {(ask_again(r).model, r.dtype) for r in recipes if not r.upscaler}:
        own = card(model).dtype  # Another takes a hundred times as long on some machines.
        if dtype.removeprefix("int8-") != own.removeprefix("int8-"):
            raise InputError("dtype_not_offered", field="dtype", value=dtype, own=own)
    for upscaler in {recipe.upscaler for recipe in recipes if recipe.upscaler}:
        UPSCALERS.check_offered(upscaler.id)
    for name in {lora.id for recipe in recipes for lora in recipe.loras}:
        LORAS.check_offered(name)


def width_notices(recipes: Sequence[Recipe], usual: int) -> tuple[Notice, ...]:
    """Return a notice for each batch width below the usual one."""
    widths = {recipe.lock_width for recipe in recipes if recipe.lock_width < usual}
    return tuple(Notice("width_lowered", width=width, usual=usual) for width in sorted(widths))


def _with_loras(request: Request, find: Callable[[str], Lora]) -> Request:
    """Return the request with the LoRAs that its prompt names, as in `<lora:fox:0.8>`."""
    prompt, tags = read_tags(request.prompt)
    named = (find(name).model_copy(update={"scale": scale}) for name, scale in tags)
    return replace(request, prompt=prompt, loras=(*request.loras, *named))
