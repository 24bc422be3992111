"""JSON from a stranger's file: read with limits, and asked for values without trust."""

import json
from typing import Any

from seedgrid.core.errors import PictureError


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
