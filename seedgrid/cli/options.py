"""The options that commands share; those of core/fields.py reach a command as `**settings`."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import typer

from seedgrid.core.checks import parse_seeds
from seedgrid.core.field import Field
from seedgrid.core.fields import OPTIONS, field, read_fields
from seedgrid.core.request import Request
from seedgrid.diffusion.backend import Placement
from seedgrid.studio import Studio

_BY_STUDIO: Final = ("model", "start")  # Fields that only a Studio can read
Value = Any  # The value of an option; each field has its own type

Command = TypeVar("Command", bound=Callable[..., None])

Seeds = Annotated[str, typer.Option(help="As in 7, or 0-3, or 7,11,42; random draws four.")]
Model = Annotated[str | None, typer.Option(help=field("model").help)]
Device = Annotated[str, typer.Option(help=field("device").help)]
Library = Annotated[Path | None, typer.Option(help="The folder that keeps the pictures.")]
Out = Annotated[Path | None, typer.Option(help="Write the pictures to this folder as well.")]
Loras = Annotated[
    list[str] | None,
    typer.Option("--lora", metavar="FILE[=SCALE]", help="A LoRA's file or name; repeat it."),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Compute even what the library remembers.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a line on standard output.")]


def with_fields(*names: str) -> Callable[[Command], Command]:
    """Give a command an option for each field of `OPTIONS`, or only for the named ones.

    They come after prompts and seeds. The command gets their values by name, as `**settings`.
    """
    fields = [each for each in OPTIONS if not names or each.name in names]

    def add(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters.values()
        named = [one for one in own if one.kind is not inspect.Parameter.VAR_KEYWORD]
        first = [one for one in named if one.name in ("prompt", "prompts", "seeds")]
        rest = [one for one in named if one not in first]
        options = [*first, *map(_parameter, fields), *rest]
        by_name = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in options]
        command.__signature__ = inspect.Signature(by_name)  # type: ignore[attr-defined] # typer reads it
        return command

    return add


def make_request(seeds: str, settings: Mapping[str, Any], *, prompt: str = "") -> Request:
    """Return the request that the options describe, without its model and start picture."""
    fields = [each for each in OPTIONS if each.scope == "recipe" and each.name not in _BY_STUDIO]
    return Request(prompt=prompt, seeds=parse_seeds(seeds), **read_fields(fields, settings))


def with_files(
    studio: Studio, request: Request, settings: Mapping[str, Any], loras: list[str] | None
) -> Request:
    """Return the request with the named LoRAs and start picture; the studio stores the picture."""
    start = settings["start"]
    return replace(
        request,
        start=studio.take_start(start) if start else None,
        loras=studio.model_manager.find_loras(loras or ()),
    )


def make_placement(settings: Mapping[str, Any]) -> Placement:
    """Return the placement that the options describe, without previews."""
    fields = [each for each in OPTIONS if each.scope == "placement"]
    return Placement(previews=False, **read_fields(fields, settings))


_FLAGS: Final = {"dtype": ["--dtype", "--quantize"]}  # Options with two names


def _parameter(setting: Field) -> inspect.Parameter:
    """Return the option of a field: `--NAME`, None unless it is given or has a default."""
    kind = setting.value_type if setting.default is not None else setting.value_type | None
    flag = [f"--{setting.name}"] if setting.value_type is bool else _FLAGS.get(setting.name, [])
    option = typer.Option(*flag, help=setting.help, metavar=setting.metavar)
    return inspect.Parameter(
        setting.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=setting.default,
        annotation=Annotated[kind, option],
    )
