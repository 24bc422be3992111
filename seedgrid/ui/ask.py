"""What was typed into the page's fields, read into a request. Empty fields stay open.

Knows nothing of components or models; numbers are checked by `request.resolve`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from seedgrid.errors import InputError
from seedgrid.links import read_mix
from seedgrid.recipe import MAX_STEPS, NoiseShare
from seedgrid.request import Request, parse_size
from seedgrid.seeds import MAX_SEEDS_AT_ONCE, parse_seeds

AUTO: Final = "auto"
"""What a list offers first: as the model's card says."""

_FIELDS: Final = TypeAdapter(dict[str, str | bool | list[str]])


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The texts of the fields, as they were when the button was pressed.

    Attributes:
        mix: Other seeds whose noise is mixed in, as `links.write_mix` writes them.
        more_prompts: One a line; each is painted on every seed as well.
        turbo: Whether what is left open is answered for speed.
    """

    prompt: str = ""
    seeds: str = ""
    negative: str = ""
    steps: str = ""
    guidance: str = ""
    size: str = ""
    scheduler: str = ""
    model: str = ""
    device: str = ""
    determinism: str = ""
    dtype: str = ""
    mix: str = ""
    more_prompts: str = ""
    turbo: bool = False


def read_fields(letter: object) -> dict[str, Any]:
    """Read what the browser says its fields show, by name; nothing when it is not ours.

    Args:
        letter: A JSON object of texts, of lists of texts, and of booleans.
    """
    try:
        found = _FIELDS.validate_json(letter if isinstance(letter, str) else "")
    except ValidationError:
        return {}
    return found


def asked_of(given: Mapping[str, Any]) -> Asked:
    """Name the fields' values; one that is not there stays as it is in `Asked`."""
    known = {field.name: type(field.default) for field in fields(Asked)}
    return Asked(
        **{name: given[name] for name in known if isinstance(given.get(name), known[name])}
    )


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
        scheduler=_chosen(asked.scheduler),
        determinism=asked.determinism or None,
        dtype=_chosen(asked.dtype),
        noise_mix=_mix(asked.mix),
        **size,
    )


def read_prompts(asked: Asked) -> tuple[str, ...]:
    """Return the prompt and those that are to be painted beside it, each once.

    Raises:
        InputError: `pictures_count`: the table would have more cells than one run may.
    """
    more = [line.strip() for line in asked.more_prompts.splitlines() if line.strip()]
    prompts = tuple(dict.fromkeys([asked.prompt, *more]))
    check_count(len(prompts) * len(parse_seeds(asked.seeds)), field="more-prompts")
    return prompts


def check_count(num_pictures: int, *, field: str) -> None:
    """Refuse more pictures than one run may paint.

    Raises:
        InputError: `pictures_count`.
    """
    if num_pictures > MAX_SEEDS_AT_ONCE:
        limit = MAX_SEEDS_AT_ONCE
        raise InputError("pictures_count", field=field, value=num_pictures, limit=limit)


def _chosen(text: str) -> str | None:
    return None if text in ("", AUTO) else text


def _mix(text: str) -> tuple[NoiseShare, ...]:
    try:
        return read_mix(text)
    except InputError as error:
        raise InputError("mix_text", field="mix", value=text.strip()[:40]) from error


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
