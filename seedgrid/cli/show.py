"""The commands show, diff, verify and export on pictures that exist, and probe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from seedgrid.cli import options
from seedgrid.cli.output import (
    ProgressLine,
    complain,
    marks_of,
    picture_row,
    say,
    say_json,
    say_program,
    say_table,
)
from seedgrid.core.errors import InputError, PictureError
from seedgrid.core.picture import Entry
from seedgrid.core.prompts import compare_words
from seedgrid.core.recipe import Recipe
from seedgrid.core.text import expanded
from seedgrid.formats import png
from seedgrid.storage.files import write_atomically
from seedgrid.studio import Studio
from seedgrid.studio.resolving import is_id
from seedgrid.verify.comparison import compare_pixels, figures_of

if TYPE_CHECKING:
    from seedgrid.verify.judging import Verdict

Picture = Annotated[str, typer.Argument(help="A SeedGrid PNG file, or an id in the library.")]
Differences = dict[str, tuple[Any, Any]]


def show(picture: Picture, library: options.Library = None, json: options.Json = False) -> None:
    """Print the recipe, passport and lineage in a picture."""
    entry = Studio(library=library).find(picture)
    if json:
        parts = {"recipe": entry.recipe, "passport": entry.passport, "lineage": entry.lineage}
        details = {name: part.model_dump(mode="json") for name, part in parts.items()}
        say_json(picture_row(entry) | details | {"marks": marks_of(entry)})
        return
    say(str(entry.path))
    say_table("recipe", _rows_of(entry.recipe))
    for parent in entry.recipe.line[1:]:
        say_table("follows", _rows_of(parent))
    say_table("passport", entry.passport.model_dump(mode="json"))
    say_table("lineage", entry.lineage.model_dump(mode="json"))
    say_table("pixels", {"sha256": entry.pixels_sha256})
    marks = {name: mark for name, mark in marks_of(entry).items() if mark}
    if marks:
        say_table("marks", marks)


def diff(
    first: Picture, second: Picture, library: options.Library = None, json: options.Json = False
) -> None:
    """Print how two pictures differ: recipe, passport, pixels."""
    studio = Studio(library=library)
    before, after = studio.find(first), studio.find(second)
    recipe = _compare(_rows_of(before.recipe), _rows_of(after.recipe))
    recipe.pop("id", None)
    passport = _compare(
        before.passport.model_dump(mode="json"), after.passport.model_dump(mode="json")
    )
    pixels = _compare_pixels(before.path, after.path)
    if json:
        say_json({"recipe": recipe, "passport": passport, **pixels})
        return
    say_table("recipe", {name: _in_words(name, *pair) for name, pair in recipe.items()})
    say_table("passport", {name: _in_words(name, *pair) for name, pair in passport.items()})
    say_table("pixels", pixels)


def _rows_of(recipe: Recipe) -> dict[str, Any]:
    """Return a recipe's id and fields, with the parent's id in place of the parent."""
    parent = {"parent": recipe.parent.id} if recipe.parent else {}
    return {"id": recipe.id, **recipe.model_dump(mode="json", exclude={"parent"}), **parent}


def _compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> Differences:
    names = [*before, *(name for name in after if name not in before)]
    return {
        name: (before.get(name), after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    }


def _compare_pixels(first: Path, second: Path) -> dict[str, Any]:
    """Return the largest difference, PSNR and differing pixels, each None if sizes differ."""
    figures = figures_of(compare_pixels(png.read_pixels(first), png.read_pixels(second)))
    return {name: figure for name, figure in figures.items() if name != "where"}


def _in_words(name: str, before: Any, after: Any) -> str:  # noqa: ANN401 (any JSON value)
    """Write a difference on one line; in prompts words are marked [-removed-] or {+added+}."""
    if name not in ("prompt", "negative_prompt"):
        return f"{before} → {after}"
    marks = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}
    return "".join(marks[piece.kind].format(piece.text) for piece in compare_words(before, after))


_PROBE_FIELDS: Final = (
    *("model", "size", "scheduler", "dtype", "width", "determinism", "steps", "guidance"),
    *("negative", "device", "weights", "start", "strength"),
)


def verify(
    pictures: Annotated[
        list[str], typer.Argument(metavar="PATH…", help="PNG files, folders, or library ids.")
    ],
    device: Annotated[
        str | None, typer.Option(help="Where to compute; default: as in the passport.")
    ] = None,
    library: options.Library = None,
    json: options.Json = False,
) -> None:
    """Run the recipes again and compare. Exit 1 when a picture is not what its recipe makes."""
    from seedgrid.verify.judging import WORDS

    with Studio(library=library) as studio:
        is_alone = len(pictures) == 1
        found = [pair for name in pictures for pair in _expand(studio, name, is_alone=is_alone)]
        entry_of = {str(path): entry for path, entry in found if entry is not None}
        paths = [path for path, _ in found]
        counts, all_hold = dict.fromkeys(WORDS, 0), True
        with ProgressLine("verifying", len(paths)) as line:
            for verdict in studio.verifier.verify_files(paths, device=device):
                counts[verdict.verdict] += 1
                all_hold &= verdict.holds
                if verdict.confirms and verdict.name in entry_of:
                    studio.library.mark_verified(entry_of[verdict.name].id)
                line.show(sum(counts.values()))
                with line.aside():
                    _print_verdict(verdict, as_json=json)
    if len(paths) > 1 and not json:
        say(", ".join(f"{count} {word}" for word, count in counts.items() if count))
    if not all_hold:
        raise typer.Exit(1)


def _print_verdict(verdict: Verdict, *, as_json: bool) -> None:
    if as_json:
        say_json(verdict.as_json())
    else:
        reasons = "; ".join(str(reason) for reason in verdict.reasons)
        say(f"{verdict.verdict:<10}  {verdict.name}  {reasons}".rstrip())


@options.with_fields(*_PROBE_FIELDS)
def probe(
    lora: options.Loras = None, json: options.Json = False, **settings: options.Value
) -> None:
    """Test the lock here, for a model and its settings. Exit 1 if a neighbour changes a picture."""
    request = options.make_request("0", settings, prompt="a picture")
    with Studio(settings["model"]) as studio:
        request = options.with_files(studio, request, settings, lora)
        report = studio.verifier.probe_request(request, options.make_placement(settings))
    if json:
        say_json({"holds": report.holds, **report.model_dump(mode="json")})
    else:
        rows = report.model_dump(mode="json", exclude={"checks"})
        say_table("tested here: no leak" if report.holds else "the lock does NOT hold", rows)
        for check in report.checks:
            bits = "all bits equal" if check.holds else f"{check.differing} values differ"
            say(f"  W={check.lock_width}  {check.name:<40} {bits}")
    if not report.holds:
        tested = report.tested_width
        complain(
            f"No leak was found at width {tested}: use --width {tested}."
            if tested
            else "Not even a picture alone repeats here: see `python -m seedgrid doctor`."
        )
        raise typer.Exit(1)


def _expand(studio: Studio, name: str, *, is_alone: bool) -> Iterator[tuple[Path, Entry | None]]:
    """Yield the files of a path or id, with the entry of an id; a folder's sheets are left out.

    A missing file gets a verdict of its own if several names were given.
    """
    path = expanded(name)
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() == ".png")
        found = [f for f in files if not (f.name.startswith("._") or png.is_sheet(f))]  # macOS's
        if not found:
            raise PictureError("picture_missing", value=f"{name}/*.png")
        yield from ((file, None) for file in found)
    elif path.is_file() or not (is_alone or is_id(name)):
        yield path, None
    else:
        entry = studio.find(name)
        yield entry.path, entry


def export(
    pictures: Annotated[
        list[str], typer.Argument(metavar="PICTURE…", help="SeedGrid PNG files, or library ids.")
    ],
    script: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A program that needs only diffusers.")
    ] = None,
    bundle: Annotated[
        Path | None, typer.Option(metavar="FILE.zip", help="Pictures and all that makes them.")
    ] = None,
    sheet: Annotated[
        Path | None,
        typer.Option(metavar="FILE.png", help="All labelled; with --work a poster of its rounds."),
    ] = None,
    film: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="From noise to the end, .webp or .gif; painted again."),
    ] = None,
    with_model: Annotated[
        bool,
        typer.Option("--with-model", help="Put the model into the bundle too; ours always is."),
    ] = False,
    whole_round: Annotated[
        bool, typer.Option("--round", help="All pictures of the same click, from the library.")
    ] = False,
    whole_work: Annotated[
        bool, typer.Option("--work", help="The whole tree of choices, from the library.")
    ] = False,
    library: options.Library = None,
) -> None:
    """Write a script, a bundle, a sheet or a film; without an option, print the script."""
    from seedgrid.export.bundle import write_bundle
    from seedgrid.export.script import script as write_script
    from seedgrid.export.sheets import write_sheet

    if with_model and bundle is None:
        raise typer.BadParameter("--with-model is for --bundle: name the bundle's file, too.")
    with Studio(library=library) as studio:
        entries = _entries(studio, pictures, whole_round=whole_round, whole_work=whole_work)
        if film is not None and len(entries) > 1:
            raise typer.BadParameter(f"--film takes one picture, not {len(entries)}: name one.")
        if script is not None:
            write_atomically(script, write_script(entries).encode())
        if bundle is not None:
            write_bundle(entries, bundle, model=_model_folder(entries) if with_model else None)
        if sheet is not None:
            write_sheet(entries, sheet)
        if film is not None and not studio.film(entries[0], film).is_same:
            complain(f"{film}: the picture came out differently on this machine; see verify.")
    if script is bundle is sheet is film is None:
        say_program(write_script(entries))


def _model_folder(entries: list[Entry]) -> Path:
    from seedgrid.models import registry

    first, *others = {entry.recipe.model for entry in entries}
    if others:
        raise InputError("export_models", field="model", value=f"{len(others) + 1} models")
    files = registry.find_recorded(first).files
    if files.checkpoint is not None:
        raise InputError("export_models", field="model", value=files.checkpoint.name)
    return files.folder


def _entries(
    studio: Studio, pictures: list[str], *, whole_round: bool, whole_work: bool
) -> list[Entry]:
    """Find the pictures, or their whole rounds or works, each once, in order; no contact sheets."""
    found: dict[str, Entry] = {}
    for name in [name for name in pictures if not png.is_sheet(Path(name))] or pictures:
        entry = studio.find(name)
        group: tuple[Entry, ...] = (entry,)
        if whole_work:
            group = studio.library.work(entry.lineage.work_id) or group
        elif whole_round:
            group = studio.library.round(entry.lineage.round_id) or group
        found |= {one.id: one for one in group if _accept_or_report(one, named=entry.id)}
    return list(found.values())


def _accept_or_report(entry: Entry, *, named: str) -> bool:
    """Accept the named picture and those that are neither trashed nor lost; report lost ones."""
    if entry.lost and entry.id != named:
        complain(f"Left out, its file is lost: {entry.id}.")
    return entry.id == named or not (entry.trashed or entry.lost)
