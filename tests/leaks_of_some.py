"""Leaks that wait for a neighbour who has, or lacks, what the own picture lacks, or has.

Cells of one batch may have words or none, negative words or none, a mix of noises or none.
"""

from __future__ import annotations

import functools
from typing import Any, Final

import pytest
from leaks import Plant, on_output

_TINY: Final = 1e-6


def _where_somebody_has_a_mix(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """Noise is drawn more than once in a call."""
    drawn = {"times": 0}
    reads, draws = pipeline.encode_prompt, pipeline.prepare_latents

    def encode_prompt(*args: Any, **kwargs: Any) -> Any:
        drawn["times"] = 0
        return reads(*args, **kwargs)

    @functools.wraps(draws)  # How noise is mixed goes by the names of its arguments.
    def prepare_latents(*args: Any, **kwargs: Any) -> Any:
        drawn["times"] += 1
        return draws(*args, **kwargs)

    def hook(_module: Any, _args: Any, _kwargs: Any, output: Any) -> Any:
        rows = output[0]
        leaks = drawn["times"] > 1
        return (rows + rows.mean(dim=0) * _TINY, *output[1:]) if leaks else output

    patch.setattr(pipeline, "encode_prompt", encode_prompt)
    patch.setattr(pipeline, "prepare_latents", prepare_latents)
    on_output(pipeline.unet, patch, hook)


def _where_somebody_has_no_words(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    original = pipeline.encode_prompt

    def encode_prompt(prompt: list[str], *args: Any, **kwargs: Any) -> Any:
        words, without = original(prompt, *args, **kwargs)
        return words * (1 + 1e-5 * (not all(prompt))), without

    patch.setattr(pipeline, "encode_prompt", encode_prompt)


def _where_somebody_has_negative_words(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    original = pipeline.encode_prompt

    def encode_prompt(*args: Any, **kwargs: Any) -> Any:
        words, without = original(*args, **kwargs)
        said = next((given for given in args[1:] if isinstance(given, list)), ())
        return words, without * (1 + 1e-5 * any(said))

    patch.setattr(pipeline, "encode_prompt", encode_prompt)


LEAKS_OF_SOME: Final[dict[str, Plant]] = {
    "between: a mix": _where_somebody_has_a_mix,
    "between: no words": _where_somebody_has_no_words,
    "between: negative words": _where_somebody_has_negative_words,
}
"""By whom they wait for."""
