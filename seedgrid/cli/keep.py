"""The commands about the library: list it, tag, find and repair what is wrong with it."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from seedgrid.cli import options
from seedgrid.cli.output import complain, picture_row, say, say_json, say_table
from seedgrid.core.picture import Entry, check_tag
from seedgrid.library.pages import Sort
from seedgrid.studio import Studio

app = typer.Typer(help="List the library, tag what is in it; `library check` finds and repairs.")


@app.callback(invoke_without_command=True)
def library(
    context: typer.Context,
    search: Annotated[str, typer.Option(help="Only prompts that hold these words.")] = "",
    favourites: Annotated[bool, typer.Option("--favourites", help="Only favourites.")] = False,
    tag: Annotated[str | None, typer.Option(help="Only pictures with this tag.")] = None,
    sort: Annotated[Sort, typer.Option(help="In which order.")] = "newest",
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50,
    library: options.Library = None,
    json: options.Json = False,
) -> None:
    """List the pictures in the library; `library check` finds and repairs."""
    context.obj = library
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
            if json:
                say_json(picture_row(entry) | _marks(entry))
            else:
                words = " ".join(entry.recipe.prompt.split())
                time = entry.lineage.created_at[:16]
                lost = "  (its file is lost)" if entry.lost else ""
                say(f"{entry.id}  {time}  seed {entry.recipe.seed}  {words}{lost}")


@app.command("tag")
def tag(
    context: typer.Context,
    pictures: Annotated[list[str], typer.Argument(metavar="PICTURE…", help="Library ids.")],
    add: Annotated[list[str] | None, typer.Option(help="A tag to put on; repeat it.")] = None,
    remove: Annotated[list[str] | None, typer.Option(help="One to take off; repeat it.")] = None,
    library: options.Library = None,
    json: options.Json = False,
) -> None:
    """Put tags on pictures and take others off; all pictures with a tag are a collection."""
    with Studio(library=library or context.obj) as studio:
        ids = [studio.library.find(name).id for name in pictures]
        for entry in studio.library.tag(ids, add=add or (), remove=remove or ()):
            if json:
                say_json(picture_row(entry) | _marks(entry))
            else:
                say(f"{entry.id}  {', '.join(entry.tags)}")


@app.command("tags")
def tags(
    context: typer.Context, library: options.Library = None, json: options.Json = False
) -> None:
    """List the tags, the most used first, and how many pictures have each."""
    with Studio(library=library or context.obj) as studio:
        for each in studio.library.collections():
            if json:
                say_json(asdict(each))
            else:
                say(f"{each.num_pictures:6}  {each.tag}")


@app.command("check")
def check(
    context: typer.Context,
    look_only: Annotated[bool, typer.Option("--look-only", help="Repair nothing.")] = False,
    library: options.Library = None,
    json: options.Json = False,
) -> None:
    """Read every file and every row, and repair what is wrong. Exit 1 when something was."""
    with Studio(library=library or context.obj) as studio:
        notices = [str(notice) for notice in studio.library.notices]
        report = studio.library.check(repair=not look_only)
    findings = _plain(asdict(report))
    if json:
        say_json({"clean": report.is_clean, "notices": notices, **findings})
    else:
        for notice in notices:
            say(notice)
        found = {name: value for name, value in findings.items() if value}
        if report.is_clean:
            say(f"{studio.library_folder}: {report.num_pictures} pictures, nothing is wrong.")
        else:
            say_table(str(studio.library_folder), found)
    if not report.is_clean:
        done = "Nothing was repaired" if look_only else "What could be repaired was"
        complain(f"{report.num_findings} findings. {done}.")
        raise typer.Exit(1)


def _marks(entry: Entry) -> dict[str, Any]:
    return {
        "favourite": entry.favourite,
        "note": entry.note,
        "tags": list(entry.tags),
        "lost": entry.lost,
        "created_at": entry.lineage.created_at,
    }


def _plain(findings: dict[str, Any]) -> dict[str, Any]:
    """Turn the lists of paths in a report into texts."""
    return {
        name: [str(item) for item in value] if isinstance(value, tuple) else value
        for name, value in findings.items()
    }
