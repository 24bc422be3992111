"""The commands that make pictures: grid, refine, final, matrix."""

from pathlib import Path
from typing import Annotated, Final

import typer

from seedgrid.cli import options
from seedgrid.cli.output import ProgressLine, RunProgress, complain, picture_row, say, say_json
from seedgrid.core.errors import InputError
from seedgrid.core.events import Cancelled, Failed, Finished, Missed
from seedgrid.core.finals import STRENGTHS
from seedgrid.core.picture import Entry
from seedgrid.core.process import first_stops
from seedgrid.core.prompts import GUIDE_SUFFIXES
from seedgrid.diffusion.probe_results import lock_notice
from seedgrid.engine import Run
from seedgrid.studio import Studio

_LOCKS: Final = {  # The value of `lock` in JSON, by the code of the lock's notice
    "": "tested here",
    "lock_untested": "not tested here",
    "lock_leaks": "leaks here",
    "lock_never": "does not repeat here",
}
_PORTABLE: Final = "same on every machine"  # Of a portable picture, which its batch cannot change
_ALONE: Final = "made alone"  # Of a picture that an upscaler enlarged: it has no batch


@options.with_fields()
def grid(
    prompt: Annotated[str, typer.Argument(help="What the pictures should show.")],
    seeds: options.Seeds = "0-3",
    lora: options.Loras = None,
    library: options.Library = None,
    out: options.Out = None,
    fresh: options.Fresh = False,
    json: options.Json = False,
    **settings: options.Value,
) -> None:
    """Paint one prompt on several seeds."""
    matrix([prompt], seeds, lora, library, out, fresh=fresh, json=json, **settings)


def refine(
    picture: Annotated[str, typer.Argument(help="A SeedGrid PNG file, or an id in the library.")],
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT", help="Words to append, or a setting as in 'guidance 3'; repeat it."
        ),
    ] = None,
    prompt: Annotated[
        str | None, typer.Option(help="Another prompt to append them to; default: its own.")
    ] = None,
    hold: Annotated[
        float | None,
        typer.Option(help="Keep its composition: the share of the steps that are its own, 0-0.8."),
    ] = None,
    only: Annotated[
        Path | None,
        typer.Option(metavar="MASK", help="Change what is white in this picture, nothing else."),
    ] = None,
    feather: Annotated[
        int | None, typer.Option(help="Mix new and old over so many pixels inside the mask's edge.")
    ] = None,
    device: options.Device = "auto",
    library: options.Library = None,
    out: options.Out = None,
    fresh: options.Fresh = False,
    json: options.Json = False,
) -> None:
    """Vary the words or settings of a picture, on its own seed; by default the guide's four."""
    folder = _make_out(out)
    with Studio(None, library, device) as studio:
        run = studio.start_refine(
            picture,
            vary or GUIDE_SUFFIXES,
            prompt=prompt,
            hold=hold,
            only=only,
            feather=feather,
            fresh=fresh,
        )
        _finish(studio, run, folder, as_json=json)


def final(
    picture: Annotated[str, typer.Argument(help="A SeedGrid PNG file, or an id in the library.")],
    scale: Annotated[int, typer.Option(help="2 or 4 times as wide and high.")] = 2,
    strength: Annotated[
        list[float] | None,
        typer.Option(help="How much is painted anew; repeat it. Default: four, from 0.2 to 0.5."),
    ] = None,
    upscaler: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="A network that enlarges instead: its .safetensors file or name."
        ),
    ] = None,
    device: options.Device = "auto",
    library: options.Library = None,
    out: options.Out = None,
    fresh: options.Fresh = False,
    json: options.Json = False,
) -> None:
    """Make a picture large, on its own seed and words."""
    if strength and upscaler:
        raise typer.BadParameter("A network paints nothing anew: give --strength or --upscaler.")
    folder = _make_out(out)
    with Studio(None, library, device) as studio:
        run = studio.start_final(
            picture, scale, strengths=strength or STRENGTHS, upscaler=upscaler, fresh=fresh
        )
        _finish(studio, run, folder, as_json=json)


@options.with_fields()
def matrix(
    prompts: Annotated[list[str], typer.Argument(help="One row each.")],
    seeds: Annotated[str, typer.Option(help="One column each, as in 7,11,42; random draws four.")],
    lora: options.Loras = None,
    library: options.Library = None,
    out: options.Out = None,
    fresh: options.Fresh = False,
    json: options.Json = False,
    **settings: options.Value,
) -> None:
    """Paint every prompt on every seed."""
    request = options.make_request(seeds, settings)
    placement = options.make_placement(settings)
    folder = _make_out(out)
    with Studio(settings["model"], library, placement=placement) as studio:
        request = options.with_files(studio, request, settings, lora)
        run = studio.start_grid(request, prompts, fresh=fresh)
        num_rows = len(run.jobs) // len(request.seeds)  # A prompt with braces is several
        rows = num_rows if num_rows > 1 else None  # Of the sheet; None: nearly square
        _finish(studio, run, folder, as_json=json, rows=rows)


def _make_out(out: Path | None) -> Path | None:
    """Make the folder before anything is computed, so that a wrong path fails at once."""
    if out is None:
        return None
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError("out_folder", field="out", value=out, reason=reason) from error
    return out.absolute()


def _finish(
    studio: Studio, run: Run, out: Path | None, *, as_json: bool, rows: int | None = None
) -> None:
    """Print a run's notices and pictures until its end, and write the sheet of its pictures."""
    num_before = len(run.notices)
    for notice in (*studio.library.notices, *run.notices[:num_before]):
        complain(str(notice))
    _follow(studio, run, out, as_json=as_json)
    for notice in run.notices[num_before:]:
        complain(str(notice))
    _write_sheet(run, out, rows)


def _follow(studio: Studio, run: Run, out: Path | None, *, as_json: bool) -> None:
    """Print each picture when the library has it; raise if the run failed or was stopped."""
    progress = RunProgress(run)
    line = ProgressLine(progress.what, progress.total)
    with first_stops(studio.begin_to_close) as interrupts, line:
        for event in run.events():
            line.show(progress.follow(event), what=progress.what)
            if isinstance(event, Finished):
                with line.aside():
                    _print_picture(event, out, as_json=as_json)
            if isinstance(event, Missed):
                complain(f"Seed {run.jobs[event.cell].recipe.seed}: {event.error}")
    if not as_json:
        _report_lock(run)
    if isinstance(event, Cancelled):
        complain(f"Stopped: {len(run.finished)} of {len(run.jobs)} pictures are kept.")
        raise typer.Exit(interrupts.exit_code)
    if isinstance(event, Failed):
        raise event.error


def _report_lock(run: Run) -> None:
    """Print each notice of a lock that is untested on this machine or does not hold, once."""
    found = (lock_notice(entry.recipe, entry.passport) for entry in run.finished.values())
    for sentence in dict.fromkeys(str(notice) for notice in found if notice is not None):
        complain(sentence)


def _print_picture(event: Finished, out: Path | None, *, as_json: bool) -> None:
    entry = event.entry
    path = _copy(entry, out) if out is not None else entry.path
    if as_json:
        details = {"remembered": event.remembered, "lock": _lock_of(entry)}
        say_json(picture_row(entry, path) | details)
    else:
        say(f"{path}  seed {entry.recipe.seed}  {' '.join(entry.recipe.prompt.split())}")


def _lock_of(entry: Entry) -> str:
    if entry.recipe.upscaler is not None:
        return _ALONE
    if entry.recipe.is_portable:
        return _PORTABLE
    lock = lock_notice(entry.recipe, entry.passport)
    return _LOCKS[lock.code if lock else ""]


def _copy(entry: Entry, out: Path) -> Path:
    """Copy a picture's file to a folder, atomically; its name has the seed and the id."""
    from seedgrid.storage.files import write_atomically

    path = out / f"seed-{entry.recipe.seed}-{entry.id[:12]}.png"
    write_atomically(path, entry.path.read_bytes())
    return path


def _write_sheet(run: Run, out: Path | None, rows: int | None = None) -> None:
    if out is None or len(run.jobs) < 2:
        return
    from PIL import Image

    from seedgrid.export import sheets
    from seedgrid.formats import png
    from seedgrid.storage.files import open_atomically

    entries = [run.finished[cell] for cell in range(len(run.jobs))]
    images = (Image.fromarray(png.read_pixels(entry.path)) for entry in entries)
    with open_atomically(out / f"sheet-{entries[0].lineage.round_id[:12]}.png") as file:
        sheets.write_grid(file, images, count=len(entries), rows=rows)
