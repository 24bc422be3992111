"""Settings as NovelAI writes them: `Software`, `Description`, and JSON under `Comment`."""

import re
from collections.abc import Mapping
from typing import Any

from seedgrid.formats.importers.found import Found, as_dict, as_list, as_text, read_object

_TOOL = "NovelAI"
_EXTRAS = {
    "sm": "SMEA",
    "cfg_rescale": "guidance rescale",
    "reference_image_multiple": "vibe transfer",
    "dynamic_thresholding": "decrisper",
    "skip_cfg_above_sigma": "variety",
    "controlnet_model": "ControlNet",
}
_WEIGHT = re.compile(r"\{[^{}]+\}|\[[^\[\]]+\]|\d\.?::")


def read(texts: Mapping[str, str]) -> Found | None:
    """Read the settings, or return None when NovelAI did not write this picture."""
    if texts.get("Software") != _TOOL or "Comment" not in texts:
        return None
    data = read_object(texts["Comment"])
    prompt = as_text(data.get("prompt")) or texts.get("Description", "")
    negative = as_text(data.get("uc"))
    return Found(
        tool=_TOOL,
        prompt=_with_characters(prompt, data.get("v4_prompt")),
        negative_prompt=_with_characters(negative, data.get("v4_negative_prompt")),
        seed=data.get("seed"),
        width=data.get("width"),
        height=data.get("height"),
        steps=data.get("steps"),
        guidance=data.get("scale"),
        sampler=as_text(data.get("sampler")),
        schedule=as_text(data.get("noise_schedule")),
        model=texts.get("Source", "") or "NovelAI Diffusion",
        extras=tuple(name for key, name in _EXTRAS.items() if data.get(key)),
        has_other_weights=_WEIGHT.search(prompt + negative) is not None,
        begins_from_picture=_begins_from_picture(data),
    )


def _with_characters(words: str, value: object) -> str:
    """Put the captions of version 4's characters after the words, as NovelAI shows them."""
    caption = as_dict(as_dict(value).get("caption"))
    characters = [
        as_text(as_dict(character).get("char_caption"))
        for character in as_list(caption.get("char_captions"))
    ]
    parts = [as_text(caption.get("base_caption")) or words, *characters]
    return ", ".join(part for part in parts if part)


def _begins_from_picture(data: Mapping[str, Any]) -> bool:
    request = as_text(data.get("request_type"))
    # Before version 3 the strength was written without any first picture, too.
    is_named = "Img2Img" in request or "Infill" in request
    return is_named or bool(request and data.get("strength"))
