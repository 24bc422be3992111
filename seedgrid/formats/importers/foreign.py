"""The settings that another tool wrote, unchecked; and safe reading of JSON."""

import json
from dataclasses import dataclass
from typing import Any

from seedgrid.core.errors import Notice, PictureError


@dataclass(frozen=True, kw_only=True)
class ForeignSettings:
    """A file's settings, unchecked; numbers have the names of their fields (core/fields.py)."""

    tool: str
    prompt: object = ""
    negative_prompt: object = ""
    seed: object = None
    width: object = None
    height: object = None
    steps: object = None
    guidance: object = None
    sampler: str = ""  # its name in the tool
    schedule: str = ""  # the tool's name for the noise schedule, `"karras"` for example
    model: str = ""  # its name in the tool
    mix: tuple[tuple[object, object], ...] = ()  # seeds mixed into the noise, and their weights
    is_cpu_noise: bool = False  # whether the first noise was drawn on the CPU, as SeedGrid does
    extras: tuple[str, ...] = ()  # settings that SeedGrid does not have
    loras: tuple[str, ...] = ()
    lora_tags: tuple[tuple[str, str], ...] = ()  # names and scales in the prompt
    weights: bool = False  # whether the prompt has weights that SeedGrid understands
    has_other_weights: bool = False  # whether the prompt has weights or edits that SeedGrid lacks
    has_second_pass: bool = False  # whether a second pass enlarged the picture
    begins_from_picture: bool = False  # whether image-to-image made the picture
    reasons: tuple[Notice, ...] = ()


def read_object(text: str) -> dict[str, Any]:
    """Read a JSON object; NaN, which Python's tools write, is accepted."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PictureError("picture_foreign", reason="they are not JSON") from error
    if not isinstance(data, dict):
        raise PictureError("picture_foreign", reason="they are not a JSON object")
    return data


def as_dict(value: object) -> dict[str, Any]:
    """Return an object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Return a list, or an empty one for anything else."""
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    """Return a text, or an empty one for anything else."""
    return value if isinstance(value, str) else ""
