"""What was typed into the page's fields, read into a request. Empty fields stay open.

Knows nothing of components or models; numbers are checked by `request.resolve`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from seedgrid.errors import InputError
from seedgrid.recipe import MAX_STEPS
from seedgrid.request import Request, parse_size
from seedgrid.seeds import parse_seeds


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The texts of the fields, as they were when the button was pressed.

    Attributes:
        more_prompts: One a line; each is painted on every seed as well.
    """

    prompt: str
    seeds: str
    negative: str = ""
    steps: str = ""
    guidance: str = ""
    size: str = ""
    scheduler: str = ""
    model: str = ""
    device: str = ""
    determinism: str = ""
    more_prompts: str = ""


def read_request(asked: Asked) -> Request:
    """Read the fields.

    Raises:
        InputError: What is not a number, a size or a list of seeds, by its field.
    """
    size: dict[str, Any] = {}
    if asked.size.strip():
        size["width"], size["height"] = parse_size(asked.size)
    return Request(
        prompt=asked.prompt,
        seeds=parse_seeds(asked.seeds),
        negative_prompt=asked.negative,
        model=asked.model.strip() or None,
        num_inference_steps=_whole_number(asked.steps),
        guidance_scale=_number(asked.guidance),
        scheduler=asked.scheduler or None,
        determinism=asked.determinism or None,
        **size,
    )


def read_prompts(asked: Asked) -> tuple[str, ...]:
    """Return the prompt and those that are to be painted beside it, each once."""
    more = [line.strip() for line in asked.more_prompts.splitlines() if line.strip()]
    return tuple(dict.fromkeys([asked.prompt, *more]))


def _whole_number(text: str) -> int | None:
    text = text.strip()
    if not text:
        return None
    if not (text.isascii() and text.removeprefix("-").isdigit() and len(text) < 10):
        raise InputError("steps_range", field="steps", value=text[:40], limit=MAX_STEPS)
    return int(text)


def _number(text: str) -> float | None:
    if not text.strip():
        return None
    try:
        return float(text.strip().replace(",", "."))
    except ValueError as error:
        raise InputError("guidance_range", field="guidance", value=text.strip()[:40]) from error
