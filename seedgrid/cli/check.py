"""The commands that check promises: verify pictures, probe the lock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from seedgrid.cli import options
from seedgrid.cli.output import CountLine, complain, say, say_json, say_table
from seedgrid.core.errors import PictureError
from seedgrid.core.request import resolve
from seedgrid.diffusion.backend import Unwatched
from seedgrid.export.sheets import is_sheet
from seedgrid.studio import Studio

_AT_ONCE: Final = 64
"""So many pictures are in memory together."""


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
    from seedgrid.diffusion.deferred import DeferredBackend
    from seedgrid.verify import verify_files

    with Studio(library=library) as studio:
        paths = [path for name in pictures for path in _expand(studio, name)]
    backend = DeferredBackend()
    counts = {"identical": 0, "close": 0, "drifted": 0, "impossible": 0}
    with CountLine("verifying", len(paths)) as line:
        for start in range(0, len(paths), _AT_ONCE):
            for verdict in verify_files(paths[start : start + _AT_ONCE], backend, device=device):
                counts[verdict.verdict] += 1
                with line.advanced():
                    if json:
                        say_json(verdict.as_json())
                    else:
                        reasons = "; ".join(str(reason) for reason in verdict.reasons)
                        say(f"{verdict.verdict:<10}  {verdict.name}  {reasons}".rstrip())
    backend.close()
    if len(paths) > 1 and not json:
        say(", ".join(f"{count} {word}" for word, count in counts.items() if count))
    if counts["drifted"] or counts["impossible"]:
        raise typer.Exit(1)


@options.with_fields("model", "size", "scheduler", "dtype", "width", "determinism", "device")
def probe(
    json: options.Json = False,
    **settings: options.Value,
) -> None:
    """Find out whether the lock holds here for a model and a size. Exit 1 when it does not."""
    from seedgrid.diffusion.deferred import DeferredBackend

    request = options.make_request("a picture", "0", settings)
    backend = DeferredBackend()
    recipe = resolve(request, Studio(settings["model"], backend=backend).card())[0]
    report = backend.probe(recipe, options.make_placement(settings), Unwatched())
    backend.close()
    if json:
        say_json({"holds": report.holds, **report.model_dump(mode="json")})
    else:
        rows = report.model_dump(mode="json", exclude={"checks"})
        say_table("the lock holds" if report.holds else "the lock does NOT hold", rows)
        for check in report.checks:
            bits = "all bits equal" if check.holds else f"{check.differing} values differ"
            say(f"  W={check.lock_width}  {check.name:<40} {bits}")
    if not report.holds:
        complain(
            f"The lock holds at width {report.proven_width}: use --width {report.proven_width}."
        )
        raise typer.Exit(1)


def _expand(studio: Studio, name: str) -> Iterator[Path]:
    """Return the files that a name means: all PNG files of a folder but contact sheets."""
    path = Path(name).expanduser()
    if path.is_dir():
        found: Sequence[Path] = sorted(path.rglob("*.png"))
        if not found:
            raise PictureError("picture_missing", value=f"{name}/*.png")
        yield from (file for file in found if not is_sheet(file))
    elif path.is_file():
        yield path
    else:
        yield studio.find(name).path
