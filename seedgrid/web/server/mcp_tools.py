"""The public functions as tools for agents: MCP over HTTP, beside the page, at /gradio_api/mcp.

Gradio can do this too, but its server calls the page as one client for all agents, so that the
bounds for an address bound nobody; it fetches whatever address it is told; and a gallery comes
back as text. Here a tool asks the studio as `/grid` does. The `mcp` package is an optional extra
and is imported when the first agent comes.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from anyio import to_thread
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

import seedgrid
from seedgrid.core.errors import PictureError, RunCancelled, SeedGridError
from seedgrid.core.picture import Entry
from seedgrid.core.prompts import GUIDE_SUFFIXES
from seedgrid.engine import Run
from seedgrid.studio import RunOptions, Studio
from seedgrid.verify import read_claim
from seedgrid.web.actions.form import check_count
from seedgrid.web.calls import (
    CALLS,
    Call,
    GridCall,
    PictureCall,
    RefineCall,
    checked,
    file_record,
    picture_record,
    read_grid,
)
from seedgrid.web.serializers.pictures import small_jpeg
from seedgrid.web.server.file_work import FileWork
from seedgrid.web.server.limits import MAX_BODY_BYTES
from seedgrid.web.server.waiting import Asker, StepWatch, asker, begun, followed, steps_of
from seedgrid.web.state.visitor_libraries import Libraries, find_anywhere, for_program

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

Json = dict[str, Any]

MCP_PATH: Final = "/gradio_api/mcp"
_OWNER: Final = "agent"
_SHOWN_PX: Final = 512
_SHOWN_QUALITY: Final = 85
_DATA: Final = "data:image/png;base64,"
_PICTURE: Final = f"The id of a picture that grid or refine gave, or a PNG file as {_DATA}…"
_ABOUT: Final = (
    "Paint a grid of seeds, look at it, pick one picture, and vary only its words: refine keeps its"
    " seed, so the composition stays. Every picture is a function of its recipe, bit for bit."
)


def mcp_routes(studio: Studio, libraries: Libraries, file_work: FileWork) -> list[Route]:
    """Return the address at which agents find the tools."""
    door = _Door(_Tools(studio, libraries, file_work))
    return [Route(path, door) for path in (MCP_PATH, f"{MCP_PATH}/")]


class _Door:
    """Makes the server of the tools when somebody comes, and hands every request to it."""

    def __init__(self, tools: _Tools) -> None:
        self._tools = tools
        self._making = asyncio.Lock()
        self._manager: StreamableHTTPSessionManager | None = None
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; without the package say how to get it."""
        try:
            manager = await self._ready()
        except ModuleNotFoundError:
            words = "tools for agents need one more package: pip install 'seedgrid[mcp]'"
            await PlainTextResponse(words, status_code=501)(scope, receive, send)
            return
        await manager.handle_request(scope, receive, send)

    async def _ready(self) -> StreamableHTTPSessionManager:
        async with self._making:
            if self._manager is None:
                manager = await to_thread.run_sync(_make_manager, self._tools)
                is_there = asyncio.Event()
                self._running = asyncio.create_task(_run(manager, is_there))
                await is_there.wait()
                self._manager = manager
            return self._manager


def _make_manager(tools: _Tools) -> StreamableHTTPSessionManager:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    return StreamableHTTPSessionManager(
        _make_server(tools),
        max_request_body_size=MAX_BODY_BYTES,
        stateless=True,  # A session that is kept could be had by anybody, and all of them at once.
    )


async def _run(manager: StreamableHTTPSessionManager, is_there: asyncio.Event) -> None:
    """Hold the manager open until the server's loop ends."""
    async with manager.run():
        is_there.set()
        await asyncio.Event().wait()


def _make_server(tools: _Tools) -> Server[Any]:
    """Return the MCP server of the four tools; needs the `mcp` package."""
    from mcp import types
    from mcp.server import Server

    async def list_tools(*_: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(**_description(call)) for call in CALLS])

    async def call_tool(context: Any, asked: Any) -> types.CallToolResult:  # noqa: ANN401 (mcp's)
        try:
            content, answer = await tools.call(asked.name, asked.arguments or {}, context)
        except SeedGridError as error:
            said = types.TextContent(text=str(error))
            return types.CallToolResult(content=[said], is_error=True)
        return types.CallToolResult(content=content, structured_content=answer)

    return Server(
        "SeedGrid",
        version=seedgrid.__version__,
        instructions=_ABOUT,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _description(call: Call) -> Json:
    told, answer = call.told.model_json_schema(), call.answer.model_json_schema()
    if call.told is PictureCall:
        told["properties"]["picture"]["description"] = _PICTURE
    if call.gives_pictures:
        definitions = answer.pop("$defs", {})
        pictures = {"type": "array", "items": answer}
        answer = {"type": "object", "properties": {"pictures": pictures}, "$defs": definitions}
    return {
        "name": call.name,
        "description": call.summary,
        "input_schema": told,
        "output_schema": answer,
    }


class _Tools:
    """The four functions, as an agent calls them."""

    def __init__(self, studio: Studio, libraries: Libraries, file_work: FileWork) -> None:
        self._studio = studio
        self._libraries = libraries
        self._file_work = file_work
        self._calls: dict[str, Callable[[Json, Any], Awaitable[tuple[list[Any], Json]]]] = {
            "grid": self._grid,
            "refine": self._refine,
            "verify": self._verify,
            "recipe": self._recipe,
        }

    async def call(self, name: str, told: Json, context: Any) -> tuple[list[Any], Json]:  # noqa: ANN401 (mcp's)
        """Return what an agent is shown, and the same as data."""
        if name not in self._calls:
            raise PictureError("call_wrong", value=name, reason=", ".join(self._calls))
        return await self._calls[name](told, context)

    async def _grid(self, told: Json, context: Any) -> tuple[list[Any], Json]:  # noqa: ANN401
        asked = checked(GridCall, told).model_dump()
        turbo, request = bool(asked["turbo"]), read_grid(asked)
        options = self._options(context)
        start = lambda: self._studio.start_grid(request, turbo=turbo, **options)  # noqa: E731
        return await _painted(start, self._file_work, context)

    async def _refine(self, told: Json, context: Any) -> tuple[list[Any], Json]:  # noqa: ANN401
        asked = checked(RefineCall, told)

        def start() -> Run:
            parent = find_anywhere(self._libraries, asked.picture_id)
            suffixes = asked.vary or GUIDE_SUFFIXES
            check_count(len(suffixes), field="vary")
            return self._studio.start_refine(parent, suffixes, **self._options(context))

        return await _painted(start, self._file_work, context)

    async def _verify(self, told: Json, context: Any) -> tuple[list[Any], Json]:  # noqa: ANN401
        watch, who = StepWatch(), _asker(context)
        async with self._file(told) as path:
            claim = await self._file_work.do(who["address"], lambda: read_claim(path))
        future = self._studio.verifier.verify([claim], watch, **who)
        async with contextlib.aclosing(steps_of(future, watch)) as steps:
            async for number, total in steps:
                await context.session.report_progress(number, total or None)
        if future.cancelled():
            raise RunCancelled("run_cancelled")
        (found,) = future.result()
        verdict = found.as_json()
        del verdict["path"]  # Of a copy that is gone.
        return _as_text(verdict), verdict

    async def _recipe(self, told: Json, context: Any) -> tuple[list[Any], Json]:  # noqa: ANN401
        address = _asker(context)["address"]
        async with self._file(told) as path:
            record = await self._file_work.do(address, lambda: file_record(path))
        return _as_text(record), record

    def _options(self, context: Any) -> RunOptions:  # noqa: ANN401
        return for_program(self._libraries, **_asker(context))

    @contextlib.asynccontextmanager
    async def _file(self, told: Json) -> AsyncIterator[Path]:
        """Give the file that an agent means; what it sent lies on the disk only meanwhile."""
        picture: str = checked(PictureCall, told).picture
        if not picture.startswith(_DATA):
            entry = await to_thread.run_sync(find_anywhere, self._libraries, picture)
            yield entry.path
            return
        try:
            data = base64.b64decode(picture.removeprefix(_DATA), validate=True)
        except binascii.Error as error:
            raise PictureError("call_wrong", value="picture", reason=str(error)) from error
        with tempfile.TemporaryDirectory(prefix="seedgrid-agent-") as folder:
            path = Path(folder) / "picture.png"
            await to_thread.run_sync(path.write_bytes, data)
            yield path


async def _painted(
    start: Callable[[], Run],
    file_work: FileWork,
    context: Any,  # noqa: ANN401
) -> tuple[list[Any], Json]:
    """Start a run, tell how it goes, and show its pictures; it stops when the agent goes."""
    run = await begun(start)
    async with contextlib.aclosing(followed(run)) as stands:
        async for stand in stands:
            await context.session.report_progress(stand.pictures, stand.total, stand.words)
    entries = run.given()
    shown = await file_work.run(lambda: [_shown(entry) for entry in entries])
    records = [picture_record(entry, run) | _link(entry, context) for entry in entries]
    return [*shown, *_as_text({"pictures": [_brief(each) for each in records]})], {
        "pictures": records
    }


def _shown(entry: Entry) -> Any:  # noqa: ANN401 (mcp's)
    """A picture as an agent can look at it: a JPEG of no more than 512 pixels along a side."""
    from mcp.types import ImageContent

    data = small_jpeg(entry.path, _SHOWN_PX, quality=_SHOWN_QUALITY)
    return ImageContent(data=base64.b64encode(data).decode(), mime_type="image/jpeg")


def _link(entry: Entry, context: Any) -> Json:  # noqa: ANN401
    """Where the PNG file can be fetched, as it is on disk, its recipe inside."""
    if context.request is None:
        return {"file": str(entry.path)}
    return {"url": f"{context.request.base_url}seedgrid/pictures/{entry.id}.png"}


def _brief(record: Mapping[str, Any]) -> Json:
    return {
        name: record[name] for name in ("id", "seed", "prompt", "url", "file") if name in record
    }


def _as_text(answer: Json) -> list[Any]:
    from mcp.types import TextContent

    return [TextContent(text=json.dumps(answer, ensure_ascii=False))]


def _asker(context: Any) -> Asker:  # noqa: ANN401 (mcp's)
    """An owner is an address: agents have no sessions, and what one calls itself bounds nothing."""
    request = context.request
    return asker(_OWNER, None, request.client.host if request and request.client else None)
