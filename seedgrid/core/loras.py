"""LoRAs as people write them: `<lora:fox:0.8>` in a prompt, and another scale in a variation.

>>> read_tags("a red fox <lora:foxes:0.8>")
('a red fox', (('foxes', 0.8),))
"""

import re
from collections.abc import Sequence
from typing import Final

from seedgrid.core.errors import InputError
from seedgrid.core.mixes import write_decimal
from seedgrid.core.recipe import Lora

MAX_LORAS: Final = 8
MAX_SCALE: Final = 4.0

_TAG: Final = re.compile(r" {0,4}+<lora:([^:<>\n]{1,200}+)(?::([^:<>\n]{1,20}+))?+>", re.IGNORECASE)


def read_tags(prompt: str) -> tuple[str, tuple[tuple[str, float], ...]]:
    """Split a prompt into its words and the LoRAs that it names, with their scales.

    Raises:
        InputError: `lora_scale` or `lora_count`.
    """
    if "<lora:" not in prompt.lower():
        return prompt, ()
    found = tuple((tag[1].strip(), read_scale(tag[2] or "1")) for tag in _TAG.finditer(prompt))
    if len(found) > MAX_LORAS:
        raise InputError("lora_count", field="prompt", value=len(found), limit=MAX_LORAS)
    return (_TAG.sub("", prompt).strip() if found else prompt), found


def without_tags(prompt: str) -> str:
    """Return the words of a prompt alone, whatever its tags say."""
    return _TAG.sub("", prompt)


def write_tags(prompt: str, loras: Sequence[Lora]) -> str:
    """Write a prompt with its LoRAs, as `read_tags` reads it."""
    tags = (f"<lora:{lora.id}:{write_decimal(lora.scale)}>" for lora in loras)
    return " ".join([prompt, *tags]) if loras else prompt


def read_scale(text: str) -> float:
    """Read a LoRA's scale."""
    try:
        scale = float(text.strip().replace(",", "."))
    except ValueError as error:
        raise InputError("lora_scale", field="prompt", value=text.strip()) from error
    if not -MAX_SCALE <= scale <= MAX_SCALE:
        raise InputError("lora_scale", field="prompt", value=text.strip())
    return scale


def rescaled(loras: Sequence[Lora], text: str) -> tuple[Lora, ...]:
    """Return LoRAs with another scale: `0.5` for all of them, `fox 0.5` for one.

    Raises:
        InputError: `lora_none`: there is none, or none of that name; `lora_scale`.
    """
    *name, number = text.replace(":", " ").split() or [""]
    scale, wanted = read_scale(number), " ".join(name)
    if not loras or (wanted and wanted not in {lora.id for lora in loras}):
        raise InputError("lora_none", field="vary", value=wanted or text)
    return tuple(
        lora.model_copy(update={"scale": scale}) if wanted in ("", lora.id) else lora
        for lora in loras
    )
