"""The texts in a picture for other programs: `parameters`, and the mark of generated pictures.

AUTOMATIC1111-style readers understand `parameters`. The mark is XMP with IPTC's digital source
type; it contains no user text, so nothing is escaped.

Source: https://cv.iptc.org/newscodes/digitalsourcetype/; XMP specification, part 3, 1.1.5 (PNG)
"""

import json
import re
from typing import Final

from seedgrid.core.prompts import write_tags
from seedgrid.core.recipe import Recipe

PARAMETERS_KEY: Final = "parameters"
"""The name of the text in a PNG file."""

MARK_KEY: Final = "XML:com.adobe.xmp"
"""The name of the text with XMP."""

_SOURCE_TYPES: Final = "http://cv.iptc.org/newscodes/digitalsourcetype/"
_MARK: Final = (
    '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>'
    '<x:xmpmeta xmlns:x="adobe:ns:meta/">'
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    '<rdf:Description rdf:about=""'
    ' xmlns:Iptc4xmpExt="http://iptc.org/std/Iptc4xmpExt/2008-02-29/"'
    ' Iptc4xmpExt:DigitalSourceType="{kind}"/>'
    '</rdf:RDF></x:xmpmeta><?xpacket end="r"?>'
)

_VERSION: Final = re.compile(r", Version: SeedGrid [\w.+-]{1,40}\Z")


def parameters_text(recipe: Recipe) -> str:
    """Return the recipe in the format of AUTOMATIC1111.

    Source:
        https://github.com/AUTOMATIC1111/stable-diffusion-webui, modules/infotext_utils.py
    """
    from seedgrid import __version__

    settings = {
        "Steps": recipe.num_inference_steps,
        "Sampler": recipe.scheduler,
        "CFG scale": f"{recipe.guidance_scale:g}",
        "Seed": recipe.seed,
        "Size": f"{recipe.width}x{recipe.height}",
        "Model hash": recipe.model.weights_sha256[:10],
        "Model": recipe.model.id,
        **_noise_settings(recipe),
        **(
            {"Denoising strength": f"{recipe.strength:g}"}
            if recipe.start and not recipe.upscaler
            else {}
        ),
        "RNG": "CPU",
        "Version": f"SeedGrid {__version__}",
    }
    lines = [write_tags(_changing(recipe), recipe.loras)]
    if recipe.negative_prompt:
        lines.append(f"Negative prompt: {recipe.negative_prompt}")
    lines.append(", ".join(f"{name}: {_quoted(value)}" for name, value in settings.items()))
    return "\n".join(lines)


def mark_text(*, has_start: bool) -> str:
    """Return the XMP packet that marks a picture as generated.

    Args:
        has_start: Whether it began from another picture, which may be a photograph.
    """
    return _MARK.format(kind=source_type(has_start=has_start))


def source_type(*, has_start: bool) -> str:
    """Return the address of IPTC's digital source type of a picture, as in `mark_text`."""
    made_of = "compositeWithTrainedAlgorithmicMedia" if has_start else "trainedAlgorithmicMedia"
    return f"{_SOURCE_TYPES}{made_of}"


def without_version(text: str) -> str:
    """Return a `parameters` text without SeedGrid's release."""
    return _VERSION.sub("", text)


def _noise_settings(recipe: Recipe) -> dict[str, object]:
    """Return the noise mix: one seed in AUTOMATIC1111's terms, several in our own."""
    shares = recipe.noise_mix
    if len(shares) == 1:
        return {"Variation seed": shares[0].seed, "Variation seed strength": shares[0].weight}
    mix = ", ".join(f"{share.seed}: {share.weight!r}" for share in shares)
    return {"Noise mix": mix} if mix else {}


def _changing(recipe: Recipe) -> str:
    """Return the prompt; with held steps as `[parent's prompt:prompt:steps]`.

    Prompts with brackets or colons, and regions, cannot be written so.

    Source:
        https://github.com/AUTOMATIC1111/stable-diffusion-webui/wiki/Features#prompt-editing
    """
    parent, own = recipe.parent, recipe.prompt
    if parent is None or recipe.mask or parent.prompt == own:
        return own
    if set("[]():|\\") & set(parent.prompt + own):
        return own
    return f"[{parent.prompt}:{own}:{recipe.held_steps}]"


def _quoted(value: object) -> str:
    """Quote what would break the list of settings, as AUTOMATIC1111 does."""
    text = str(value)
    needs_quotes = any(character in text for character in ',:\n"')
    return json.dumps(text, ensure_ascii=False) if needs_quotes else text
