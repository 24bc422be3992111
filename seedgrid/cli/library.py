"""The library's commands: list, repair and import."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic_core import to_jsonable_python

from seedgrid.cli import options
from seedgrid.cli.output import complain, marks_of, picture_row, say, say_json, say_table
from seedgrid.core.errors import SeedGridError
from seedgrid.core.fields import IN_LINKS
from seedgrid.core.picture import check_tag
from seedgrid.library.rebuild import look_at
from seedgrid.library.search import Sort
from seedgrid.studio import Studio

if TYPE_CHECKING:
    from seedgrid.core.request import Request
    from seedgrid.formats.importers.imported import Imported
    from seedgrid.library.take_in import Taken

app = typer.Typer(help="List the library; `library check` repairs damage.")


@app.callback(invoke_without_command=True)
def library(
    context: typer.Context,
    search: Annotated[str, typer.Option(help="Only prompts that hold these words.")] = "",
    favourites: Annotated[bool, typer.Option("--favourites", help="Only favourites.")] = False,
    tag: Annotated[str | None, typer.Option(help="Only pictures with this tag.")] = None,
    sort: Annotated[Sort, typer.Option(help="In which order.")] = "newest",
    limit: Annotated[int, typer.Option(min=1, help="How many pictures at most.")] = 50,
    library: options.Library = None,
    json: options.Json = False,
) -> None:
    """List the pictures in the library; `library check` repairs damage."""
    context.obj = library, json
    if context.invoked_subcommand is not None:
        return
    with Studio(library=library) as studio:
        page = studio.library.search(
            search,
            favourite=True if favourites else None,
            tag=check_tag(tag) if tag else None,
            sort=sort,
            limit=limit,
        )
        for entry in page.entries:
            time = entry.lineage.created_at
            if json:
                say_json(picture_row(entry) | marks_of(entry) | {"created_at": time})
            else:
                words = " ".join(entry.recipe.prompt.split())
                lost = "  (its file is lost)" if entry.lost else ""
                say(f"{entry.id}  {time[:16]}  seed {entry.recipe.seed}  {words}{lost}")


@app.command("check")
def check(
    context: typer.Context,
    look_only: Annotated[bool, typer.Option("--look-only", help="Repair nothing.")] = False,
    library: options.Library = None,
    json: options.Json = False,
) -> None:
    """Check every file and every row, and repair. Exit 1 if something was wrong."""
    with Studio(library=library or context.obj[0]) as studio:
        if look_only:  # Opening a library would repair a damaged database.
            notices, report = [], look_at(studio.library_folder)
        else:
            notices = [str(notice) for notice in studio.library.notices]
            report = studio.library.check(repair=True)
    findings, is_clean = to_jsonable_python(asdict(report)), report.is_clean and not notices
    if json or context.obj[1]:
        say_json({"clean": is_clean, "notices": notices, **findings})
    else:
        for notice in notices:
            say(notice)
        found = {name: value for name, value in findings.items() if value}
        if is_clean:
            say(f"{studio.library_folder}: {report.num_pictures} pictures, nothing is wrong.")
        elif found:
            say_table(str(studio.library_folder), found)
    if not is_clean:
        done = "Nothing was repaired" if look_only else "Everything repairable was repaired"
        complain(f"{report.num_findings + len(notices)} findings. {done}.")
        raise typer.Exit(1)


def import_(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH…", help="PNG files, folders, ZIP bundles.")
    ],
    library: options.Library = None,
    json: options.Json = False,
) -> None:
    """Take pictures into the library; print the settings of other tools' pictures."""
    from seedgrid.library.take_in import take_in

    num_taken = num_failed = 0
    with Studio(library=library) as studio:
        for taken in take_in(studio.library, paths):
            if taken.error is not None:
                num_failed += 1
                complain(f"{taken.name}: {taken.error}")
                continue
            if taken.work:
                try:
                    _repaint_poster(studio, taken, is_json=json)
                except SeedGridError as error:
                    num_failed += 1
                    complain(f"{taken.name}: {error}")
                    continue
            elif json:
                say_json(_taken_row(taken))
            elif taken.start is not None:
                say(f"{taken.name}: kept as a start picture")
            elif taken.imported is not None:
                title = f"{taken.name}: {taken.imported.notice}"
                say_table(title, _request_words(taken.imported.request))
            else:
                say(f"{taken.name}: {'taken in' if taken.is_new else 'known already'}")
            num_taken += 1
    if num_failed:
        raise typer.Exit(1 if num_taken else 2)


def _repaint_poster(studio: Studio, taken: Taken, *, is_json: bool) -> None:
    """Paint the missing pictures of a poster and compare them with the originals."""
    run = studio.start_work(taken.work)
    num_painted = len(run.result()) if run else 0
    num_differing = len(run.differing) if run else 0
    for notice in run.notices if run else ():
        complain(str(notice))
    if is_json:
        say_json({"source": taken.name, "painted": num_painted, "differing": num_differing})
    else:
        say(f"{taken.name}: {num_painted} of {len(taken.work)} painted, {num_differing} differ")


def _taken_row(taken: Taken) -> dict[str, Any]:
    if taken.imported is not None:
        return {"source": taken.name} | _request_row(taken.imported)
    if taken.start is not None:
        return {"source": taken.name, "start": taken.start}
    assert taken.entry is not None
    return {"source": taken.name, "is_new": taken.is_new} | picture_row(taken.entry)


def _request_words(request: Request) -> dict[str, str]:
    """Return a request's settings by name, as people write them; unset ones are left out."""
    texts = {setting.name: setting.text(request) for setting in IN_LINKS}
    return {name: text for name, text in texts.items() if text}


def _request_row(imported: Imported) -> dict[str, Any]:
    """Return the request in another tool's picture; attributes that are None are left out."""
    given = {name: value for name, value in asdict(imported.request).items() if value is not None}
    plain = to_jsonable_python(given)
    return {"tool": imported.tool, "request": plain, "notice": str(imported.notice)}
