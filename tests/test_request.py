"""Request: what was typed becomes complete recipes, or one error at the right field."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refused

from seedgrid.core.card import ModelCard
from seedgrid.core.checks import check_prompt, parse_size
from seedgrid.core.errors import InputError
from seedgrid.core.recipe import ModelRef
from seedgrid.core.request import Request, resolve
from seedgrid.core.variations import refine

CARD = ModelCard(
    ref=ModelRef(id="bundled", weights_sha256="0" * 64),
    family="StableDiffusionPipeline",
    width=256,
    height=128,
    size_multiple=16,
    num_inference_steps=12,
    max_steps=100,
    guidance_scale=3.0,
    scheduler="DDIM",
    schedulers=("DDIM", "DPM++ 2M Karras"),
)


def no_card(name: str | None) -> ModelCard:
    """Words alone ask no model for anything."""
    raise AssertionError(name)


def test_open_questions_are_answered_by_the_card() -> None:
    """What was left open is as the model's card says; nothing in a recipe is left open."""
    recipe = resolve(Request(prompt="a fox"), CARD)[2]
    assert (recipe.seed, recipe.width, recipe.height) == (2, 256, 128)
    assert (recipe.num_inference_steps, recipe.guidance_scale) == (12, 3.0)
    assert (recipe.scheduler, recipe.dtype, recipe.lock_width) == ("DDIM", "float32", 4)
    assert (recipe.determinism, recipe.model) == ("strict", CARD.ref)


def test_a_scheduler_that_needs_more_steps_gets_them_where_none_were_said() -> None:
    """A model of one step is painted with PNDM in four; who says two is told of four later."""
    card = dataclasses.replace(CARD, num_inference_steps=1, fewest_steps={"DPM++ 2M Karras": 4})
    asked = Request(prompt="a fox", scheduler="DPM++ 2M Karras")
    assert resolve(asked, card)[0].num_inference_steps == 4
    assert resolve(Request(prompt="a fox"), card)[0].num_inference_steps == 1
    said = dataclasses.replace(asked, num_inference_steps=2)
    assert resolve(said, card)[0].num_inference_steps == 2


def test_what_was_said_is_kept() -> None:
    """Each setting that was given is in the recipe; a scheduler is found whatever its case."""
    said: dict[str, Any] = {"prompt": "a fox", "negative_prompt": "fog", "width": 64, "height": 32}
    said |= {"num_inference_steps": 3, "dtype": "bfloat16", "lock_width": 1, "determinism": "off"}
    request = Request(seeds=(9,), scheduler="dpm++ 2m karras", guidance_scale=0, **said)
    (recipe,) = resolve(request, CARD)
    found = recipe.model_dump(include={*said, "seed", "scheduler", "guidance_scale"})
    assert found == said | {"seed": 9, "scheduler": "DPM++ 2M Karras", "guidance_scale": 0.0}
    (negative,) = resolve(dataclasses.replace(request, guidance_scale=-0.0), CARD)
    assert negative.id == recipe.id


@pytest.mark.parametrize(
    ("field", "code", "wrong"),
    [
        ("prompt", "prompt_empty", {"prompt": ""}),
        ("prompt", "prompt_long", {"prompt": "x" * 5001}),
        ("prompt", "prompt_characters", {"prompt": "a\x00b"}),
        ("negative", "prompt_long", {"negative_prompt": "x" * 5001}),
        ("seeds", "seed_range", {"seeds": (-1,)}),
        ("seeds", "seed_range", {"seeds": (2**32,)}),
        ("seeds", "seed_text", {"seeds": ()}),
        ("size", "size_range", {"width": 7, "height": 7}),
        ("size", "size_multiple", {"width": 72}),
        ("steps", "steps_range", {"num_inference_steps": 0}),
        ("steps", "steps_range", {"num_inference_steps": 101}),
        ("steps", "steps_range", {"num_inference_steps": 2.5}),
        ("guidance", "guidance_range", {"guidance_scale": -1}),
        ("guidance", "guidance_range", {"guidance_scale": math.nan}),
        ("scheduler", "scheduler_unknown", {"scheduler": "Magic"}),
        ("dtype", "dtype_unknown", {"dtype": "int9"}),
        ("width", "width_range", {"lock_width": 3}),
        ("determinism", "determinism_unknown", {"determinism": "maybe"}),
    ],
    ids=str,
)
def test_each_mistake_is_told_at_its_field(field: str, code: str, wrong: dict[str, object]) -> None:
    """What cannot be is refused before anything is computed, with the place and a reason."""
    with refused(InputError, code, field=field):
        resolve(Request(**({"prompt": "a fox"} | wrong)), CARD)  # type: ignore[arg-type]


def test_a_model_without_words_ignores_them() -> None:
    """An unconditional model paints whatever the prompt says, also when it is empty."""
    card = dataclasses.replace(CARD, has_prompt=False)
    assert resolve(Request(prompt=""), card)[0].prompt == ""
    assert resolve(Request(prompt="a fox", negative_prompt="x"), card)[0].prompt == ""


def test_a_model_of_one_size_paints_that_size() -> None:
    """A fixed size is filled in, and another one refused with the size that works."""
    card = dataclasses.replace(CARD, fixed_size=True, width=32, height=32)
    (recipe,) = resolve(Request(prompt="a fox", seeds=(0,)), card)
    assert (recipe.width, recipe.height) == (32, 32)
    with refused(InputError, "size_fixed"):
        resolve(Request(prompt="a fox", width=64, height=64), card)


@pytest.mark.parametrize(
    ("suffixes", "prompt", "code"),
    [
        ([], None, "variations_empty"),
        (["", " , "], None, "variations_empty"),
        ([", artsy"], " ", "prompt_empty"),
        (["x" * 5000], None, "prompt_long"),
        (["\x07"], None, "prompt_characters"),
    ],
)
def test_refining_without_words(suffixes: list[str], prompt: str | None, code: str) -> None:
    """A refinement that says nothing, or too much, is refused."""
    parent = resolve(Request(prompt="a fox"), CARD)[0]
    with refused(InputError, code):
        refine(parent, suffixes, no_card, prompt=prompt)


@pytest.mark.parametrize(
    ("text", "size"),
    [("512x768", (512, 768)), ("512", (512, 512)), ("512 × 768", (512, 768)), ("64X64", (64, 64))],
)
def test_sizes_as_people_write_them(text: str, size: tuple[int, int]) -> None:
    """Width comes first; one number is a square."""
    assert parse_size(text) == size


@given(st.text(max_size=200))
def test_any_text_is_a_prompt_or_one_clear_error(text: str) -> None:
    """A prompt is kept as it is, but for its line ends; or it is refused with the character."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    impossible = re.search("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", plain)
    if impossible is None:
        assert check_prompt(text, field="prompt") == plain
        return
    with pytest.raises(InputError, match=f"U\\+{ord(impossible[0]):04X}"):
        check_prompt(text, field="prompt")
