"""The command that lets pictures out: export, as a script, a bundle, a sheet or a film."""

from pathlib import Path
from typing import Annotated

import typer

from seedgrid.cli import options
from seedgrid.cli.output import complain, say_program
from seedgrid.core.errors import InputError
from seedgrid.core.picture import Entry
from seedgrid.storage.files import write_atomically
from seedgrid.studio import Studio


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
        found |= {one.id: one for one in group if _goes_out(one, named=entry.id)}
    return list(found.values())


def _goes_out(entry: Entry, *, named: str) -> bool:
    """Leave out of a whole round or work what is in the trash, and, saying so, what is lost."""
    if entry.lost and entry.id != named:
        complain(f"Left out, its file is lost: {entry.id}.")
    return entry.id == named or not (entry.trashed or entry.lost)
