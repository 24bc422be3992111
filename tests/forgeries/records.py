"""What can be written into the recipe, the passport and the record of an honest picture."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from tests.forgeries.files import Named
from tests.forgeries.originals import Original

_NOBODY: Final = "ab" * 32

OTHER_RECIPES: Final[dict[str, dict[str, Any]]] = {
    "another seed": {"seed": 4_000_000_000},
    "the next seed": {"seed": 1},
    "other words": {"prompt": "a ship in a storm"},
    "a word more": {"prompt": "a red fox, artsy"},
    "no words": {"prompt": ""},
    "other negative words": {"negative_prompt": "blurry"},
    "one step more": {"num_inference_steps": 4},
    "one step less": {"num_inference_steps": 2},
    "another guidance": {"guidance_scale": 7.4},
    "no guidance": {"guidance_scale": 1.0},
    "guidance a hair stronger": {"guidance_scale": 7.5000001},
    **{f"scheduler {name}": {"scheduler": name} for name in ("Euler", "Euler a", "DDIM", "UniPC")},
    "half the width": {"width": 32},
    "a larger size": {"width": 128, "height": 128},
    "a width of two": {"lock_width": 2},
    "a width of one": {"lock_width": 1},
    "a width of eight": {"lock_width": 8},
    "seeded": {"determinism": "seeded"},
    "determinism off": {"determinism": "off"},
    "another format": {"dtype": "bfloat16"},
    "portable": {"arithmetic": "portable-1"},
    "a mix": {"noise_mix": [{"seed": 5, "weight": 0.01}]},
    "a mix of next to nothing": {"noise_mix": [{"seed": 5, "weight": 1e-12}]},
    "a mix with itself": {"noise_mix": [{"seed": 0, "weight": 0.5}]},
    "words that nobody typed": {"typed_prompt": "the king himself"},
    "weighed words": {"weights": True},
    "weighed words with brackets": {"weights": True, "prompt": "a (red:1.3) fox"},
}
"""Whether it can be painted, and what comes out, decides what is right."""

IMPOSSIBLE_RECIPES: Final[dict[str, dict[str, Any]]] = {
    "a scheduler that there is not": {"scheduler": "Wishful"},
    "a scheduler of another family": {"scheduler": "Flow Euler"},
    "other weights": {"model": {"id": "bundled", "revision": "local", "weights_sha256": _NOBODY}},
    "nobody's model": {"model": {"id": "x/y", "revision": "local", "weights_sha256": _NOBODY}},
    "a model by its path": {
        "model": {"id": "../../etc", "revision": "local", "weights_sha256": _NOBODY}
    },
    "a LoRA that there is not": {"loras": [{"id": "x", "weights_sha256": _NOBODY, "scale": 1.0}]},
    "a start that there is not": {"start": _NOBODY, "strength": 0.5},
    "no steps": {"num_inference_steps": 0},
    "a million steps": {"num_inference_steps": 1_000_000},
    "a seed of 2**32": {"seed": 2**32},
    "a seed below zero": {"seed": -1},
    "a seed that is text": {"seed": "0"},
    "a seed that is yes": {"seed": True},
    "an odd size": {"width": 63, "height": 63},
    "a huge size": {"width": 100_000},
    "a format that there is not": {"dtype": "float64"},
    "a mix of no weight": {"noise_mix": [{"seed": 5, "weight": 0}]},
    "a field that there is not": {"author": "me"},
    "a control character": {"prompt": "a fox\x07"},
    "a word of another kind": {"prompt": ["a fox"]},
    "arithmetic that there is not": {"arithmetic": "portable-9"},
}

ROUNDING: Final[dict[str, dict[str, Any]]] = {
    "another torch": {"torch": "2.8.0"},
    "another diffusers": {"diffusers": "0.30.0"},
    "another transformers": {"transformers": "4.50.0"},
    "another processor": {"device_name": "Intel(R) Xeon(R)"},
    "another driver": {"driver": "999.9"},
}
"""Differences of the passport that may round otherwise and cannot be restored here."""

NOT_ROUNDING: Final[dict[str, dict[str, Any]]] = {
    "another Python": {"python": "2.7.0"},
    "a field that there is not": {"nonsense": "yes"},
    "a torch that is no version": {"torch": "mine"},
    "a layout that there is not": {"memory_format": "sideways"},
    "a precision that there is not": {"precision": {"nonsense": "high"}},
    "an offload that there is not": {"offload": "to the moon"},
    "another SeedGrid": {"seedgrid": "0.0.1"},
    "attention that there is not": {"attention": ""},
    "threads not told": {"threads": 0},
    "threads beyond all": {"threads": 10**9},
}
"""Nothing of this makes an edit "close"."""

RESTORED: Final[dict[str, dict[str, Any]]] = {
    "three threads": {"threads": 3},
    "two threads": {"threads": 2},
    "slices": {"vae_slicing": True},
    "another layout": {"memory_format": "channels_last"},
    "another limit": {"instruction_limits": {"ONEDNN_MAX_CPU_ISA": "AVX2"}},
    "a limit that there is not": {"instruction_limits": {"MADE_UP": "AVX2"}},
}
"""What can be set here again, or means nothing: it excuses no edit."""


def records_of_their_own(it: Original) -> Iterator[Named]:
    """Records that cannot be read, or that say two things; all are impossible."""
    text = json.dumps(it.record)
    recipe = json.dumps(it.record["recipe"])
    for name, other in {
        "no JSON": "yes",
        "cut off": text[:-9],
        "a list": f"[{text}]",
        "an empty one": "{}",
        "null": "null",
        "a text more behind it": text + "{}",
        "not a number in it": text.replace('"passport": {', '"passport": {"x": NaN, ', 1),
        "very deep": '{"format":' + "[" * 9000,
        "a longer one than is read": text[:-1] + ', "x": "' + "y" * 300_000 + '"}',
        "two recipes": text.replace('"recipe":', f'"recipe": {recipe}, "recipe":', 1),
        "two seeds": text.replace('"seed":', '"seed": 99, "seed":', 1),
        "two prompts": text.replace('"prompt":', '"prompt": "a ship", "prompt":', 1),
        "two digests": text[:-1] + f', "pixels_sha256": "{it.record["pixels_sha256"]}"}}',
        "two passports": text.replace('"passport":', '"passport": {}, "passport":', 1),
        "two threads": text.replace('"threads":', '"threads": 7, "threads":', 1),
    }.items():
        yield f"record: {name}", it.text_is(other)
    for name, changes in {
        "another format": {"format": 2},
        "no format": {"format": None},
        "a field that there is not": {"extra": 1},
        "no recipe": {"recipe": None},
        "no lineage": {"lineage": None},
        "no digest": {"pixels_sha256": ""},
        "a digest in capitals": {"pixels_sha256": it.record["pixels_sha256"].upper()},
        "a passport that is text": {"passport": "the best"},
        "threads that are text": {"passport": it.record["passport"] | {"threads": "two"}},
    }.items():
        yield f"record: {name}", it.with_record(**changes)
