"""What the commands print: results to standard output, all else to standard error."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from seedgrid.core.events import Event, Finished, Loading, Queued, Started, Step
from seedgrid.core.picture import Entry
from seedgrid.core.text import json_text, one_line
from seedgrid.engine import Run

_STEERED: Final = ("held_steps", "mask", "spread")  # Attributes left out of JSON if not set


def say(text: str) -> None:
    """Print exactly one line to standard output, at once; control characters are escaped."""
    _write(one_line(text))


def say_program(source: str) -> None:
    """Print a script unchanged, so that it can be piped into a file."""
    _write(source.rstrip("\n"))


def say_json(data: dict[str, Any]) -> None:
    """Print one JSON object on one line to standard output, at once."""
    _write(json_text(data))


def say_table(title: str, rows: Mapping[str, object]) -> None:
    """Print a title and one indented line for each row, or `none` under it."""
    say(title)
    for name, value in rows.items():
        say(f"  {name:<20} {value}")
    if not rows:
        say("  none")


def picture_row(entry: Entry, path: Path | None = None) -> dict[str, Any]:
    """Return what every command says of a picture as JSON."""
    return {
        "path": str(path or entry.path),
        "cell": entry.lineage.cell,
        "seed": entry.recipe.seed,
        "prompt": entry.recipe.prompt,
        **({"typed_prompt": entry.recipe.typed_prompt} if entry.recipe.typed_prompt else {}),
        **{name: getattr(entry.recipe, name) for name in _STEERED if getattr(entry.recipe, name)},
        "recipe_id": entry.recipe.id,
        "pixels_sha256": entry.pixels_sha256,
        "picture_id": entry.id,
        "parent_id": entry.lineage.parent_id,
        "change": entry.lineage.change,
        "library_path": str(entry.path),
    }


def marks_of(entry: Entry) -> dict[str, Any]:
    """Return what only the library knows of a picture; a file outside it has empty marks."""
    names = ("favourite", "tags", "note", "trashed", "lost", "checked")
    return {name: getattr(entry, name) for name in names}


def complain(text: str) -> None:
    """Print exactly one line to standard error."""
    sys.stderr.write(f"seedgrid: {one_line(' '.join(text.split()))}\n")
    sys.stderr.flush()


def _write(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class ProgressLine:
    """A progress line; silent if there is no terminal. `total` is None while it is unknown."""

    def __init__(self, what: str, total: int | None = None, *, in_bytes: bool = False) -> None:
        columns: tuple[ProgressColumn, ...] = (MofNCompleteColumn(), TimeElapsedColumn())
        if in_bytes:
            columns = (DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            *columns,
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
            transient=True,
            # Rich would send our standard output to its console, which is standard error.
            redirect_stdout=False,
        )
        self._task = self._progress.add_task(one_line(what), total=total)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, done: int, *, total: int | None = None, what: str | None = None) -> None:
        """Update the line; missing arguments keep their values."""
        description = None if what is None else one_line(what)
        self._progress.update(self._task, completed=done, total=total, description=description)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Hide the progress line while the block prints to the same terminal."""
        if self._progress.disable or not sys.stdout.isatty():
            yield
            return
        self._progress.stop()
        yield
        self._progress.start()


class RunProgress:
    """The progress of a run, counted from its events."""

    def __init__(self, run: Run) -> None:
        self._steps_of = [job.recipe.num_inference_steps for job in run.jobs]
        self._steps_done = [0] * len(run.jobs)
        self._num_finished = 0
        self.total = sum(self._steps_of)
        self.what = "waiting"

    def follow(self, event: Event) -> int:
        """Update `what` by an event of a run, and return the number of steps that are done."""
        match event:
            case Queued(position=position) if position:
                self.what = f"waiting, {position} before"
            case Loading(model=model):
                self.what = f"loading {model}"
            case Started() | Finished():
                if isinstance(event, Finished):
                    self._num_finished += 1
                    self._steps_done[event.cell] = self._steps_of[event.cell]
                self.what = f"{self._num_finished} of {len(self._steps_of)} pictures, steps"
            case Step(cells=cells, number=number):
                for cell in cells:
                    self._steps_done[cell] = number
        return sum(self._steps_done)
