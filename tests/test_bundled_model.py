"""The bundled model loads with plain diffusers, and its page describes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import diffusers
import pytest
import torch

MODEL = Path(__file__).resolve().parents[1] / "assets" / "model"


@pytest.fixture(scope="module")
def pipeline() -> Any:
    """The bundled model, loaded as anyone would load it."""
    loaded = diffusers.DiffusionPipeline.from_pretrained(str(MODEL))
    loaded.set_progress_bar_config(disable=True)
    return loaded


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """What the page knows about the model."""
    return json.loads((MODEL / "seedgrid.json").read_text())


def test_the_bundled_model_is_at_most_40_mb_of_safetensors() -> None:
    """It ships with the app, so it is small; pickles are not shipped."""
    files = [path for path in MODEL.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 40_000_000
    assert not [path for path in files if path.suffix in {".bin", ".pt", ".pth", ".ckpt", ".pkl"}]
    assert len([path for path in files if path.suffix == ".safetensors"]) == 4


def test_every_part_of_the_bundled_model_has_one_dtype(pipeline: Any) -> None:
    """Mixed dtypes fail deep inside a run, so there are none."""
    parts = (pipeline.unet, pipeline.vae, pipeline.text_encoder)
    assert {part.dtype for part in parts} == {torch.float32}


def test_known_words_are_single_tokens_and_unknown_ones_are_not_lost(pipeline: Any) -> None:
    """The guide's prompt is made of known words; others become pieces, never an end of text."""
    tokenizer = pipeline.tokenizer
    for word in ("Labrador", "Vermeer", "realistic", "artsy", "trending", "colorful"):
        assert len(tokenizer.tokenize(word)) == 1
    unknown = tokenizer("zqxj über", add_special_tokens=False)["input_ids"]
    assert len(unknown) > 2
    assert tokenizer.eos_token_id not in unknown


def test_the_page_offers_words_and_a_scheduler_the_model_has(
    pipeline: Any, page: dict[str, Any]
) -> None:
    """`seedgrid.json` agrees with the folder it lies in."""
    assert len(page["hints"]["subjects"]) >= 10
    assert len(page["hints"]["styles"]) >= 8
    assert len(page["hints"]["modifiers"]) >= 8
    assert page["defaults"]["scheduler"] == "DDIM"
    assert type(pipeline.scheduler).__name__ == "DDIMScheduler"
