"""The public functions of the page's server, for gradio_client.

/grid and /refine paint, /recipe reads a picture, /verify paints it again and compares.

    client.predict("a red fox", "0-3", api_name="/grid")

Each gives the PNG files as they are on disk and a record of each, with the fields that
`seedgrid grid --json` prints: as they are finished to who iterates over a job, all of them at the
end. `job.cancel()` stops the run within a step. Everything else on the page is private.
"""

import inspect
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

import gradio as gr
from anyio import to_thread
from gradio.processing_utils import save_file_to_cache
from gradio.utils import get_upload_folder

from seedgrid.core.errors import RunCancelled, SeedGridError
from seedgrid.core.field import Field
from seedgrid.core.picture import Entry
from seedgrid.core.prompts import GUIDE_SUFFIXES
from seedgrid.engine import Run
from seedgrid.studio import RunOptions, Studio
from seedgrid.verify import read_claim
from seedgrid.web import bounds
from seedgrid.web.actions.form import check_count
from seedgrid.web.calls import (
    GRID_FIELDS,
    PictureCall,
    RefineCall,
    about,
    checked,
    default_of,
    file_record,
    picture_record,
    read_grid,
)
from seedgrid.web.components.files import paths_only
from seedgrid.web.server.file_work import FileWork
from seedgrid.web.server.uploads import Copies, taken_in
from seedgrid.web.server.waiting import Asker, StepWatch, asker, begun, followed, steps_of
from seedgrid.web.state.visitor_libraries import Libraries, find_anywhere, for_program

Record = dict[str, Any]
Answer = tuple[list[tuple[str, str]], list[Record]]

_OWNER: Final = "api"
_SHARE: Final = 0.5
"""Of the room for uploads, which copies of pictures share: they are fetched at once or never."""
_KINDS: Final[dict[type, str]] = {int: "integer", float: "number", str: "string"}


class Api:
    """The public functions; their parameters are what API users write."""

    def __init__(self, studio: Studio, libraries: Libraries, file_work: FileWork) -> None:
        self._studio = studio
        self._libraries = libraries
        self._file_work = file_work
        most = bounds.of_uploads().together
        self._copies = Copies(None if most is None else _SHARE * most)

    def grid(self) -> Callable[..., AsyncGenerator[Answer, None]]:
        """Return the function that paints one prompt on several seeds.

        Its parameters are the table of fields; Gradio reads them from its signature.
        """
        names = [row.name for row in GRID_FIELDS]

        async def grid(*given: Any) -> AsyncGenerator[Answer, None]:  # noqa: ANN401 (see the signature)
            *values, request, progress = given
            told = dict(zip(names, values, strict=True))

            def start() -> Run:
                turbo = bool(told["turbo"])
                return self._studio.start_grid(
                    read_grid(told), turbo=turbo, **self._options(request)
                )

            async with aclosing(_answer(start, self._copies, progress)) as answers:
                async for answer in answers:
                    yield answer

        _sign(grid)
        return grid

    async def refine(
        self,
        picture_id: str,
        vary: list[str] | None = None,
        request: gr.Request | None = None,
        progress: gr.Progress = gr.Progress(),  # noqa: B008 (how Gradio is told to hand one in)
    ) -> AsyncGenerator[Answer, None]:
        """Vary the words or settings of a picture on its own seed.

        Args:
            picture_id: The `id` of a record that /grid or /refine gave.
            vary: One picture each: what to append to its prompt, or a setting, as in
                "guidance 3" or "scheduler Euler a"; the guide's four by default.
            request: Who asks; Gradio fills it in.
            progress: Told how far it is; Gradio fills it in.

        Yields:
            The PNG files with their words, and a record of each; more as they are finished.
        """

        def start() -> Run:
            asked = checked(RefineCall, {"picture_id": picture_id, "vary": vary})
            parent = find_anywhere(self._libraries, asked.picture_id)
            suffixes = asked.vary or GUIDE_SUFFIXES
            check_count(len(suffixes), field="vary")
            return self._studio.start_refine(parent, suffixes, **self._options(request))

        async with aclosing(_answer(start, self._copies, progress)) as answers:
            async for answer in answers:
                yield answer

    async def verify(
        self,
        picture: str,
        request: gr.Request | None = None,
        progress: gr.Progress = gr.Progress(),  # noqa: B008 (same)
    ) -> Record:
        """Run the recipe in a SeedGrid PNG again and compare.

        Args:
            picture: The file.
            request: Who asks; Gradio fills it in.
            progress: Told how far it is; Gradio fills it in.

        Returns:
            verdict, max_abs_diff, psnr_db, differing_pixels and reasons, as the command prints.
        """
        watch, who = StepWatch(), _asker(request)
        _check_file(picture)
        try:
            claim = await self._file_work.do(who["address"], lambda: read_claim(Path(picture)))
            future = self._studio.verifier.verify([claim], watch, **who)
            async with aclosing(steps_of(future, watch)) as steps:
                async for number, total in steps:
                    progress((number, total or None), desc="painted again", unit="steps")
            if future.cancelled():
                raise RunCancelled("run_cancelled")
            (found,) = future.result()
            verdict = found.as_json()
        except SeedGridError as error:
            raise gr.Error(str(error), print_exception=False) from error
        finally:
            taken_in(Path(picture))
        del verdict["path"]  # Gradio's client would take it for a file to fetch.
        return verdict

    async def recipe(self, picture: str, request: gr.Request | None = None) -> Record:
        """Read the recipe, passport and lineage in a SeedGrid PNG.

        Args:
            picture: The file.
            request: Who asks; Gradio fills it in.

        Returns:
            What the file says of itself.
        """
        _check_file(picture)
        try:
            address = _asker(request)["address"]
            return await self._file_work.do(address, lambda: file_record(Path(picture)))
        except SeedGridError as error:
            raise gr.Error(str(error), print_exception=False) from error
        finally:
            taken_in(Path(picture))

    def _options(self, request: gr.Request | None) -> RunOptions:
        return for_program(self._libraries, **_asker(request))


def publish(studio: Studio, libraries: Libraries, file_work: FileWork) -> None:
    """Make the functions part of the page that is being built; nothing of them is seen there."""
    api = Api(studio, libraries, file_work)
    told = [_component(row) for row in GRID_FIELDS]
    picture_id = gr.Textbox(label="picture_id", visible=False)
    vary = gr.JSON(label="vary", visible=False)
    file = paths_only(gr.File(label="picture", type="filepath", visible=False))
    pictures = gr.Gallery(label="pictures", visible=False)
    records = gr.JSON(label="records", visible=False)
    _publish(api.grid(), told, [pictures, records])
    _publish(api.refine, [picture_id, vary], [pictures, records])
    _publish(api.recipe, [file], [records])
    _publish(api.verify, [file], [records])


def _component(row: Field) -> gr.Component:
    """A parameter that says in the API's description of which kind it is; a text is read too."""
    if row.value_type is bool:
        return gr.Checkbox(value=False, label=row.name, visible=False)
    box = gr.Textbox(default_of(row), label=row.name, visible=False)
    kind = {"type": _KINDS[row.value_type]}
    box.api_info = lambda: kind
    return box


def _sign(grid: Callable[..., object]) -> None:
    """Give the function the parameters of the table, as if they had been written."""
    told = [
        inspect.Parameter(
            row.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            annotation=row.value_type,
            default=inspect.Parameter.empty if row.name == "prompt" else default_of(row),
        )
        for row in GRID_FIELDS
    ]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    asked = inspect.Parameter("request", kind, annotation=gr.Request, default=None)
    bar = inspect.Parameter("progress", kind, annotation=gr.Progress, default=gr.Progress())
    signature = inspect.Signature([*told, asked, bar])
    grid.__signature__ = signature  # type: ignore[attr-defined] # what inspect looks for first
    grid.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()}
    told_of = [f"    {row.name}: {about(row)}" for row in GRID_FIELDS]
    answer = ["", "Yields:", "    The PNG files with their seeds, and a record of each."]
    grid.__doc__ = "\n".join(["Paint one prompt on several seeds.", "", "Args:", *told_of, *answer])


def _publish(
    function: Callable[..., Any], inputs: Sequence[gr.Component], outputs: Sequence[gr.Component]
) -> None:
    trigger = gr.Button(visible=False)
    trigger.click(
        function, list(inputs), list(outputs), api_name=function.__name__, concurrency_limit=None
    )


async def _answer(
    start: Callable[[], Run], copies: Copies, progress: gr.Progress
) -> AsyncGenerator[Answer, None]:
    """Start a run and follow it; threads are for the moments in which something is done."""
    shown: dict[int, tuple[str, str]] = {}
    try:
        run = await begun(start)
        async with aclosing(followed(run)) as stands:
            async for stand in stands:
                progress(stand.pictures / stand.total, desc=stand.words)
                finished = run.finished
                if new := sorted(finished.keys() - shown.keys()):
                    shown |= await to_thread.run_sync(
                        _files, copies, {cell: finished[cell] for cell in new}
                    )
                    yield _so_far(run, shown)
        run.given()  # Says why, where not all of it is there.
        if run.missed:
            yield _so_far(run, shown)
    except SeedGridError as error:
        raise gr.Error(str(error), print_exception=False) from error


def _so_far(run: Run, shown: Mapping[int, tuple[str, str]]) -> Answer:
    cells, finished = sorted(shown), run.finished
    return [shown[cell] for cell in cells], [picture_record(finished[cell], run) for cell in cells]


def _check_file(picture: object) -> None:
    """Refuse no file at all.

    Raises:
        gr.Error: `call_wrong`, as a sentence.
    """
    try:
        checked(PictureCall, {"picture": picture})
    except SeedGridError as error:
        raise gr.Error(str(error), print_exception=False) from error


def _files(copies: Copies, entries: Mapping[int, Entry]) -> dict[int, tuple[str, str]]:
    return {cell: _file(copies, entry) for cell, entry in entries.items()}


def _file(copies: Copies, entry: Entry) -> tuple[str, str]:
    """A copy that Gradio may serve, byte for byte, and a caption."""
    copy = save_file_to_cache(entry.path, get_upload_folder())
    copies.add(Path(copy))
    return str(copy), entry.lineage.change or f"seed {entry.recipe.seed}"


def _asker(request: gr.Request | None) -> Asker:
    if request is None:
        return asker(_OWNER, None, None)
    return asker(_OWNER, request.session_hash, request.client.host if request.client else None)
