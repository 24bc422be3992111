"""What may be said to a studio: seeds, pictures, settings, and for whom a run is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

from seedgrid.core.entry import Entry
from seedgrid.core.seeds import check_seed, parse_seeds
from seedgrid.diffusion.backend import Placement
from seedgrid.pictures import StudioPicture

if TYPE_CHECKING:
    from seedgrid.library import Library

Seeds = str | int | Sequence[int]
"""`"0-3"`, `7`, or `[7, 11, 42]`."""

AnyPicture = StudioPicture | Entry | str | Path
"""One of the studio's, a PNG file, or an id in the library or the beginning of one."""

_ID_DIGITS: Final = frozenset("0123456789abcdef")


class Settings(TypedDict, total=False):
    """What may be said of a picture beside words and seeds; absent means as the model's card says.

    The names are those of `Request` and mean the same.
    """

    negative_prompt: str
    width: int | None
    height: int | None
    num_inference_steps: int | None
    guidance_scale: float | None
    scheduler: str | None
    dtype: str | None
    lock_width: int | None
    determinism: str | None
    portable: bool
    weights: bool
    start: str | None
    strength: float | None


class RunOptions(TypedDict, total=False):
    """For whom, where to and where a run is made; absent means the studio's own.

    Attributes:
        owner: Owners take turns: each visitor of the page is one.
        address: Where from they ask, as the server sees it.
        library: Where the pictures go, and where those are that are gone on from.
        placement: Where to compute.
        fresh: Compute even what the library remembers.
    """

    owner: str
    address: str
    library: Library
    placement: Placement
    fresh: bool


def is_id(picture: str | Path) -> bool:
    """Tell whether this may be an id, or the beginning of one, and not the name of a file."""
    return set(str(picture)) <= _ID_DIGITS and not Path(picture).exists()


def read_seeds(seeds: Seeds) -> tuple[int, ...]:
    """Return the seeds as numbers.

    Raises:
        InputError: One of them is no seed.
    """
    if isinstance(seeds, str):
        return parse_seeds(seeds)
    if isinstance(seeds, Sequence):
        return tuple(check_seed(seed) for seed in seeds)
    return (check_seed(seeds),)
