"""The commands that look at pictures: show, diff. They need no model and no torch."""

from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel

from seedgrid.cli import options
from seedgrid.cli.output import picture_row, say, say_json, say_table
from seedgrid.core.picture import Entry
from seedgrid.core.prompts import compare_words
from seedgrid.formats import png
from seedgrid.studio import Studio
from seedgrid.verify.comparison import compare_pixels

Picture = Annotated[str, typer.Argument(help="A SeedGrid PNG file, or an id in the library.")]
Differences = dict[str, tuple[Any, Any]]


def show(picture: Picture, library: options.Library = None, json: options.Json = False) -> None:
    """Print the recipe, passport and lineage in a picture."""
    entry = Studio(library=library).find(picture)
    if json:
        parts = {"recipe": entry.recipe, "passport": entry.passport, "lineage": entry.lineage}
        details = {name: part.model_dump(mode="json") for name, part in parts.items()}
        say_json(picture_row(entry) | details | {"marks": _marks(entry)})
        return
    say(str(entry.path))
    say_table("recipe", {"id": entry.recipe.id, **entry.recipe.model_dump(mode="json")})
    say_table("passport", entry.passport.model_dump(mode="json"))
    say_table("lineage", entry.lineage.model_dump(mode="json"))
    say_table("pixels", {"sha256": entry.pixels_sha256})
    marks = {name: mark for name, mark in _marks(entry).items() if mark}
    if marks:
        say_table("marks", marks)


def diff(
    first: Picture,
    second: Picture,
    library: options.Library = None,
    json: options.Json = False,
) -> None:
    """Print how two pictures differ: recipe, passport, pixels."""
    studio = Studio(library=library)
    before, after = studio.find(first), studio.find(second)
    recipe = _compare(before.recipe, after.recipe)
    passport = _compare(before.passport, after.passport)
    pixels = _compare_pixels(before.path, after.path)
    if json:
        say_json({"recipe": recipe, "passport": passport, **pixels})
        return
    say_table("recipe", {name: _in_words(name, *pair) for name, pair in recipe.items()})
    say_table("passport", {name: _in_words(name, *pair) for name, pair in passport.items()})
    say_table("pixels", pixels)


def _marks(entry: Entry) -> dict[str, bool | str]:
    """Return what the library says beside the picture; a file by itself has no marks."""
    names = ("favourite", "note", "trashed", "lost", "checked")
    return {name: getattr(entry, name) for name in names}


def _compare(first: BaseModel, second: BaseModel) -> Differences:
    before, after = first.model_dump(mode="json"), second.model_dump(mode="json")
    names = [*before, *(name for name in after if name not in before)]
    return {
        name: (before.get(name), after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    }


def _compare_pixels(first: Path, second: Path) -> dict[str, Any]:
    """Return the largest difference, PSNR and how many differ; None for other sizes."""
    found = compare_pixels(png.read_pixels(first), png.read_pixels(second))
    return {
        "max_abs_diff": found.max_abs_diff if found else None,
        "psnr_db": found.psnr_db if found else None,
        "differing_pixels": found.differing_pixels if found else None,
    }


def _in_words(name: str, before: Any, after: Any) -> str:  # noqa: ANN401 (any JSON value)
    """Say a difference on one line; of prompts, which words were [-removed-] and {+added+}."""
    if name not in ("prompt", "negative_prompt"):
        return f"{before} → {after}"
    marks = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}
    return "".join(marks[piece.kind].format(piece.text) for piece in compare_words(before, after))
