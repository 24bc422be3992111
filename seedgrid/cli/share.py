"""The commands that let pictures out and in: export, import."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic_core import to_jsonable_python

from seedgrid.cli import options
from seedgrid.cli.output import complain, picture_row, say, say_json, say_program, say_table
from seedgrid.core.errors import InputError
from seedgrid.core.fields import IN_LINKS
from seedgrid.core.picture import Entry
from seedgrid.storage.files import write_atomically
from seedgrid.studio import Studio

if TYPE_CHECKING:
    from seedgrid.core.request import Request
    from seedgrid.formats.importers.imported import Imported
    from seedgrid.library.take_in import Taken


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
        typer.Option(metavar="FILE", help="All pictures labelled, in one .png or .pdf."),
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
    from seedgrid.export.contact_sheets import write_sheet
    from seedgrid.export.script import script as write_script

    with Studio(library=library) as studio:
        entries = _entries(studio, pictures, whole_round=whole_round, whole_work=whole_work)
        if script is not None:
            write_atomically(script, write_script(entries).encode())
        if bundle is not None:
            write_bundle(entries, bundle, model=_model_folder(entries) if with_model else None)
        if sheet is not None:
            write_sheet(entries, sheet)
        if film is not None and not studio.film(pictures[0], film).is_same:
            complain(f"{film}: the picture came out differently on this machine; see verify.")
    if script is bundle is sheet is film is None:
        say_program(write_script(entries))


def import_(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH…", help="PNG files, folders, ZIP bundles.")
    ],
    library: options.Library = None,
    json: options.Json = False,
) -> None:
    """Take pictures into the library; of another tool's picture, print what to ask for here."""
    from seedgrid.library.take_in import take_in

    num_taken = num_failed = 0
    with Studio(library=library) as studio:
        for taken in take_in(studio.library, paths):
            if taken.error is not None:
                num_failed += 1
                complain(f"{taken.name}: {taken.error}")
                continue
            num_taken += 1
            if json:
                say_json(_row(taken))
            elif taken.start is not None:
                say(f"{taken.name}: kept, for the pictures that were begun from it")
            elif taken.imported is not None:
                title = f"{taken.name}: {taken.imported.notice}"
                say_table(title, _request_words(taken.imported.request))
            else:
                say(f"{taken.name}: {'taken in' if taken.is_new else 'known already'}")
    if num_failed:
        raise typer.Exit(1 if num_taken else 2)


def _row(taken: Taken) -> dict[str, Any]:
    if taken.imported is not None:
        return {"source": taken.name} | _request_row(taken.imported)
    if taken.start is not None:
        return {"source": taken.name, "start": taken.start}
    assert taken.entry is not None
    return {"source": taken.name, "is_new": taken.is_new} | picture_row(taken.entry)


def _request_words(request: Request) -> dict[str, str]:
    """Return what to ask for, as people write it; what was not said is left out."""
    said = {row.name: row.text(request) for row in IN_LINKS}
    return {name: text for name, text in said.items() if text}


def _request_row(imported: Imported) -> dict[str, Any]:
    """Return what another tool's picture asks for; what its file does not say is left out."""
    said = {name: value for name, value in asdict(imported.request).items() if value is not None}
    plain = to_jsonable_python(said)
    return {"tool": imported.tool, "request": plain, "notice": str(imported.notice)}


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
    """Find the pictures, and what belongs to them; each once, in order."""
    found: dict[str, Entry] = {}
    for name in pictures:
        entry = studio.find(name)
        group: tuple[Entry, ...] = (entry,)
        if whole_work:
            group = studio.library.work(entry.lineage.work_id) or group
        elif whole_round:
            group = studio.library.round(entry.lineage.round_id) or group
        found |= {one.id: one for one in group if _is_wanted(one, named=entry.id)}
    return list(found.values())


def _is_wanted(entry: Entry, *, named: str) -> bool:
    """Leave out of a whole round or work what is in the trash, and, saying so, what is lost."""
    if entry.lost and entry.id != named:
        complain(f"Left out, its file is lost: {entry.id}.")
    return entry.id == named or not (entry.trashed or entry.lost)
