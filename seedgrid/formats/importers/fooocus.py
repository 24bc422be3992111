"""Settings as Fooocus writes them in its own scheme: JSON under `parameters`, `fooocus_scheme`.

In its other scheme Fooocus writes AUTOMATIC1111's text, which a1111.py reads.

Source: https://github.com/lllyasviel/Fooocus, modules/meta_parser.py
"""

import re
from collections.abc import Mapping

from seedgrid.formats.importers.found import Found, as_list, as_text, read_object

_SCHEME = "metadata_scheme"
_NOTHING = ("", "None", "[]", "Default (model)", "none")


def read(texts: Mapping[str, str]) -> Found | None:
    """Read the settings, or return None when this is not Fooocus's own scheme."""
    # Older forks wrote the same object under another key.
    text = (texts.get("parameters") or texts.get("Comment", "")).strip()
    is_ours = texts.get("fooocus_scheme") == "fooocus" or _SCHEME in text or "base_model" in text
    if not text.startswith("{") or not is_ours:
        return None
    data = read_object(text)
    width, height = _pair(data.get("resolution"))
    loras = [as_list(lora) for lora in as_list(data.get("loras"))]
    names = [as_text(lora[0]) for lora in loras if lora]
    combined = [as_text(value) for key, value in data.items() if key.startswith("lora_combined")]
    # "name : weight", and since 2.4 "switch : name : weight".
    names += [value.split(" : ")[-2] for value in combined if " : " in value]
    return Found(
        tool="Fooocus",
        prompt=data.get("prompt", ""),
        negative_prompt=data.get("negative_prompt", ""),
        seed=data.get("seed"),
        width=width,
        height=height,
        steps=data.get("steps"),
        guidance=data.get("guidance_scale"),
        sampler=as_text(data.get("sampler")),
        schedule=as_text(data.get("scheduler")),
        model=as_text(data.get("base_model")),
        extras=_extras(data),
        loras=tuple(filter(None, names)),
    )


def _pair(value: object) -> tuple[object, object]:
    """Read a resolution from `"(1152, 896)"` or `[1152, 896]`."""
    if isinstance(value, list) and len(value) == 2:
        return value[0], value[1]
    found = re.findall(r"\d{1,6}", as_text(value))
    return (found[0], found[1]) if len(found) == 2 else (None, None)


def _extras(data: Mapping[str, object]) -> tuple[str, ...]:
    names = {
        "styles": "styles",
        "prompt_expansion": "prompt expansion",
        "refiner_model": "refiner",
        "sharpness": "sharpness",
        "adm_guidance": "ADM guidance",
        "freeu": "FreeU",
        "inpaint_mode": "inpainting",
        "clip_skip": "CLIP skip",
    }
    return tuple(
        name
        for key, name in names.items()
        if data.get(key) and str(data[key]).strip() not in _NOTHING
    )
