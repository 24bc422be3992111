"""The commands that check promises: verify pictures, probe the lock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from seedgrid.cli import options
from seedgrid.cli.output import CountLine, complain, say, say_json, say_table
from seedgrid.core.errors import PictureError
from seedgrid.core.picture import Entry
from seedgrid.export.sheets import is_sheet
from seedgrid.studio import Studio
from seedgrid.studio.pictures import is_id

if TYPE_CHECKING:
    from seedgrid.verify import Verdict

_PROBED: Final = (
    "model",
    "size",
    "scheduler",
    "dtype",
    "width",
    "determinism",
    "steps",
    "guidance",
    "negative",
    "device",
)


def verify(
    pictures: Annotated[
        list[str], typer.Argument(metavar="PATH…", help="PNG files, folders, or library ids.")
    ],
    device: Annotated[
        str | None, typer.Option(help="Where to compute; default: as in the passport.")
    ] = None,
    library: options.Library = None,
    rehash: Annotated[
        bool, typer.Option("--rehash", help="Read the models' weights again, every byte.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Run the recipes again and compare. Exit 1 when a picture is not what its recipe makes."""
    from seedgrid.models import digests
    from seedgrid.verify import WORDS

    if rehash:
        digests.forget()
    with Studio(library=library) as studio:
        is_alone = len(pictures) == 1
        found = [pair for name in pictures for pair in _expand(studio, name, is_alone=is_alone)]
        ours = {str(path): entry for path, entry in found if entry is not None}
        paths = [path for path, _ in found]
        counts, all_hold = dict.fromkeys(WORDS, 0), True
        with CountLine("verifying", len(paths)) as line:
            for verdict in studio.verifier.verify_files(paths, device=device):
                counts[verdict.verdict] += 1
                all_hold &= verdict.holds
                if verdict.confirms and verdict.name in ours:
                    studio.library.confirm(ours[verdict.name].id)
                with line.advanced():
                    _tell(verdict, as_json=json)
    if len(paths) > 1 and not json:
        say(", ".join(f"{count} {word}" for word, count in counts.items() if count))
    if not all_hold:
        raise typer.Exit(1)


def _tell(verdict: Verdict, *, as_json: bool) -> None:
    if as_json:
        say_json(verdict.as_json())
    else:
        reasons = "; ".join(str(reason) for reason in verdict.reasons)
        say(f"{verdict.verdict:<10}  {verdict.name}  {reasons}".rstrip())


@options.with_fields(*_PROBED)
def probe(
    json: options.Json = False,
    **settings: options.Value,
) -> None:
    """Test the lock here, for a model and its settings. Exit 1 when a neighbour gets through."""
    request = options.make_request("0", settings, prompt="a picture")
    with Studio(settings["model"]) as studio:
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
    """Return the files that a name means, all PNG files of a folder but contact sheets.

    A file that is not there is a line with its verdict, too, unless nothing else was asked for.

    Yields:
        A file, and the picture that it is in the library, if it was asked for by its id.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        found = sorted(file for file in path.rglob("*") if file.suffix.lower() == ".png")
        if not found:
            raise PictureError("picture_missing", value=f"{name}/*.png")
        yield from ((file, None) for file in found if not is_sheet(file))
    elif path.is_file() or not (is_alone or is_id(name)):
        yield path, None
    else:
        entry = studio.find(name)
        yield entry.path, entry
