"""A claim: pixels, and the recipe and passport that are said to have made them."""

from dataclasses import dataclass, field
from pathlib import Path

from seedgrid.core.errors import PictureError
from seedgrid.core.picture import Pixels, pixels_sha256
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.core.speeds import pixel_steps
from seedgrid.formats import png
from seedgrid.formats.appearance import shown_otherwise
from seedgrid.formats.told import told_otherwise, unchecked


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What is to be verified.

    Attributes:
        name: A path or an id, for the report.
        pixels: As they are now; None where there are more or fewer than the recipe says: then
            nothing can be compared, and a stranger's huge picture is not unpacked.
        pixels_sha256: As they were when the picture was made, as the file says.
        shown_otherwise: What makes a viewer show other colours than the pixels have.
        told_otherwise: Whether the file names other words or settings to other programs.
        unchecked: What it holds beside, of which no verdict tells all.
    """

    name: str
    pixels: Pixels | None = field(repr=False, compare=False)
    pixels_sha256: str
    recipe: Recipe
    passport: Passport
    shown_otherwise: tuple[str, ...] = ()
    told_otherwise: bool = False
    unchecked: tuple[str, ...] = ()

    @property
    def is_altered(self) -> bool:
        """Whether the pixels were changed after the picture was made."""
        return self.pixels is None or pixels_sha256(self.pixels) != self.pixels_sha256


def read_claim(path: Path) -> Claim:
    """Read what a PNG file says of itself, and its pixels.

    Raises:
        PictureError: The file is missing or damaged, or holds no recipe that can be read.
    """
    data = png.read_bytes(path)
    record = png.read_claimed(data)
    has_size = (record.width, record.height) == (record.recipe.width, record.recipe.height)
    return Claim(
        name=str(path),
        pixels=png.read_pixels(data) if has_size else None,
        pixels_sha256=record.pixels_sha256,
        recipe=record.recipe,
        passport=record.passport,
        shown_otherwise=shown_otherwise(data) if has_size else (),
        told_otherwise=told_otherwise(data, record.recipe),
        unchecked=unchecked(data),
    )


def asked_by(path: Path) -> int:
    """Return how many pixels a file's batch paints, by steps; 0 for what cannot be verified."""
    try:
        recipe = png.read_claimed(path).recipe
    except PictureError:
        return 0
    return recipe.lock_width * pixel_steps(recipe)


def claim_of(name: str, pixels: Pixels, recipe: Recipe, passport: Passport) -> Claim:
    """Make a claim of a picture that was just made, or that a library holds."""
    return Claim(
        name=name,
        pixels=pixels,
        pixels_sha256=pixels_sha256(pixels),
        recipe=recipe,
        passport=passport,
    )
