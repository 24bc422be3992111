"""What a reader of one tool's format gives: `Found`; and JSON, read without trust."""

import json
from dataclasses import dataclass
from typing import Any

from seedgrid.core.errors import Notice, PictureError


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a file says, as it says it; a number has the name of its field (core/fields.py).

    Attributes:
        sampler: The tool's name of it.
        schedule: The tool's name of its noise levels, `"karras"` for example.
        model: The tool's name of it.
        mix: Seeds whose noise the tool mixed in, in order, each with its weight.
        is_cpu_noise: Whether the tool drew the first noise on the CPU, as SeedGrid does.
        extras: What SeedGrid has no setting for, by the tool's names.
        loras: Names of low-rank adaptations.
        lora_tags: Names and scales of those that the prompt named.
        weights: Whether brackets weigh words there as they can here.
        has_other_weights: Whether words are weighed, or changed, as they cannot be here.
        has_second_pass: Whether it was painted over, larger.
        begins_from_picture: Whether it was made from another picture.
        reasons: More that cannot come along.
    """

    tool: str
    prompt: object = ""
    negative_prompt: object = ""
    seed: object = None
    width: object = None
    height: object = None
    steps: object = None
    guidance: object = None
    sampler: str = ""
    schedule: str = ""
    model: str = ""
    mix: tuple[tuple[object, object], ...] = ()
    is_cpu_noise: bool = False
    extras: tuple[str, ...] = ()
    loras: tuple[str, ...] = ()
    lora_tags: tuple[tuple[str, str], ...] = ()
    weights: bool = False
    has_other_weights: bool = False
    has_second_pass: bool = False
    begins_from_picture: bool = False
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
