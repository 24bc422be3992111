"""What was typed into the page's fields, read into a request. Empty fields stay open.

Knows nothing of components or models; numbers are checked by `request.resolve`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from seedgrid.core.errors import InputError
from seedgrid.core.prompts import GUIDE_SUFFIXES
from seedgrid.core.recipe import MAX_STEPS, NoiseShare
from seedgrid.core.request import Request, parse_size
from seedgrid.core.seeds import MAX_SEEDS_AT_ONCE, parse_seeds
from seedgrid.formats.links import read_mix

AUTO: Final = "auto"
"""What a list offers first: as the model's card says."""

_MAX_NUMBER_CHARACTERS: Final = 400

NUM_VARIATIONS: Final = len(GUIDE_SUFFIXES)
"""The page has so many fields; a payload with more is nobody's click."""


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


@dataclass(frozen=True, kw_only=True)
class Varied:
    """What a round around the picked picture is told.

    Attributes:
        vary: What is appended to its prompt, a field each.
    """

    vary: tuple[str, ...] = ()
    device: str = ""


_ASKED: Final = TypeAdapter(Asked)
_VARIED: Final = TypeAdapter(Varied)


def read_asked(payload: object) -> Asked:
    """Read what the browser says its fields show; nothing of a payload that is not ours.

    Args:
        payload: A JSON object; a field that is not in it stays as it is in `Asked`.
    """
    try:
        return _ASKED.validate_json(str(payload))
    except ValidationError:
        return Asked()


def read_varied(payload: object) -> Varied:
    """Read what a round around the picked picture is told; nothing of one that is not ours."""
    try:
        varied = _VARIED.validate_json(str(payload))
    except ValidationError:
        return Varied()
    return varied if len(varied.vary) <= NUM_VARIATIONS else Varied()


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
        if len(text) > _MAX_NUMBER_CHARACTERS:
            raise ValueError("too long")  # noqa: TRY301 (one sentence for whatever is no number)
        return float(text.strip().replace(",", "."))
    except ValueError as error:
        raise InputError("guidance_range", field="guidance", value=text.strip()[:40]) from error
