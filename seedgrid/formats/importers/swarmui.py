"""Settings as SwarmUI writes them: `parameters` with the JSON object `sui_image_params`.

Source: https://github.com/mcmonkeyprojects/SwarmUI, docs/Image Metadata Format.md
"""

import re
from collections.abc import Mapping

from seedgrid.formats.importers.found import Found, as_dict, as_list, as_text, read_object

_EXTRAS = {
    "controlnetmodel": "ControlNet",
    "refinermodel": "refiner",
    "vae": "VAE",
    "clipstopatlayer": "CLIP skip",
    "ipadapterweight": "IP-Adapter",
    "seamlesstileable": "seamless",
}
_WEIGHT = re.compile(r"(?<!\\)\([^()]+(?<!\\)\)|<\w{1,40}[:>]")


def read(texts: Mapping[str, str]) -> Found | None:
    """Read the settings, or return None when SwarmUI did not write this picture."""
    text = texts.get("parameters", "")
    if "sui_image_params" not in text or not text.lstrip().startswith("{"):
        return None
    data = as_dict(read_object(text).get("sui_image_params"))
    words = as_text(data.get("prompt")) + as_text(data.get("negativeprompt"))
    loras = data.get("loras")
    names = as_list(loras) or as_text(loras).split(",")
    return Found(
        tool="SwarmUI",
        prompt=data.get("prompt", ""),
        negative_prompt=data.get("negativeprompt", ""),
        seed=data.get("seed"),
        width=data.get("width"),
        height=data.get("height"),
        steps=data.get("steps"),
        # Flux models are guided by a scale of their own; their `cfgscale` is 1.
        guidance=data.get("fluxguidancescale") or data.get("cfgscale"),
        sampler=as_text(data.get("sampler") or data.get("comfyuisampler")),
        schedule=as_text(data.get("scheduler") or data.get("comfyuischeduler")),
        model=as_text(data.get("model")),
        mix=((data.get("variationseed"), data.get("variationseedstrength")),),
        is_cpu_noise=True,
        extras=tuple(name for key, name in _EXTRAS.items() if data.get(key)),
        loras=tuple(as_text(name).strip() for name in names if as_text(name).strip()),
        has_other_weights=_WEIGHT.search(words) is not None,
        has_second_pass=data.get("refinerupscale", 1) not in (1, "1"),
        begins_from_picture="initimagecreativity" in data or "initimage" in data,
    )
