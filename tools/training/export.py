"""Write the model's folder: an ordinary diffusers folder and the page's hints.

The denoiser's weights are stored in float16 and computed in float32: twice as many in the same
room. The autoencoder's stay in float32, since training goes on from its exact linear map.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from diffusers import StableDiffusionPipeline
from safetensors.torch import load_file, save_file

from tools.training.declared import DEFAULTS, NAMES, known_words
from tools.training.decoder import load_autoencoder
from tools.training.networks import make_scheduler
from tools.training.places import NETWORK_FILE
from tools.training.polish import load_networks
from tools.training.tokenizer import tokenizer
from tools.training.words import (
    COLORS,
    MODIFIER_WORDS,
    SIDE_WORDS,
    SIZE_WORDS,
    STYLE_WORDS,
    SUBJECT_WORDS,
    TIME_WORDS,
    WEATHER_WORDS,
)


def build_pipeline() -> StableDiffusionPipeline:
    """The pipeline from the last checkpoints, or from untrained networks where there are none."""
    networks = load_networks()
    return StableDiffusionPipeline(
        vae=load_autoencoder(),
        text_encoder=networks.text_encoder,
        tokenizer=tokenizer(),
        unet=networks.unet,
        scheduler=make_scheduler(),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )


SUFFIXES = [", at night", ", neon", ", black and white", ", vintage"]
"""What the page's four variations begin with: where the model shines."""


def hints() -> dict[str, list[str]]:
    """The words that the page offers."""
    attributes = [f"{size}" for size in SIZE_WORDS] + list(COLORS)
    for words in (TIME_WORDS, WEATHER_WORDS, SIDE_WORDS):
        attributes += [said[0] for said in words.values()]
    return {
        "subjects": [said[0] for said in SUBJECT_WORDS.values()],
        "styles": [said[0] for said in STYLE_WORDS.values() if said[0]],
        "modifiers": [said[0] for said in MODIFIER_WORDS.values() if said[0]],
        "attributes": attributes,
    }


def export(folder: Path) -> None:
    """Write the folder; a model card that is there stays."""
    pipeline = build_pipeline()
    folder.mkdir(parents=True, exist_ok=True)
    with torch.no_grad():
        pipeline.to("cpu", torch.float32).save_pretrained(folder, safe_serialization=True)
    for part in ("unet", "text_encoder"):
        _halve(next((folder / part).glob("*.safetensors")))
    page = {
        "name": "SeedGrid bundled model",
        "enlarges": False,
        "upscaler": NETWORK_FILE.stem,
        "defaults": DEFAULTS,
        "suffixes": SUFFIXES,
        "hints": hints(),
        "words": known_words(),
        "names": NAMES,
        "license": "Apache-2.0",
    }
    (folder / "seedgrid.json").write_text(json.dumps(page, indent=2, ensure_ascii=False) + "\n")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {size / 1e6:.1f} MB")


def _halve(path: Path) -> None:
    """Store a file's numbers in float16; its configuration still says float32, so they load so."""
    weights = {name: value.half() for name, value in load_file(path).items()}
    save_file(weights, path, metadata={"format": "pt"})
