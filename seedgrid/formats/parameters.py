"""A recipe in the words that AUTOMATIC1111-style readers understand: the text `parameters`."""

import json
import re
from typing import Final

from seedgrid.core.prompts import write_tags
from seedgrid.core.recipe import Recipe

PARAMETERS_KEY: Final = "parameters"
"""The name of the text in a PNG file."""

_VERSION: Final = re.compile(r", Version: SeedGrid [\w.+-]{1,40}\Z")


def parameters_text(recipe: Recipe) -> str:
    """Say the recipe in the words that AUTOMATIC1111-style readers understand.

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
    lines = [write_tags(recipe.prompt, recipe.loras)]
    if recipe.negative_prompt:
        lines.append(f"Negative prompt: {recipe.negative_prompt}")
    lines.append(", ".join(f"{name}: {_quoted(value)}" for name, value in settings.items()))
    return "\n".join(lines)


def without_version(text: str) -> str:
    """Return such a text without the release that wrote it; anybody else's as it is."""
    return _VERSION.sub("", text)


def _noise_settings(recipe: Recipe) -> dict[str, object]:
    """Say whose noise is mixed in: one seed as those readers know it, several in our own words."""
    shares = recipe.noise_mix
    if len(shares) == 1:
        return {"Variation seed": shares[0].seed, "Variation seed strength": shares[0].weight}
    mix = ", ".join(f"{share.seed}: {share.weight!r}" for share in shares)
    return {"Noise mix": mix} if mix else {}


def _quoted(value: object) -> str:
    """Quote what would break the list of settings, as AUTOMATIC1111 does."""
    text = str(value)
    needs_quotes = any(character in text for character in ',:\n"')
    return json.dumps(text, ensure_ascii=False) if needs_quotes else text
