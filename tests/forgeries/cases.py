"""Every forgery of some honest pictures, and which verdicts on it are right.

What is right is not asked of what is tested: an edited pixel is counted here, and a changed recipe
is painted here by the backend alone, and its pixels are compared.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from seedgrid.core.errors import InputError, RunError, SeedGridError
from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import Passport, Recipe, read_recipe
from tests.forgeries import besides, files, hidden, looks, pixels, places, records, spelled
from tests.forgeries.files import Named
from tests.forgeries.originals import Original

Paint = Callable[[Recipe, Passport], Pixels]
"""Paints a recipe where a passport says, or raises a `SeedGridError`."""

_DIGEST: Final = "0" * 64


@dataclass(frozen=True, kw_only=True)
class Case:
    """A file, and the verdicts on it that are right.

    Attributes:
        data: What is in the file.
        wanted: Mostly one; two where both are true of it.
    """

    name: str
    data: bytes
    wanted: frozenset[str]


def cases(originals: Sequence[Original], paint: Paint, *, every: int = 1) -> Iterator[Case]:
    """Forge pictures that were painted with one model and one set of settings, seed by seed.

    Args:
        originals: At least two.
        paint: Says what is true of changed recipes.
        every: Of what has to be painted again only each so-manieth is made, of one picture.
    """
    for place, it in enumerate(originals if every == 1 else originals[:1]):
        named = f"picture {place}: "
        for case in itertools.islice(_of_pixels(it, originals[place - 1]), 0, None, every):
            yield Case(name=named + case.name, data=case.data, wanted=case.wanted)
    first = originals[0]
    yield from _all("impossible", files.no_picture(first))
    yield from _all("impossible", records.records_of_their_own(first))
    yield from _all("identical", files.shown_as_it_is(first))
    yield from _all("altered", looks.shown_otherwise(first))
    yield from itertools.islice(_of_hidden(first), 0, None, every)
    yield from _of_recipes(first, paint, every)
    yield from _of_passports(first, paint, every)


def _of_hidden(it: Original) -> Iterator[Case]:
    for module in (hidden, besides, places, spelled):
        yield from _all("identical", module.shown_as_it_is(it))
        yield from _all("altered", module.shown_or_told_otherwise(it))
    for module in (hidden, besides, spelled):
        yield from _all("impossible", module.no_picture(it))
    for name, data in hidden.bombs(it):
        yield _case(name, data, "identical", "altered", "impossible")


def cases_of_words(originals: Sequence[Original]) -> Iterator[Case]:
    """Copy the words of pictures that were painted with `places.ODD_WORDS` as programs do."""
    for it in originals:
        named = f"{it.recipe.prompt[:20]!r}: "
        for name, data in places.with_own_words(it):
            yield _case(named + name, data, "identical")


def _all(wanted: str, named: Iterator[Named]) -> Iterator[Case]:
    for name, data in named:
        yield _case(name, data, wanted)


def _case(name: str, data: bytes, *wanted: str) -> Case:
    return Case(name=name, data=data, wanted=frozenset(wanted))


def _of_pixels(it: Original, neighbour: Original) -> Iterator[Case]:
    """Edits: with the digest as it was, in step, and under a passport that could excuse some."""
    old = it.record["pixels_sha256"]
    for name, edit in pixels.SAME_SIZE.items():
        edited = edit(it.pixels)
        yield _case(name, it.with_pixels(edited, pixels_sha256=old), "altered")
        yield _case(f"{name}, digest in step", it.with_pixels(edited), "altered")
        excuse = {"passport": it.record["passport"] | {"torch": "2.8.0"}}
        word = "close" if _is_rounding(it.pixels, edited) else "drifted"
        yield _case(f"{name}, as if of an older torch", it.with_pixels(edited, **excuse), word)
    for name, edit in pixels.OTHER_SIZE.items():
        edited = edit(it.pixels)
        yield _case(name, it.with_pixels(edited, pixels_sha256=old), "drifted")
        yield _case(f"{name}, digest in step", it.with_pixels(edited), "drifted")
    yield _case("the digest of nobody", it.with_record(pixels_sha256=_DIGEST), "altered")
    theirs = neighbour.pixels
    yield _case("its neighbour's pixels", it.with_pixels(theirs, pixels_sha256=old), "altered")
    yield _case("its neighbour's pixels, in step", it.with_pixels(theirs), "altered")
    recipe = neighbour.record["recipe"]
    yield _case("its neighbour's recipe", it.with_record(recipe=recipe), "altered")


def _is_rounding(one: Pixels, other: Pixels) -> bool:
    """Count what docs/lock.md says: at most 2 of 255 in at most 1 % of the pixels."""
    distance = np.abs(one.astype(int) - other.astype(int)).max(axis=-1)
    return bool(distance.max() <= 2 and (distance > 0).sum() * 100 <= distance.size)


def _of_recipes(it: Original, paint: Paint, every: int) -> Iterator[Case]:
    for name, changes in list(records.OTHER_RECIPES.items())[::every]:
        recipe = read_recipe(json.dumps(it.record["recipe"] | changes))
        truth = _truth(it, paint, recipe, it.passport)
        if truth == "altered" and "determinism" in changes:
            truth = "drifted"  # Its passport would be another, which may change anything.
        yield _case(f"recipe: {name}", it.with_recipe_and_words(recipe, **changes), truth)
    for name, changes in records.IMPOSSIBLE_RECIPES.items():
        yield _case(f"recipe: {name}", it.with_recipe(**changes), "impossible")


def _truth(it: Original, paint: Paint, recipe: Recipe, passport: Passport) -> str:
    """Paint, and say what is true of the file."""
    try:
        painted = paint(recipe, passport)
    except (RunError, SeedGridError, InputError):
        return "impossible"
    if painted.shape != it.pixels.shape:
        return "drifted"
    return "identical" if np.array_equal(painted, it.pixels) else "altered"


def _of_passports(it: Original, paint: Paint, every: int) -> Iterator[Case]:
    """Other passports: with the honest pixels, and with one that is a step too bright."""
    edited = pixels.SAME_SIZE["one pixel by 1"](it.pixels)
    for name, changes in list(records.ROUNDING.items())[::every]:
        yield _case(f"passport: {name}", it.with_passport(**changes), "identical")
        passport = it.record["passport"] | changes
        yield _case(f"passport: {name}, edited", it.with_pixels(edited, passport=passport), "close")
    for name, changes in list(records.NOT_ROUNDING.items())[::every]:
        passport = it.record["passport"] | changes
        truth = _truth(it, paint, it.recipe, Passport.model_validate(passport))
        honest = {"identical"} if truth == "identical" else {"altered", "drifted", "close"}
        yield _case(f"passport: {name}", it.with_passport(**changes), *honest)
        yield _case(
            f"passport: {name}, edited",
            it.with_pixels(edited, passport=passport),
            "altered",
            "drifted",
        )
    for name, changes in list(records.RESTORED.items())[::every]:
        passport = it.record["passport"] | changes
        data = it.with_pixels(edited, passport=passport)
        yield _case(f"passport: {name}, edited", data, "altered", "drifted")
    for gone in ("threads", "determinism", "attention", "device", "torch"):
        passport = {key: value for key, value in it.record["passport"].items() if key != gone}
        yield _case(
            f"passport: {gone} not told, edited",
            it.with_pixels(edited, passport=passport),
            "drifted",
            "altered",
        )
    yield _case("no passport, edited", it.with_pixels(edited, passport={}), "drifted")
    yield _case("another device", it.with_passport(device="cuda:0"), "impossible")
    yield _case("a device that there is not", it.with_passport(device="abacus"), "impossible")
