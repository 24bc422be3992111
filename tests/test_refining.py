"""Four variations of anything: one parser of lines, for words and settings alike."""

from __future__ import annotations

from dataclasses import replace

import pytest
from refusing import refused

from seedgrid.core.card import ModelCard
from seedgrid.core.errors import InputError, ModelError
from seedgrid.core.recipe import Lora, ModelRef, Recipe
from seedgrid.core.request import Request, resolve
from seedgrid.core.variations import read_variation, refine
from seedgrid.testing.fake import FAKE_CARD

OTHER = replace(
    FAKE_CARD,
    ref=ModelRef(id="other", weights_sha256="1" * 64),
    scheduler="UniPC",
    schedulers=("UniPC", "DDPM"),
)
WIDER = replace(FAKE_CARD, ref=ModelRef(id="wider", weights_sha256="2" * 64), latent=(16, 8))
CARDS = {card.ref.id: card for card in (FAKE_CARD, OTHER, WIDER)}


def card_of(name: str | None) -> ModelCard:
    """Three models: two of a kind, and one that begins from other noise."""
    if name not in CARDS:
        raise ModelError("model_missing", value=name)
    return CARDS[name]


@pytest.fixture
def parent() -> Recipe:
    """A picked picture."""
    return resolve(Request(prompt="a fox", seeds=(7,), num_inference_steps=5), FAKE_CARD)[0]


@pytest.mark.parametrize(
    ("line", "words", "settings"),
    [
        (", artsy", ", artsy", {}),
        ("at night", "at night", {}),
        ("guidance 3", "", {"guidance": 3.0}),
        ("Guidance: 3,5", "", {"guidance": 3.5}),
        ("guidance=0", "", {"guidance": 0.0}),
        (" step 8 ", "", {"steps": 8}),
        ("steps 8, guidance 3", "", {"steps": 8, "guidance": 3.0}),
        ("steps 8; guidance 3", "", {"steps": 8, "guidance": 3.0}),
        ("steps 8, artsy", ", artsy", {"steps": 8}),
        ("scheduler DPM++ 2M Karras", "", {"scheduler": "DPM++ 2M Karras"}),
        ("scheduler Euler, at night", ", at night", {"scheduler": "Euler"}),
        ("model other", "", {"model": "other"}),
        ("negative: fog, rain", "", {"negative": "fog, rain"}),
        ("dtype bfloat16", "", {"dtype": "bfloat16"}),
        # Words of a prompt that begin with the name of a field stay words.
        ("steps leading up to a door", "steps leading up to a door", {}),
        ("steps 8 miles high", "steps 8 miles high", {}),
        ("guidance of an angel", "guidance of an angel", {}),
        ("model of a ship", "model of a ship", {}),
        ("negative space", "negative space", {}),
        ("size matters", "size matters", {}),
        (", steps 8", ", steps 8", {}),
        ("8 steps", "8 steps", {}),
    ],
)
def test_a_line_is_a_setting_or_words(line: str, words: str, settings: dict[str, object]) -> None:
    """A setting is the name of a field and something that looks like its value."""
    found = read_variation(line)
    assert (found.words, dict(found.settings)) == (words, settings)


def test_settings_change_what_they_name_and_nothing_else(parent: Recipe) -> None:
    """The seed, the words and all other settings are the parent's."""
    lines = ["guidance 3", "steps 8", "scheduler euler", "negative: fog", "steps 9, artsy"]
    assert refine(parent, lines, card_of) == (
        parent.replace(guidance_scale=3.0),
        parent.replace(num_inference_steps=8),
        parent.replace(scheduler="Euler"),
        parent.replace(negative_prompt="fog"),
        parent.replace(num_inference_steps=9, prompt="a fox, artsy"),
    )


def test_another_model_paints_the_same_seed(parent: Recipe) -> None:
    """What it cannot paint with becomes its own, and stands in the recipe."""
    (child,) = refine(parent, ["model other"], card_of)
    assert child == parent.replace(model=OTHER.ref, scheduler="UniPC")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("size 512x512", "vary_noise"),
        ("size: 64", "vary_noise"),
        ("seed 8", "vary_noise"),
        ("seeds 0-3", "vary_noise"),
        ("guidance 99", "guidance_range"),
        ("steps 0", "steps_range"),
        ("steps: many", "steps_range"),
        ("scheduler nonsense", "scheduler_unknown"),
        ("model nowhere", "model_missing"),
        ("model wider", "vary_model"),
        (", (fog:99)", "weight_range"),
        (", {0|1}{0|1}{0|1}{0|1}{0|1}{0|1}{0|1}{0|1}", "pictures_count"),
    ],
)
def test_what_cannot_vary_is_refused_at_the_variation(parent: Recipe, line: str, code: str) -> None:
    """With a sentence, at the field in which it was written."""
    with refused(InputError, code, field="vary"):
        refine(parent.replace(weights=True), [", artsy", line], card_of)


def test_a_lora_of_the_parent_gets_another_scale(parent: Recipe) -> None:
    """All of them, one by its name, or as a tag among words; another one is refused."""
    ink, snow = (Lora(id=name, weights_sha256="0" * 64) for name in ("ink", "snow"))
    with_them = parent.replace(loras=(ink, snow))
    scales = [
        [lora.scale for lora in child.loras]
        for child in refine(with_them, ["lora 0.5", "lora snow 1,5", ", <lora:ink:0>"], card_of)
    ]
    assert scales == [[0.5, 0.5], [1.0, 1.5], [0.0, 1.0]]
    for lines in (["lora fog 1"], ["at night <lora:fog:1>"]):
        with refused(InputError, "lora_none"):
            refine(with_them, lines, card_of)
