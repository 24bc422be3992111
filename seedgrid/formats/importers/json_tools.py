"""Settings as InvokeAI, SwarmUI, Fooocus and NovelAI write them: mostly JSON, each by other keys.

Source: https://github.com/invoke-ai/InvokeAI, invokeai/app/invocations/metadata.py;
https://github.com/mcmonkeyprojects/SwarmUI, docs/Image Metadata Format.md;
https://github.com/lllyasviel/Fooocus, modules/meta_parser.py
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from seedgrid.core.errors import PictureError
from seedgrid.formats.importers.foreign import (
    ForeignSettings,
    as_dict,
    as_list,
    as_text,
    read_object,
)

_INVOKEAI_EXTRAS: Final = {
    "controlnets": "ControlNet",
    "ipAdapters": "IP-Adapter",
    "t2iAdapters": "T2I-Adapter",
    "refiner_model": "refiner",
    "vae": "VAE",
    "seamless_x": "seamless",
    "seamless_y": "seamless",
    "regions": "regions",
    "ref_images": "reference images",
}
_INVOKEAI_LAYERS: Final = {
    "controlLayers": "control layers",
    "regionalGuidance": "regional guidance",
    "referenceImages": "reference images",
    "layers": "control layers",
}
_INVOKEAI_WEIGHT: Final = re.compile(
    r"\)\s{0,9}[+\-\d]|\w[+\-]{1,4}(?:[\s,]|$)|\.(?:and|blend|swap)\("
)
_SWARMUI_EXTRAS: Final = {
    "controlnetmodel": "ControlNet",
    "refinermodel": "refiner",
    "vae": "VAE",
    "clipstopatlayer": "CLIP skip",
    "ipadapterweight": "IP-Adapter",
    "seamlesstileable": "seamless",
}
_SWARMUI_WEIGHT: Final = re.compile(r"(?<!\\)\([^()]+(?<!\\)\)|<\w{1,40}[:>]")
_FOOOCUS_EXTRAS: Final = {
    "styles": "styles",
    "prompt_expansion": "prompt expansion",
    "refiner_model": "refiner",
    "sharpness": "sharpness",
    "adm_guidance": "ADM guidance",
    "freeu": "FreeU",
    "inpaint_mode": "inpainting",
    "clip_skip": "CLIP skip",
}
_NOTHING: Final = ("", "None", "[]", "Default (model)", "none")
_NOVELAI_EXTRAS: Final = {
    "sm": "SMEA",
    "cfg_rescale": "guidance rescale",
    "reference_image_multiple": "vibe transfer",
    "dynamic_thresholding": "decrisper",
    "skip_cfg_above_sigma": "variety",
    "controlnet_model": "ControlNet",
}
_NOVELAI_WEIGHT: Final = re.compile(r"\{[^{}]+\}|\[[^\[\]]+\]|\d\.?::")


def read_invokeai(texts: Mapping[str, str]) -> ForeignSettings | None:
    """Read `invokeai_metadata`, else None; raise `picture_foreign` for a workflow without it."""
    if texts.get("invokeai_metadata", "null").strip() not in ("null", "{}"):
        return _invokeai(read_object(texts["invokeai_metadata"]))
    if "invokeai_workflow" in texts or "invokeai_graph" in texts:
        reason = "the picture holds InvokeAI's workflow without the settings of its run"
        raise PictureError("picture_foreign", reason=reason)
    return None


def read_swarmui(texts: Mapping[str, str]) -> ForeignSettings | None:
    """Read `parameters` with the JSON object `sui_image_params`; None without it."""
    text = texts.get("parameters", "")
    if "sui_image_params" not in text or not text.lstrip().startswith("{"):
        return None
    data = as_dict(read_object(text).get("sui_image_params"))
    words = as_text(data.get("prompt")) + as_text(data.get("negativeprompt"))
    loras = data.get("loras")
    names = as_list(loras) or as_text(loras).split(",")
    return ForeignSettings(
        tool="SwarmUI",
        prompt=data.get("prompt", ""),
        negative_prompt=data.get("negativeprompt", ""),
        **_numbers(data),
        # Flux models are guided by a scale of their own; their `cfgscale` is 1.
        guidance=data.get("fluxguidancescale") or data.get("cfgscale"),
        sampler=as_text(data.get("sampler") or data.get("comfyuisampler")),
        schedule=as_text(data.get("scheduler") or data.get("comfyuischeduler")),
        model=as_text(data.get("model")),
        mix=((data.get("variationseed"), data.get("variationseedstrength")),),
        is_cpu_noise=True,
        extras=_names(_SWARMUI_EXTRAS, data),
        loras=tuple(as_text(name).strip() for name in names if as_text(name).strip()),
        has_other_weights=_SWARMUI_WEIGHT.search(words) is not None,
        has_second_pass=data.get("refinerupscale", 1) not in (1, "1"),
        begins_from_picture="initimagecreativity" in data or "initimage" in data,
    )


def read_fooocus(texts: Mapping[str, str]) -> ForeignSettings | None:
    """Read Fooocus's JSON under `parameters`, else None; a1111.py reads its other scheme."""
    # Older forks wrote the same object under another key.
    text = (texts.get("parameters") or texts.get("Comment", "")).strip()
    is_named = texts.get("fooocus_scheme") == "fooocus"
    if not text.startswith("{") or not (
        is_named or "metadata_scheme" in text or "base_model" in text
    ):
        return None
    data = read_object(text)
    width, height = _pair(data.get("resolution"))
    loras = [as_list(lora) for lora in as_list(data.get("loras"))]
    names = [as_text(lora[0]) for lora in loras if lora]
    combined = [as_text(value) for key, value in data.items() if key.startswith("lora_combined")]
    # "name : weight", and since 2.4 "switch : name : weight".
    names += [value.split(" : ")[-2] for value in combined if " : " in value]
    extras = {key: data.get(key) for key in _FOOOCUS_EXTRAS}
    used = {key: value for key, value in extras.items() if str(value).strip() not in _NOTHING}
    return ForeignSettings(
        tool="Fooocus",
        prompt=data.get("prompt", ""),
        negative_prompt=data.get("negative_prompt", ""),
        **_numbers(data) | {"width": width, "height": height},
        guidance=data.get("guidance_scale"),
        sampler=as_text(data.get("sampler")),
        schedule=as_text(data.get("scheduler")),
        model=as_text(data.get("base_model")),
        extras=_names(_FOOOCUS_EXTRAS, used),
        loras=tuple(filter(None, names)),
    )


def read_novelai(texts: Mapping[str, str]) -> ForeignSettings | None:
    """Read `Software`, `Description`, and JSON under `Comment`; None if NovelAI is not named."""
    if texts.get("Software") != "NovelAI" or "Comment" not in texts:
        return None
    data = read_object(texts["Comment"])
    prompt = as_text(data.get("prompt")) or texts.get("Description", "")
    negative = as_text(data.get("uc"))
    request = as_text(data.get("request_type"))
    # Before version 3 the strength was written without a first picture, too.
    has_start = "Img2Img" in request or "Infill" in request or (request and data.get("strength"))
    return ForeignSettings(
        tool="NovelAI",
        prompt=_with_characters(prompt, data.get("v4_prompt")),
        negative_prompt=_with_characters(negative, data.get("v4_negative_prompt")),
        **_numbers(data),
        guidance=data.get("scale"),
        sampler=as_text(data.get("sampler")),
        schedule=as_text(data.get("noise_schedule")),
        model=texts.get("Source", "") or "NovelAI Diffusion",
        extras=_names(_NOVELAI_EXTRAS, data),
        has_other_weights=_NOVELAI_WEIGHT.search(prompt + negative) is not None,
        begins_from_picture=bool(has_start),
    )


def _numbers(data: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers that these tools write under the names of `ForeignSettings`."""
    return {name: data.get(name) for name in ("seed", "width", "height", "steps")}


def _names(extras: Mapping[str, str], data: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(name for key, name in extras.items() if data.get(key))


def _invokeai(data: dict[str, Any]) -> ForeignSettings:
    model = as_dict(data.get("model"))
    loras = [as_dict(lora) for lora in as_list(data.get("loras"))]
    extras = [*_names(_INVOKEAI_EXTRAS, data)]
    for part in ("canvas_v2_metadata", "control_layers"):
        extras += _names(_INVOKEAI_LAYERS, as_dict(data.get(part)))
    if data.get("clip_skip"):
        extras.append("CLIP skip")
    if as_text(data.get("positive_style_prompt")) not in ("", as_text(data.get("positive_prompt"))):
        extras.append("style prompt")
    scheduler, mode = as_text(data.get("scheduler")), as_text(data.get("generation_mode"))
    words = as_text(data.get("positive_prompt")) + as_text(data.get("negative_prompt"))
    return ForeignSettings(
        tool="InvokeAI",
        prompt=data.get("positive_prompt", ""),
        negative_prompt=data.get("negative_prompt") or "",
        **_numbers(data),
        # Flux models are guided by `guidance`; their `cfg_scale` is 1.
        guidance=data.get("guidance") or data.get("cfg_scale"),
        sampler=scheduler.removesuffix("_k"),  # `dpmpp_2m_k` has Karras' noise levels.
        schedule="karras" if scheduler.endswith("_k") else "",
        model=_model_name(model),
        is_cpu_noise=data.get("rand_device") == "cpu",
        extras=tuple(extras),
        loras=tuple(
            _model_name(as_dict(lora.get("model") or lora.get("lora"))) or "LoRA" for lora in loras
        ),
        has_other_weights=_INVOKEAI_WEIGHT.search(words) is not None,
        has_second_pass=bool(data.get("hrf_enabled")),
        begins_from_picture="img2img" in mode or "paint" in mode or bool(data.get("init_image")),
    )


def _model_name(model: dict[str, Any]) -> str:
    return as_text(model.get("name") or model.get("model_name"))


def _pair(value: object) -> tuple[object, object]:
    """Read Fooocus's resolution: `"(1152, 896)"` or `[1152, 896]`."""
    if isinstance(value, list) and len(value) == 2:
        return value[0], value[1]
    sides = re.findall(r"\d{1,6}", as_text(value))
    return (sides[0], sides[1]) if len(sides) == 2 else (None, None)


def _with_characters(words: str, value: object) -> str:
    """Put the captions of NovelAI 4's characters after the words, as NovelAI shows them."""
    caption = as_dict(as_dict(value).get("caption"))
    characters = [
        as_text(as_dict(character).get("char_caption"))
        for character in as_list(caption.get("char_captions"))
    ]
    parts = [as_text(caption.get("base_caption")) or words, *characters]
    return ", ".join(part for part in parts if part)
