"""Settings as InvokeAI writes them: `invokeai_metadata` (3 and newer), `sd-metadata`, `Dream` (2).

Source: https://github.com/invoke-ai/InvokeAI, invokeai/app/invocations/metadata.py
"""

import re
from collections.abc import Mapping
from typing import Any

from seedgrid.core.errors import PictureError
from seedgrid.formats.importers.found import Found, as_dict, as_list, as_text, read_object

_TOOL = "InvokeAI"
_EXTRAS = {
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
_LAYERS = {
    "controlLayers": "control layers",
    "regionalGuidance": "regional guidance",
    "referenceImages": "reference images",
    "layers": "control layers",
}
_WORKFLOWS = ("invokeai_workflow", "invokeai_graph")
_WEIGHT = re.compile(r"\)\s{0,9}[+\-\d]|\w[+\-]{1,4}(?:[\s,]|$)|\.(?:and|blend|swap)\(")


def read(texts: Mapping[str, str]) -> Found | None:
    """Read the settings, or return None when InvokeAI did not write this picture."""
    if texts.get("invokeai_metadata", "null").strip() not in ("null", "{}"):
        return _current(read_object(texts["invokeai_metadata"]))
    if any(name in texts for name in _WORKFLOWS):
        reason = "the picture holds InvokeAI's workflow without the settings of its run"
        raise PictureError("picture_foreign", reason=reason)
    if "sd-metadata" in texts:
        return _version_2(read_object(texts["sd-metadata"]))
    if "Dream" in texts:
        return _command_line(texts["Dream"])
    return None


def _current(data: dict[str, Any]) -> Found:
    model = as_dict(data.get("model"))
    loras = [as_dict(lora) for lora in as_list(data.get("loras"))]
    extras = [name for key, name in _EXTRAS.items() if data.get(key)]
    for part in ("canvas_v2_metadata", "control_layers"):
        layers = as_dict(data.get(part))
        extras += [name for key, name in _LAYERS.items() if layers.get(key)]
    if data.get("clip_skip"):
        extras.append("CLIP skip")
    if as_text(data.get("positive_style_prompt")) not in ("", as_text(data.get("positive_prompt"))):
        extras.append("style prompt")
    scheduler, mode = as_text(data.get("scheduler")), as_text(data.get("generation_mode"))
    words = as_text(data.get("positive_prompt")) + as_text(data.get("negative_prompt"))
    return Found(
        tool=_TOOL,
        prompt=data.get("positive_prompt", ""),
        negative_prompt=data.get("negative_prompt") or "",
        seed=data.get("seed"),
        width=data.get("width"),
        height=data.get("height"),
        steps=data.get("steps"),
        # Flux models are guided by `guidance`; their `cfg_scale` is 1.
        guidance=data.get("guidance") or data.get("cfg_scale"),
        sampler=scheduler.removesuffix("_k"),  # `dpmpp_2m_k` has Karras' noise levels.
        schedule="karras" if scheduler.endswith("_k") else "",
        model=as_text(model.get("name") or model.get("model_name")),
        is_cpu_noise=data.get("rand_device") == "cpu",
        extras=tuple(extras),
        loras=tuple(_name_of(lora) for lora in loras),
        has_other_weights=_WEIGHT.search(words) is not None,
        has_second_pass=bool(data.get("hrf_enabled")),
        begins_from_picture="img2img" in mode or "paint" in mode or bool(data.get("init_image")),
    )


def _name_of(lora: dict[str, Any]) -> str:
    model = as_dict(lora.get("model") or lora.get("lora"))
    return as_text(model.get("name") or model.get("model_name")) or "LoRA"


def _version_2(data: dict[str, Any]) -> Found:
    image = as_dict(data.get("image"))
    prompt = image.get("prompt", "")
    if isinstance(prompt, list):
        prompt = ", ".join(as_text(as_dict(part).get("prompt")) for part in prompt)
    words, negative = _without_brackets(as_text(prompt))
    mixes = [as_dict(mix) for mix in as_list(image.get("variations"))]
    return Found(
        tool=_TOOL,
        prompt=words,
        negative_prompt=negative,
        seed=image.get("seed"),
        width=image.get("width"),
        height=image.get("height"),
        steps=image.get("steps"),
        guidance=image.get("cfg_scale"),
        sampler=as_text(image.get("sampler")),
        model=as_text(data.get("model_weights")),
        mix=tuple((mix.get("seed"), mix.get("weight")) for mix in mixes),
        extras=tuple(name for name in ("perlin", "threshold", "seamless") if image.get(name)),
        begins_from_picture=image.get("type") == "img2img",
    )


def _without_brackets(prompt: str) -> tuple[str, str]:
    """Part the words from the negative ones, which version 2 wrote in square brackets."""
    negatives = re.findall(r"\[([^\[\]]*)\]", prompt)
    return re.sub(r"\s{0,9}\[[^\[\]]*\]", "", prompt).strip(), ", ".join(negatives)


def _command_line(text: str) -> Found | None:
    """Read the command that made a picture: `"a red fox" -s50 -S42 -W512 -H512 -C7.5 -Ak_lms`."""
    match = re.match(r'\s*"((?:\\.|[^"\\])*)"(.*)', text, re.DOTALL)
    if match is None:
        return None
    words, negative = _without_brackets(match[1].replace('\\"', '"'))
    switches = dict(re.findall(r"(?:^|\s)-([sSWHCA])\s*([\w.]+)", match[2]))
    return Found(
        tool=_TOOL,
        prompt=words,
        negative_prompt=negative,
        seed=switches.get("S"),
        width=switches.get("W"),
        height=switches.get("H"),
        steps=switches.get("s"),
        guidance=switches.get("C"),
        sampler=switches.get("A", ""),
    )
