"""The stage, the opening pictures, the status line as JSON; a sentence is a key in locales/."""

import base64
import io
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from PIL import Image

from seedgrid.core import events
from seedgrid.core.errors import InputError, Notice, SeedGridError
from seedgrid.core.picture import Entry, Pixels
from seedgrid.core.request import ADVICE_CODES
from seedgrid.engine import Run
from seedgrid.formats import png
from seedgrid.storage.files import assets_folder
from seedgrid.studio import Studio
from seedgrid.web.serializers import pictures

Json = pictures.Json

MAX_PREVIEW_PX: Final = 256
_PREVIEW_QUALITY: Final = 85
_SHOWN_BEFORE: Final = ADVICE_CODES | {"final_tiles"}  # Notices that are shown before a run ends


def opening_files() -> tuple[Path, ...]:
    """Return the files of the opening pictures, in the order of the page."""
    return tuple(sorted((assets_folder() / "opening").glob("*.png")))


def opening_cells(studio: Studio) -> list[Json]:
    """Return the opening pictures, if the studio's model painted them; a click imports them."""
    records = _records()
    try:
        model = studio.card().ref
    except SeedGridError:  # Generate says what is wrong with the model.
        return []
    if not records or any(record.recipe.model != model for record in records):
        return []
    return [
        {
            "state": "empty",
            "seed": record.recipe.seed,
            "prompt": record.recipe.prompt,
            "words": record.recipe.prompt,
            "example": number,
        }
        for number, record in enumerate(records, 1)
    ]


@cache
def _records() -> tuple[png.PngRecord, ...]:
    try:
        return tuple(png.read(path) for path in opening_files())
    except SeedGridError:  # The page opens even if a picture is damaged.
        return ()


def stage_before_any(epoch: int, studio: Studio | None, *, busy: bool) -> Json:
    """The stage before the first grid: a studio's opening pictures, or four empty cells."""
    cells, size = opening_cells(studio) if studio else [], (1, 1)
    if cells:
        size = (_records()[0].recipe.width, _records()[0].recipe.height)
    cells = cells or [{"state": "empty", "seed": seed} for seed in range(4)]
    return {"epoch": epoch, "cells": cells, "size": size, "picked": None, "busy": busy}


def stage_of_round(epoch: int, entries: Sequence[Entry], *, picked: str | None, busy: bool) -> Json:
    """The stage with finished pictures."""
    cells = [pictures.finished_cell(entry) for entry in entries]
    return _stage(epoch, cells, entries, picked=picked, busy=busy)


def stage_of_run(epoch: int, run: Run, steps: Mapping[int, Json], *, picked: str | None) -> Json:
    """The stage while a run goes on, or after it has ended early.

    `steps` has by cell the `step`, `total` and `preview` (a data URI) of the last step.
    """
    finished = run.finished
    cells: list[Json] = []
    for cell, job in zip(run.round_cells, run.round_jobs, strict=True):
        if cell in finished:
            cells.append(pictures.finished_cell(finished[cell]))
            continue
        waiting = "stopped" if run.has_ended else "painting" if cell in steps else "waiting"
        if cell in run.missed:
            waiting = "missed"
        waiting_cell = pictures.cell(job, waiting) | {"recipe": job.recipe.id}
        cells.append(waiting_cell | steps.get(cell, {}))
    return _stage(epoch, cells, run.round_jobs, picked=picked, busy=not run.has_ended)


def stage_of_live(epoch: int, run: Run) -> Json:
    """The stage of a live run; the page keeps a cell's former picture until there is a `source`."""
    finished, missed = run.finished, run.missed
    cells = [
        pictures.cell(job, "missed" if cell in missed else "live")
        | {"recipe": job.recipe.id}
        | ({"source": _source(finished[cell])} if cell in finished else {})
        for cell, job in enumerate(run.jobs)
    ]
    return _stage(epoch, cells, run.jobs, picked=None, busy=False)


def _source(entry: Entry) -> str:
    """Return the address of a live picture: in the library, or in memory, where it has no file."""
    return f"pictures/{entry.id}.png" if entry.file_sha256 else f"live/{entry.recipe.id}.png"


def status_of(epoch: int, event: events.Event, run: Run) -> Json:
    """The status line after an event of a run."""
    match event:
        case events.Queued(position=0):
            return say(epoch, "status_next")
        case events.Queued(position=position):
            return say(epoch, "status_queued", number=position)
        case events.Loading():
            return say(epoch, "status_loading", model=event.model)
        case events.Started() | events.Noise() if plans := [
            n for n in run.notices if n.code == "final_tiles"
        ]:
            return notice(plans[-1]) | {"epoch": epoch, "kind": "going"}
        case events.Started() | events.Noise():
            return say(epoch, "status_started")
        case events.Step(tile=tile, num_tiles=total) if total:
            return say(epoch, "status_tile", number=tile, total=total)
        case events.Step(number=number, total=total) if run.jobs[0].recipe.upscaler:
            return say(epoch, "status_enlarging", number=number, total=total)
        case events.Step(number=number, total=total, left_s=left_s) if number < total:
            if left_s is None or left_s < 1:
                return say(epoch, "status_step", number=number, total=total)
            return say(epoch, "status_step_left", number=number, total=total, time=_time(left_s))
        case events.Step() | events.Finished() | events.Missed():
            return say(epoch, "status_saving")
        case events.Eased(notice=easing):
            return notice(easing) | {"epoch": epoch, "kind": "going"}
        case events.Done() if partly := [n for n in run.notices if n.code == "work_partly"]:
            return notice(partly[-1]) | {"epoch": epoch, "kind": "note"}
        case events.Done() if run.expected:
            return _compared(epoch, run)
        case events.Done() if run.num_remembered:
            return say(epoch, "status_remembered", kind="remembered", number=run.num_remembered)
        case events.Done() if unknown := [n for n in run.notices if n.code == "words_unknown"]:
            return say(epoch, "status_words_unknown", kind="note", words=unknown[0].data["words"])
        case events.Done() if notices := [n for n in run.notices if n.code not in _SHOWN_BEFORE]:
            return notice(notices[-1]) | {"epoch": epoch, "kind": "note"}
        case events.Done(elapsed_s=0.0):  # Live runs had painted all pictures.
            return say(epoch, "status_kept", kind="done", number=len(run.finished))
        case events.Done(elapsed_s=elapsed_s):
            return say(epoch, "status_done", kind="done", seconds=f"{elapsed_s:.1f}")
        case events.Cancelled():
            key = "status_cancelled" if run.finished else "status_cancelled_early"
            return say(epoch, key, kind="done")
        case events.Failed(error=error):
            return complain(epoch, error)


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _compared(epoch: int, run: Run) -> Json:
    """The status of a run whose pixels were compared with the expected ones."""
    number, differing = len(run.finished), run.differing
    if not differing:
        return say(epoch, "status_again_same", kind="done", number=number)
    cells = ", ".join(str(cell + 1) for cell in differing)
    data = {"different": len(differing), "number": number, "cells": cells}
    return say(epoch, "status_again_differs", kind="note", **data)


def say(epoch: int, key: str | None, *, kind: str = "going", **data: object) -> Json:
    """A sentence of `locales/` for the status line."""
    return {"epoch": epoch, "key": key, "kind": kind, "data": data}


def notice(sentence: Notice) -> Json:
    """The key and the data of a notice's sentence."""
    data = {name: str(value) for name, value in sentence.data.items()}
    return {"key": f"error_{sentence.code}", "data": data | {"message": str(sentence)}}


def complain(epoch: int, error: SeedGridError, *, field: str | None = None) -> Json:
    """An error for the status line and for its field."""
    field = field or (error.field if isinstance(error, InputError) else None)
    data = {name: str(value) for name, value in error.data.items()} | {"message": str(error)}
    return say(epoch, f"error_{error.code}", kind="error") | {"field": field, "data": data}


def note_step(steps: dict[int, Json], event: events.Event) -> None:
    """Update `steps`, by cell, after a `Noise` or `Step`; other events change nothing."""
    match event:
        case events.Noise(cells=cells, previews=previews):
            progress: Json = {}
        case events.Step(cells=cells, previews=previews):
            progress = {"step": event.number, "total": event.total}
        case _:
            return
    for index, cell in enumerate(cells):
        steps[cell] = dict(progress)
        if previews:
            steps[cell]["preview"] = preview_uri(previews[index])


def preview_uri(pixels: Pixels) -> str:
    """A small JPEG as a data URI."""
    image = Image.fromarray(pixels)
    image.thumbnail((MAX_PREVIEW_PX, MAX_PREVIEW_PX))
    target = io.BytesIO()
    # The page enlarges previews: without full colour resolution one would see JPEG's blocks.
    image.save(target, "JPEG", quality=_PREVIEW_QUALITY, subsampling=0)
    return "data:image/jpeg;base64," + base64.b64encode(target.getvalue()).decode()


def _stage(
    epoch: int, cells: list[Json], made: Sequence[pictures.Made], *, picked: str | None, busy: bool
) -> Json:
    ids = [each.lineage.picture_id for each in made]
    first = made[0].recipe
    return {
        "epoch": epoch,
        "cells": cells,
        "size": (first.width, first.height),
        "picked": ids.index(picked) if picked in ids else None,
        "busy": busy,
        "table": _table(made),
    }


def _table(made: Sequence[pictures.Made]) -> Json | None:
    """Return the headings of a table of prompts by seeds, or parents by changes; else None."""
    has_several_parents = len({each.lineage.parent_id for each in made}) > 1
    heads: dict[str | None, str] = {}
    positions = []
    for each in made:
        seed, words = str(each.recipe.seed), each.recipe.words
        row = each.lineage.parent_id if has_several_parents else words
        heads[row] = seed if has_several_parents else words
        positions.append((row, pictures.caption(each) if has_several_parents else seed))
    columns = list(dict.fromkeys(column for _, column in positions))
    is_full = positions == [(row, column) for row in heads for column in columns]
    is_table = is_full and len(heads) > 1 and len(columns) > 1
    return {"columns": columns, "rows": list(heads.values())} if is_table else None
