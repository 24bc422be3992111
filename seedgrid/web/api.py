"""The public functions of the page's server: for gradio_client, over HTTP, and at home for agents.

/grid and /refine paint, /recipe reads a picture, /verify paints it again and compares.

    pictures, records = client.predict("a red fox", "0-3", api_name="/grid")

Each gives the PNG files as they are on disk and a record of each, with the fields that
`seedgrid grid --json` prints: as they are finished to who iterates over a job, all of them at the
end. `job.cancel()` stops the run within a step. Everything else on the page is private.
"""

import inspect
import shutil
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import wraps
from pathlib import Path
from typing import Any, Final

import gradio as gr
from anyio import to_thread

from seedgrid.core.errors import RunCancelled, SeedGridError
from seedgrid.core.field import Field
from seedgrid.core.picture import Entry, new_id
from seedgrid.core.prompts import GUIDE_SUFFIXES
from seedgrid.engine import Run
from seedgrid.studio import RunOptions
from seedgrid.verify import read_claim
from seedgrid.web.actions.form import check_count
from seedgrid.web.answers import Answers
from seedgrid.web.calls import (
    GRID_FIELDS,
    RefineCall,
    about,
    checked,
    default_of,
    file_record,
    picture_record,
    read_grid,
)
from seedgrid.web.server.limits import taken_in
from seedgrid.web.server.waiting import Asker, StepWatch, asker, begun, followed, steps_of
from seedgrid.web.state.visitor_libraries import find_anywhere, for_program

Record = dict[str, Any]
Files = list[gr.FileData]
Answer = tuple[Files, list[Record]]

_OWNER: Final = "api"


class Api:
    """The public functions; their parameters are what API users write."""

    def __init__(self, answers: Answers, copies: Path) -> None:
        self._studio = answers.studio
        self._libraries = answers.libraries
        self._file_work = answers.file_work
        self._copies = copies

    def grid(self) -> Callable[..., AsyncGenerator[Answer, None]]:
        """Return the function that paints one prompt on several seeds.

        Its parameters are the table of fields; Gradio reads them from its signature.
        """
        names = [row.name for row in GRID_FIELDS]

        async def grid(*given: Any) -> AsyncGenerator[Answer, None]:  # noqa: ANN401 (see the signature)
            *values, request = given
            told = dict(zip(names, values, strict=True))

            def start() -> Run:
                turbo = bool(told["turbo"])
                return self._studio.start_grid(
                    read_grid(told), turbo=turbo, **self._options(request)
                )

            async with aclosing(self._answer(start)) as answers:
                async for answer in answers:
                    yield answer

        _sign(grid)
        return grid

    async def refine(
        self,
        picture_id: str,
        vary: list[str] | None = None,
        hold: float | None = None,
        only: gr.FileData | None = None,
        feather: int | None = None,
        request: gr.Request | None = None,
    ) -> AsyncGenerator[Answer, None]:
        """Vary the words or settings of a picture on its own seed, so that its composition stays.

        Args:
            picture_id: The `id` of a record that /grid or /refine gave.
            vary: One picture each: what to append to its prompt, or a setting, as in
                "guidance 3" or "scheduler Euler a"; the guide's four by default.
            hold: The share of its steps that are the picture's own, 0 to 0.8: its composition.
            only: A picture that is white where it may change; every other pixel stays.
            feather: Over how many pixels, inside that, new and old are mixed.
            request: Who asks; Gradio fills it in.

        Yields:
            The PNG files, and a record of each; more as they are finished.
        """
        told = {"picture_id": picture_id, "vary": vary, "hold": hold, "feather": feather}
        mask = self._uploaded(only) if only else None

        def start() -> Run:
            asked = checked(RefineCall, told)
            parent = find_anywhere(self._libraries, asked.picture_id)
            suffixes = asked.vary or GUIDE_SUFFIXES
            check_count(len(suffixes), field="vary")
            return self._studio.start_refine(
                parent,
                suffixes,
                hold=asked.hold,
                only=mask,
                feather=asked.feather,
                **self._options(request),
            )

        try:
            async with aclosing(self._answer(start)) as answers:
                async for answer in answers:
                    yield answer
        finally:
            if mask:
                taken_in(mask)

    async def verify(
        self, picture: gr.FileData, request: gr.Request | None = None
    ) -> dict[str, Any]:
        """Paint the picture in a SeedGrid PNG again from its recipe and compare every pixel.

        Args:
            picture: The file.
            request: Who asks; Gradio fills it in.

        Returns:
            verdict, max_abs_diff, psnr_db, differing_pixels and reasons, as the command prints.
        """
        watch, who, path = StepWatch(), _asker(request), self._uploaded(picture)
        try:
            claim = await self._file_work.do(who["address"], lambda: read_claim(path))
            future = self._studio.verifier.verify([claim], watch, **who)
            async with aclosing(steps_of(future, watch)) as steps:
                async for _ in steps:
                    pass
            if future.cancelled():
                raise RunCancelled("run_cancelled")
            (found,) = future.result()
            verdict: dict[str, Any] = found.as_json()
        except SeedGridError as error:
            raise gr.Error(str(error), print_exception=False) from error
        finally:
            taken_in(path)
        del verdict["path"]  # Gradio's client would take it for a file to fetch.
        return verdict

    async def recipe(
        self, picture: gr.FileData, request: gr.Request | None = None
    ) -> dict[str, Any]:
        """Read the recipe, passport and lineage in a SeedGrid PNG, without painting.

        Args:
            picture: The file.
            request: Who asks; Gradio fills it in.

        Returns:
            What the file says of itself.
        """
        path = self._uploaded(picture)
        try:
            address = _asker(request)["address"]
            return await self._file_work.do(address, lambda: file_record(path))
        except SeedGridError as error:
            raise gr.Error(str(error), print_exception=False) from error
        finally:
            taken_in(path)

    def _options(self, request: gr.Request | None) -> RunOptions:
        return for_program(self._libraries, **_asker(request))

    def _uploaded(self, picture: object) -> Path:
        """Return where an upload lies.

        Raises:
            gr.Error: It is none.
        """
        path = picture.get("path") if isinstance(picture, Mapping) else None
        path = getattr(picture, "path", path)
        if isinstance(path, str):
            found = Path(path).resolve()
            if found.is_relative_to(self._copies.resolve()) and found.is_file():
                return found
        raise gr.Error("picture: upload a PNG file, please", print_exception=False)

    async def _answer(self, start: Callable[[], Run]) -> AsyncGenerator[Answer, None]:
        """Start a run and follow it; it is stopped when its follower goes before its end."""
        shown: dict[int, gr.FileData] = {}
        progress = gr.Progress()
        try:
            run = await begun(start)
            async with aclosing(followed(run)) as stands:
                async for stand in stands:
                    progress(stand.pictures / stand.total, desc=stand.words)
                    finished = run.finished
                    if new := sorted(finished.keys() - shown.keys()):
                        for cell in new:
                            shown[cell] = await to_thread.run_sync(self._copy, finished[cell])
                        yield _so_far(run, shown)
            run.given()  # Says why, where not all of it is there.
            if run.missed:
                yield _so_far(run, shown)
        except SeedGridError as error:
            raise gr.Error(str(error), print_exception=False) from error

    def _copy(self, entry: Entry) -> gr.FileData:
        """A copy that Gradio may serve, byte for byte; it goes after an hour."""
        copy = self._copies / new_id() / f"{entry.id}.png"
        copy.parent.mkdir(parents=True)
        shutil.copyfile(entry.path, copy)
        return gr.FileData(path=str(copy), orig_name=copy.name, mime_type="image/png")


def publish(server: gr.Server, answers: Answers, copies: Path) -> None:
    """Make the functions endpoints of a server."""
    api = Api(answers, copies)
    for function in (api.grid(), _as_gradio_reads(api.refine), api.verify, api.recipe):
        server.api(function, name=function.__name__, concurrency_limit=None)


def _as_gradio_reads(
    function: Callable[..., AsyncGenerator[Answer, None]],
) -> Callable[..., AsyncGenerator[Answer, None]]:
    """Return a function with the type of what it yields in its signature, as Gradio wants it."""

    @wraps(function)
    async def answer(*args: Any) -> AsyncGenerator[Answer, None]:  # noqa: ANN401 (any function's)
        async with aclosing(function(*args)) as answers:
            async for each in answers:
                yield each

    signature = inspect.signature(function).replace(return_annotation=Answer)
    answer.__signature__ = signature  # type: ignore[attr-defined] # what inspect looks for first
    return answer


def _sign(grid: Callable[..., object]) -> None:
    """Give the function the parameters of the table, as if they had been written."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    told = [
        inspect.Parameter(
            row.name,
            kind,
            annotation=_kind(row),
            default=inspect.Parameter.empty if row.name == "prompt" else default_of(row),
        )
        for row in GRID_FIELDS
    ]
    asked = inspect.Parameter("request", kind, annotation=gr.Request, default=None)
    signature = inspect.Signature([*told, asked], return_annotation=Answer)
    grid.__signature__ = signature  # type: ignore[attr-defined] # what inspect looks for first
    grid.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()}
    told_of = [f"    {row.name}: {about(row)}" for row in GRID_FIELDS]
    answer = ["", "Yields:", "    The PNG files, and a record of each."]
    grid.__doc__ = "\n".join(["Paint one prompt on several seeds.", "", "Args:", *told_of, *answer])


def _kind(row: Field) -> Any:  # noqa: ANN401 (a type, or one with None)
    is_plain = row.name == "prompt" or row.value_type is bool
    return row.value_type if is_plain else row.value_type | None


def _so_far(run: Run, shown: Mapping[int, gr.FileData]) -> Answer:
    cells, finished = sorted(shown), run.finished
    return [shown[cell] for cell in cells], [picture_record(finished[cell], run) for cell in cells]


def _asker(request: gr.Request | None) -> Asker:
    if request is None:
        return asker(_OWNER, None, None)
    return asker(_OWNER, request.session_hash, request.client.host if request.client else None)
