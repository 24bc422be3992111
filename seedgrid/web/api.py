"""The server's public endpoints, for gradio_client, HTTP and, except on public pages, MCP.

    pictures, records = client.predict("a red fox", "0-3", api_name="/grid")

/grid and /refine paint and return the PNG files, byte for byte, and a record of each
(`picture_record`); iterating over a job yields them as they finish, `job.cancel()` stops the run
within a step. /recipe reads a picture, /verify paints it again and compares.
"""

import hashlib
import inspect
import shutil
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Final

import gradio as gr
from anyio import to_thread

from seedgrid.core.checks import check_count
from seedgrid.core.errors import InputError, Notice, SeedGridError
from seedgrid.core.events import Event, Step
from seedgrid.core.field import Field
from seedgrid.core.fields import FIELDS, field, read_fields
from seedgrid.core.picture import Entry, new_id
from seedgrid.core.prompts import GUIDE_SUFFIXES
from seedgrid.core.request import Request
from seedgrid.engine import Run
from seedgrid.formats import png
from seedgrid.locales import english
from seedgrid.storage.files import refusals
from seedgrid.studio import RunOptions, check_starts
from seedgrid.verify.claim import read_claim
from seedgrid.web.server.calls import lies_in
from seedgrid.web.server.routes import PageServices
from seedgrid.web.server.waiting import StepWatch, begun, followed, steps_of
from seedgrid.web.state.page_state import network_of

Answer = tuple[list[gr.FileData], list[dict[str, Any]]]

_FIRST: Final = ("prompt", "seeds", "negative", "steps", "guidance", "size", "scheduler", "model")
"""The first parameters of /grid, in the order in which scripts give them."""
GRID_FIELDS: Final = (  # Every setting of a recipe; LoRAs are named in the prompt
    *map(field, _FIRST),
    *(
        each
        for each in FIELDS
        if each.scope == "recipe" and each.name not in _FIRST and (each.help or each.widget)
    ),
)


def _painting(start: Callable[..., Run]) -> Callable[..., AsyncGenerator[Answer, None]]:
    """Make a method that starts a run yield its pictures; a client that leaves cancels the run."""

    @wraps(start)
    async def answer(api: "Api", *values: Any) -> AsyncGenerator[Answer, None]:  # noqa: ANN401 (any function's)
        shown: dict[int, gr.FileData] = {}
        progress = gr.Progress()
        with _errors_of_gradio():
            run = await begun(lambda: start(api, *values))
            async with aclosing(followed(run)) as updates:
                async for events in updates:
                    finished = run.finished
                    if events:
                        share = len(finished) / len(run.jobs)
                        progress(share, desc=_progress_text(events[-1], run))
                    if new := sorted(finished.keys() - shown.keys()):
                        for cell in new:
                            shown[cell] = await to_thread.run_sync(api.copy, finished[cell])
                        yield _so_far(run, shown)
            run.pictures_or_raise()  # Raises if it was cancelled or failed.
            if run.missed:
                yield _so_far(run, shown)

    _declare(answer, inspect.signature(start).parameters.values())
    return answer


def _declare(function: Callable[..., object], parameters: Iterable[inspect.Parameter]) -> None:
    """Give a function the signature that Gradio shows."""
    signature = inspect.Signature([*parameters], return_annotation=Answer)
    function.__signature__ = signature  # type: ignore[attr-defined] # what inspect looks for first
    function.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}


class Api:
    """The public functions, with the parameters of the API."""

    def __init__(self, services: PageServices, copies: Path) -> None:
        self._studio = services.studio
        self._libraries = services.libraries
        self._file_work = services.file_work
        self._copies = copies.resolve()

    @_painting
    def grid(self, *values: Any) -> Run:  # noqa: ANN401 (values of any field)
        """Paint one prompt on several seeds: values of `GRID_FIELDS`, and Gradio's request."""
        *settings, request = values
        arguments = dict(zip(PARAMETERS["grid"], settings, strict=True))
        return self._studio.start_grid(read_grid(arguments), **self._options(request))

    @_painting
    def refine(
        self,
        picture_id: str,
        vary: list[str] | None = None,
        hold: float | None = None,
        only: gr.FileData | None = None,
        feather: int | None = None,
        request: gr.Request | None = None,
    ) -> Run:
        """Vary the words or settings of a picture on its own seed, so that its composition stays.

        Args:
            picture_id: The `id` of a record from /grid or /refine.
            vary: One picture each: what to append to its prompt, or a setting, as in
                "guidance 3" or "scheduler Euler a"; four example suffixes by default.
            hold: The share of first steps, 0 to 0.8, taken from the picture: its composition.
            only: A mask, white where the picture may change; every other pixel stays.
            feather: Over how many pixels, inside the mask, new and old are mixed.
            request: Filled in by Gradio.

        Yields:
            The PNG files, and a record of each; more as they are finished.
        """
        _check_kind("picture_id", picture_id, str)
        suffixes = GUIDE_SUFFIXES if vary is None else vary
        _check_kind("vary", suffixes, list, tuple)
        for suffix in suffixes:
            _check_kind("vary", suffix, str)
        check_count(len(suffixes), field="vary")
        _check_kind("hold", hold, float, int, type(None))
        _check_kind("feather", feather, int, type(None))
        options = self._options(request)
        return self._studio.start_refine(
            options["library"].get(picture_id),
            suffixes or GUIDE_SUFFIXES,
            hold=hold,
            only=self._uploaded(only) if only else None,
            feather=feather,
            **options,
        )

    async def verify(
        self, picture: gr.FileData, request: gr.Request | None = None
    ) -> dict[str, Any]:
        """Paint the picture in a SeedGrid PNG again from its recipe and compare every pixel.

        Args:
            picture: The file.
            request: Filled in by Gradio.

        Returns:
            verdict, max_abs_diff, psnr_db, differing_pixels and reasons, as the command prints.
        """
        watch, path = StepWatch(), self._uploaded(picture)
        with _errors_of_gradio():
            options = self._options(request)
            owner, address = options["owner"], options["address"]
            claim = await self._file_work.do(address, lambda: read_claim(path))
            check_starts([claim.recipe], options["library"])
            future = self._studio.verifier.verify([claim], watch, owner=owner, address=address)
            async with aclosing(steps_of(future, watch)) as steps:
                async for _ in steps:
                    pass
            (verdict,) = future.result()
        answer: dict[str, Any] = verdict.as_json()
        del answer["path"]  # Gradio's client would take it for a file to fetch.
        return answer

    async def recipe(
        self, picture: gr.FileData, request: gr.Request | None = None
    ) -> dict[str, Any]:
        """Read the recipe, passport and lineage in a SeedGrid PNG, without painting.

        Args:
            picture: The file.
            request: Filled in by Gradio.
        """
        path = self._uploaded(picture)
        with _errors_of_gradio():
            address = self._options(request)["address"]
            record = await self._file_work.do(address, lambda: png.read(path))
        return {
            "recipe_id": record.recipe.id,
            "recipe": record.recipe.model_dump(mode="json"),
            "passport": record.passport.model_dump(mode="json"),
            "lineage": record.lineage.model_dump(mode="json"),
            "pixels_sha256": record.pixels_sha256,
        }

    def _options(self, request: gr.Request | None) -> RunOptions:
        """Return the options of a caller's run: owner, address and library."""
        address = network_of(request.client.host if request and request.client else "")
        owner = f"api-{(request and request.session_hash) or address}"
        # All programs at an address are one visitor, whose folder does not name the address.
        visitor = f"programs-{hashlib.sha256(address.encode()).hexdigest()[:32]}"
        library = self._libraries.of(visitor, address)
        return RunOptions(owner=owner, address=address, library=library)

    def _uploaded(self, picture: object) -> Path:
        """Return an upload's path, and touch it to keep it for an hour; raise if there is none."""
        path = picture.get("path") if isinstance(picture, Mapping) else None
        path = getattr(picture, "path", path)
        if not (isinstance(path, str) and lies_in(self._copies, path) and Path(path).is_file()):
            raise gr.Error("picture: upload a PNG file, please", print_exception=False)
        Path(path).touch()
        return Path(path)

    def copy(self, entry: Entry) -> gr.FileData:
        """A byte-identical copy for Gradio to serve; it is deleted after an hour."""
        copy = self._copies / new_id() / f"{entry.id}.png"
        with refusals(copy):
            copy.parent.mkdir(parents=True)
            shutil.copyfile(entry.path, copy)
        return gr.FileData(path=str(copy), orig_name=copy.name, mime_type="image/png")


def default_of(row: Field) -> str | bool | None:
    """Return the default of a parameter; None leaves it to the model's card."""
    return row.default or (False if row.value_type is bool else None)


def _grid_parameters() -> Iterator[inspect.Parameter]:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    yield inspect.Parameter("self", kind)
    for each in GRID_FIELDS:
        is_plain = each.name == "prompt" or each.value_type is bool
        annotation: Any = each.value_type if is_plain else each.value_type | None
        default = inspect.Parameter.empty if each.name == "prompt" else default_of(each)
        yield inspect.Parameter(each.name, kind, annotation=annotation, default=default)
    yield inspect.Parameter("request", kind, annotation=gr.Request, default=None)


_declare(Api.grid, _grid_parameters())
_about = [f"    {r.name}: {r.help or english().words[f'{r.name}_label']}" for r in GRID_FIELDS]
_lines = ["Paint one prompt on several seeds.", "", "Args:", *_about]
Api.grid.__doc__ = "\n".join([*_lines, "", "Yields:", "    The PNG files, and a record of each."])
PARAMETERS: Final[Mapping[str, Sequence[str]]] = {  # Parameter names by endpoint
    each.__name__: [n for n in inspect.signature(each).parameters if n not in ("self", "request")]
    for each in (Api.grid, Api.refine, Api.verify, Api.recipe)
}


def publish(server: gr.Server, services: PageServices, copies: Path) -> None:
    """Add the functions to a server as Gradio endpoints."""
    api = Api(services, copies)
    for function in (api.grid, api.refine, api.verify, api.recipe):
        server.api(function, name=function.__name__, concurrency_limit=None)


def _so_far(run: Run, shown: Mapping[int, gr.FileData]) -> Answer:
    cells, finished = sorted(shown), run.finished
    return [shown[cell] for cell in cells], [picture_record(finished[cell], run) for cell in cells]


def read_grid(arguments: Mapping[str, Any]) -> Request:
    """Read the arguments of `/grid`; raise `call_wrong` for a wrong type, or a field's error."""
    for each in GRID_FIELDS:
        name, kind = each.name, each.value_type
        whole = (int,) if kind is float else ()
        kinds = (bool,) if kind is bool else (kind, *whole, str, type(None))
        _check_kind(name, arguments[name], *(kinds[:1] if name == "prompt" else kinds))
    return Request(**({"prompt": ""} | read_fields(GRID_FIELDS, arguments)))


def _check_kind(name: str, value: object, *kinds: type) -> None:
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        names = dict.fromkeys("null" if kind is type(None) else kind.__name__ for kind in kinds)
        told = {"name": name, "value": repr(value)[:40], "reason": " / ".join(names)}
        raise InputError("call_wrong", field=name, **told)


@contextmanager
def _errors_of_gradio() -> Iterator[None]:
    """Raise SeedGrid's errors as `gr.Error`, whose text Gradio sends to programs."""
    try:
        yield
    except SeedGridError as error:
        raise gr.Error(str(error), print_exception=False) from error


def _progress_text(event: Event, run: Run) -> str:
    done = f"{len(run.finished)} of {len(run.jobs)} done"
    return f"step {event.number} of {event.total}, {done}" if isinstance(event, Step) else done


def picture_record(entry: Entry, run: Run) -> dict[str, Any]:
    """Return the record of a picture as plain data, with the run's notices and failures."""
    missed = (
        Notice("seed_missed", seed=run.jobs[cell].recipe.seed, reason=str(error))
        for cell, error in sorted(run.missed.items())
    )
    return {
        "id": entry.id,
        "seed": entry.recipe.seed,
        "prompt": entry.recipe.prompt,
        "recipe_id": entry.recipe.id,
        "pixels_sha256": entry.pixels_sha256,
        "recipe": entry.recipe.model_dump(mode="json"),
        "notices": [str(notice) for notice in (*run.notices, *missed)],
    }
