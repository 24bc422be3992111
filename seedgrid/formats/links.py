"""A recipe in a link: the words and settings as URL parameters, and back as a request, strictly.

The names are those of the command line. What a link says is typed by a stranger: values are
checked one by one, and a model can be named but not given as a path. Knows no web server.

    >>> read_link("prompt=a+red+fox&seeds=0-3").seeds
    (0, 1, 2, 3)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final, get_args
from urllib.parse import parse_qsl, urlencode

from seedgrid.core.errors import InputError
from seedgrid.core.names import is_model_name, is_revision
from seedgrid.core.recipe import Arithmetic, NoiseShare, Recipe
from seedgrid.core.request import Request, check_prompt, parse_size
from seedgrid.core.seeds import check_seed, parse_seeds

MAX_CHARACTERS: Final = 64_000
MAX_SHARES: Final = 256
MAX_MIX_CHARACTERS: Final = 420 * MAX_SHARES

_KEYS: Final = frozenset(
    {
        "prompt",
        "negative",
        "seeds",
        "size",
        "steps",
        "guidance",
        "scheduler",
        "model",
        "dtype",
        "width",
        "determinism",
        "mix",
        "arithmetic",
    }
)
# As many decimals as the smallest number has; none is lost on the way.
_DECIMAL: Final = re.compile(r"\d{1,6}(?:\.\d{1,400})?", re.ASCII)
_SHARE: Final = re.compile(r"(\d{1,10}):(0?\.\d{1,400}|1(?:\.0+)?)", re.ASCII)


def link_query(recipe: Recipe) -> str:
    """Write a recipe as the query of a link, all that a page can fill in.

    Args:
        recipe: Its LoRAs and the digest of its model stay out: they are not typed, but installed.

    Returns:
        For example `prompt=a+red+fox&seeds=7&size=512x512&…`, without a question mark.
    """
    fields = {
        "prompt": recipe.prompt,
        "negative": recipe.negative_prompt,
        "seeds": str(recipe.seed),
        "size": f"{recipe.width}x{recipe.height}",
        "steps": str(recipe.num_inference_steps),
        "guidance": _digits(recipe.guidance_scale),
        "scheduler": recipe.scheduler,
        "model": _model_name(recipe),
        "dtype": recipe.dtype,
        "width": str(recipe.lock_width),
        "determinism": recipe.determinism,
        "mix": write_mix(recipe.noise_mix),
        "arithmetic": recipe.arithmetic if recipe.is_portable else "",
    }
    return urlencode({name: value for name, value in fields.items() if value})


def read_link(query: str) -> Request | None:
    """Read the query of a link.

    Args:
        query: What follows the question mark. Names that are not ours are somebody else's
            (hosts add their own) and are left alone.

    Returns:
        The request, not yet resolved; None when the link holds nothing of ours.

    Raises:
        InputError: By field: a value that cannot be, a name given twice, a link that is too long.
    """
    if len(query) > MAX_CHARACTERS:
        raise InputError("link_invalid", field="prompt", value="link", reason="it is too long")
    fields = _fields(query)
    if not fields:
        return None
    size = parse_size(fields["size"]) if "size" in fields else (None, None)
    request = Request(
        prompt=check_prompt(fields.get("prompt", ""), field="prompt"),
        negative_prompt=check_prompt(fields.get("negative", ""), field="negative"),
        width=size[0],
        height=size[1],
        num_inference_steps=_whole(fields, "steps"),
        guidance_scale=_decimal(fields, "guidance"),
        scheduler=fields.get("scheduler"),
        model=_model(fields),
        dtype=fields.get("dtype"),
        lock_width=_whole(fields, "width"),
        determinism=fields.get("determinism"),
        noise_mix=read_mix(fields.get("mix", "")),
        portable=_is_portable(fields),
    )
    if "seeds" in fields:
        request = replace(request, seeds=parse_seeds(fields["seeds"]))
    return request


def _is_portable(fields: Mapping[str, str]) -> bool:
    wanted = fields.get("arithmetic", "native")
    if wanted not in get_args(Arithmetic):
        raise InputError(
            "link_invalid", field="arithmetic", value=wanted, reason="unknown arithmetic"
        )
    return wanted != "native"


def write_mix(mix: Sequence[NoiseShare]) -> str:
    """Write the noise of other seeds as people can: `"5:0.1,7:0.3"`; empty for none."""
    return ",".join(f"{share.seed}:{_digits(share.weight)}" for share in mix)


def read_mix(text: str) -> tuple[NoiseShare, ...]:
    """Read what `write_mix` wrote, every digit.

    Args:
        text: `SEED:WEIGHT`, parted by commas, mixed in this order.

    Raises:
        InputError: By the field `mix`, or `seeds` for a seed that is none.
    """
    if len(text) > MAX_MIX_CHARACTERS:
        raise _invalid("mix", text, f"use at most {MAX_MIX_CHARACTERS} characters")
    parts = text.replace(" ", "").split(",") if text.strip() else []
    if len(parts) > MAX_SHARES:
        raise _invalid("mix", text, f"at most {MAX_SHARES} seeds can be mixed")
    return tuple(_share(part) for part in parts)


def _fields(query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError as error:
        raise _invalid("link", query, "it cannot be read") from error
    fields: dict[str, str] = {}
    for name, value in pairs:
        if name in fields:
            raise _invalid(name, value, "it is given twice")
        if name in _KEYS:
            fields[name] = value
    return fields


def _whole(fields: dict[str, str], name: str) -> int | None:
    if name not in fields:
        return None
    if not re.fullmatch(r"\d{1,6}", fields[name], re.ASCII):
        raise _invalid(name, fields[name], "it is not a whole number")
    return int(fields[name])


def _decimal(fields: dict[str, str], name: str) -> float | None:
    if name not in fields:
        return None
    if not _DECIMAL.fullmatch(fields[name]):
        raise _invalid(name, fields[name], "it is not a number")
    return float(fields[name])


def _model_name(recipe: Recipe) -> str:
    model = recipe.model
    return model.id if model.revision == "local" else f"{model.id}@{model.revision}"


def _model(fields: dict[str, str]) -> str | None:
    if "model" not in fields:
        return None
    name, at, revision = fields["model"].partition("@")
    if not is_model_name(name) or (at and not is_revision(revision)):
        raise _invalid("model", fields["model"], "a link names a model, it holds no path")
    return fields["model"]


def _share(text: str) -> NoiseShare:
    match = _SHARE.fullmatch(text)
    weight = float(match[2]) if match else 0.0
    if match is None or weight == 0:
        raise _invalid("mix", text, "write SEED:WEIGHT, the weight above 0 and at most 1")
    return NoiseShare(seed=check_seed(int(match[1])), weight=weight)


def _digits(value: float) -> str:
    """Write a number so that it comes back as the very same: no exponent, no digit too few."""
    return f"{Decimal(repr(value)):f}"


def _invalid(name: str, value: str, reason: str) -> InputError:
    return InputError("link_invalid", field=name, value=value[:80], reason=f"{name}: {reason}")
