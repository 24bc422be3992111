"""The public functions of the page's server, for gradio_client and MCP.

/grid and /refine paint, /recipe reads a picture, /verify paints it again and compares.

    client.predict("a red fox", "0-3", api_name="/grid")

Each gives the PNG files as they are on disk and a record of each, with the fields that
`seedgrid grid --json` prints. Everything else on the page is private.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, Final, TypedDict

import gradio as gr
from anyio import to_thread
from gradio.processing_utils import save_file_to_cache
from gradio.utils import get_upload_folder

from seedgrid.core.entry import Entry
from seedgrid.core.errors import SeedGridError
from seedgrid.core.field import Field
from seedgrid.core.fields import FIELDS, field, read_fields
from seedgrid.core.prompts import GUIDE_SUFFIXES
from seedgrid.core.request import Request
from seedgrid.diffusion.backend import Unwatched
from seedgrid.engine import Run
from seedgrid.formats import png
from seedgrid.locales import english
from seedgrid.studio import Studio
from seedgrid.verify import read_claim
from seedgrid.web.actions.form import check_count
from seedgrid.web.server.uploads import taken_in
from seedgrid.web.server.waiting import ended, network_of

Record = dict[str, Any]
Answer = tuple[list[tuple[str, str]], list[Record]]

_API_OWNER: Final = "api"
_GRID_FIRST: Final = (
    "prompt",
    "seeds",
    "negative",
    "steps",
    "guidance",
    "size",
    "scheduler",
    "model",
    "turbo",
)
"""The parameters that /grid always had, in the order in which scripts give them."""
_GRID_FIELDS: Final = (
    *map(field, _GRID_FIRST),
    *(row for row in FIELDS if row.belongs == "recipe" and row.name not in _GRID_FIRST),
)


class Api:
    """The public functions; their parameters are what API users write."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio

    async def grid(self, *said: Any) -> Answer:  # noqa: ANN401 (what the fields of the table are)
        """Paint one prompt on several seeds; `_describe_grid` gives it its parameters."""
        *typed, request = said
        named = dict(zip((row.name for row in _GRID_FIELDS), typed, strict=True))

        def start() -> Run:
            wanted = Request(**read_fields((row for row in _GRID_FIELDS if row.fills), named))
            return self._studio.start_grid(wanted, turbo=named["turbo"], **_asker(request))

        return await _answer(start)

    async def refine(
        self,
        picture_id: str,
        vary: list[str] | None = None,
        request: gr.Request | None = None,
    ) -> Answer:
        """Vary the words or settings of a picture on its own seed.

        Args:
            picture_id: The `id` of a record that /grid or /refine gave.
            vary: One picture each: what to append to its prompt, or a setting, as in
                "guidance 3" or "scheduler Euler a"; the guide's four by default.
            request: Who asks; Gradio fills it in.

        Returns:
            The PNG files with their words, and a record of each.
        """

        def start() -> Run:
            parent = self._studio.library.get(picture_id)
            suffixes = vary or GUIDE_SUFFIXES
            check_count(len(suffixes), field="vary")
            return self._studio.start_refine(parent, suffixes, **_asker(request))

        return await _answer(start)

    async def verify(self, picture: str, request: gr.Request | None = None) -> Record:
        """Run the recipe in a SeedGrid PNG again and compare.

        Args:
            picture: The file.
            request: Who asks; Gradio fills it in.

        Returns:
            verdict, max_abs_diff, psnr_db, differing_pixels and reasons, as the command prints.
        """
        watch = Unwatched()
        try:
            claim = await to_thread.run_sync(read_claim, Path(picture))
            future = self._studio.verify([claim], watch, **_asker(request))
            (found,) = await asyncio.wrap_future(future)
            verdict = found.as_json()
        except SeedGridError as error:
            raise gr.Error(str(error), print_exception=False) from error
        finally:
            watch.cancelled = True  # Who has gone waits for nothing.
            taken_in(Path(picture))
        del verdict["path"]  # Gradio's client would take it for a file to fetch.
        return verdict

    def recipe(self, picture: str) -> Record:
        """Read the recipe, passport and lineage in a SeedGrid PNG.

        Args:
            picture: The file.

        Returns:
            What the file says of itself.
        """
        try:
            record = png.read(Path(picture))
        except SeedGridError as error:
            raise gr.Error(str(error), print_exception=False) from error
        finally:
            taken_in(Path(picture))
        return {
            "recipe_id": record.recipe.id,
            "recipe": record.recipe.model_dump(mode="json"),
            "passport": record.passport.model_dump(mode="json"),
            "lineage": record.lineage.model_dump(mode="json"),
            "pixels_sha256": record.pixels_sha256,
        }


def publish(studio: Studio) -> None:
    """Make the functions part of the page that is being built; nothing of them is seen there."""
    api = Api(studio)
    fields = [_component(row) for row in _GRID_FIELDS]
    picture_id = gr.Textbox(label="picture_id", visible=False)
    vary = gr.JSON(label="vary", visible=False)
    file = gr.File(label="picture", type="filepath", visible=False)
    pictures = gr.Gallery(label="pictures", visible=False)
    records = gr.JSON(label="records", visible=False)
    _publish(api.grid, fields, [pictures, records])
    _publish(api.refine, [picture_id, vary], [pictures, records])
    _publish(api.recipe, [file], [records])
    _publish(api.verify, [file], [records])


def _component(row: Field) -> gr.Component:
    """What API users may leave out: Gradio takes the defaults of parameters from components."""
    if row.value_type is bool:
        return gr.Checkbox(value=False, label=row.name, visible=False)
    return gr.Textbox(_default(row), label=row.name, visible=False)


def _default(row: Field) -> str | bool | None:
    if row.value_type is bool:
        return False
    return None if row.name == "prompt" else row.default or ""


def _describe_grid() -> None:
    """Make the parameters of /grid, as clients and MCP see them, of the table of fields."""
    parameters = [
        Parameter(
            row.name,
            Parameter.POSITIONAL_OR_KEYWORD,
            default=_default(row) if row.name != "prompt" else Parameter.empty,
            annotation=bool if row.value_type is bool else str,
        )
        for row in _GRID_FIELDS
    ]
    last = Parameter(
        "request", Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=gr.Request | None
    )
    first = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    grid: Any = Api.grid
    grid.__signature__ = Signature([first, *parameters, last])
    grid.__annotations__ = {one.name: one.annotation for one in (*parameters, last)}
    labels = english().words
    about = [f"    {row.name}: {row.help or labels[f'{row.name}_label']}" for row in _GRID_FIELDS]
    grid.__doc__ = "\n".join(
        [
            "Paint one prompt on several seeds.",
            "",
            "Args:",
            *about,
            "",
            "Returns:",
            "    The PNG files with their seeds, and a record of each.",
        ]
    )


_describe_grid()


def _publish(
    function: Callable[..., Any], inputs: Sequence[gr.Component], outputs: Sequence[gr.Component]
) -> None:
    trigger = gr.Button(visible=False)
    trigger.click(
        function, list(inputs), list(outputs), api_name=function.__name__, concurrency_limit=None
    )


async def _answer(start: Callable[[], Run]) -> Answer:
    """Start a run and wait for it; threads are for the moments in which something is done."""
    try:
        run = await to_thread.run_sync(start)
        await ended(run)
        entries = run.result()
    except SeedGridError as error:
        raise gr.Error(str(error), print_exception=False) from error
    files = await to_thread.run_sync(lambda: [_file(entry) for entry in entries])
    notices = [str(notice) for notice in run.notices]
    return files, [_record(entry) | {"notices": notices} for entry in entries]


def _file(entry: Entry) -> tuple[str, str]:
    """A copy that Gradio may serve, byte for byte, and a caption."""
    copy = save_file_to_cache(entry.path, get_upload_folder())
    return str(copy), entry.lineage.change or f"seed {entry.recipe.seed}"


def _record(entry: Entry) -> Record:
    return {
        "id": entry.id,
        "seed": entry.recipe.seed,
        "prompt": entry.recipe.prompt,
        "recipe_id": entry.recipe.id,
        "pixels_sha256": entry.pixels_sha256,
        "recipe": entry.recipe.model_dump(mode="json"),
    }


class _Asker(TypedDict):
    owner: str
    address: str


def _asker(request: gr.Request | None) -> _Asker:
    """Turns are taken between API users as between visitors."""
    if request is None:
        return _Asker(owner=_API_OWNER, address="")
    address = network_of(request.client.host if request.client else None)
    return _Asker(owner=f"{_API_OWNER}-{request.session_hash or address}", address=address)
