"""Recipe: identity, canonical JSON, and that nothing unclear gets in."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pictures import make_recipe
from pydantic import ValidationError

from seedgrid.core.recipe import (
    MAX_SEED,
    Lora,
    ModelRef,
    NoiseShare,
    Passport,
    Recipe,
    canonical_json,
)

WORDS = st.text(
    st.characters(exclude_categories=("Cs",), min_codepoint=32, exclude_characters="\x7f"),
    max_size=60,
)
BUNDLED = ModelRef(id="bundled", weights_sha256="a" * 64)
RECIPE = make_recipe(
    height=96, num_inference_steps=10, guidance_scale=5.0, scheduler="DDIM", model=BUNDLED
)


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    return RECIPE.replace(
        prompt=draw(WORDS),
        negative_prompt=draw(WORDS),
        seed=draw(st.integers(0, MAX_SEED)),
        width=draw(st.integers(32, 2048)),
        num_inference_steps=draw(st.integers(1, 150)),
        guidance_scale=draw(st.floats(0, 30)),
        dtype=draw(st.sampled_from(["float32", "bfloat16", "float16"])),
        noise_mix=draw(
            st.lists(
                st.builds(
                    NoiseShare,
                    seed=st.integers(0, MAX_SEED),
                    weight=st.floats(0, 1, exclude_min=True),
                ),
                max_size=3,
            ).map(tuple)
        ),
    )


@given(recipes())
def test_a_recipe_survives_json(recipe: Recipe) -> None:
    """Written and read again it is the same recipe with the same id."""
    again = Recipe.model_validate_json(canonical_json(recipe))
    assert again == recipe
    assert again.id == recipe.id


def test_the_id_is_written_in_stone() -> None:
    """The id of a known recipe never changes: pictures out there carry it."""
    assert RECIPE.id == "361d8786769cb48b232af4faa213c9177841ae87d06df45df5a00f7153b36f1c"
    foreign = RECIPE.replace(prompt="狐, 여우")
    assert foreign.id == "ca503744116eecc5a46ea5d000195e14348c7e14cd1474c5d9dd6132f3daade6"


@pytest.mark.parametrize(
    "change",
    [
        {"prompt": "a red fox "},
        {"negative_prompt": "fog"},
        {"seed": 8},
        {"width": 96},
        {"height": 64},
        {"num_inference_steps": 11},
        {"guidance_scale": 5.5},
        {"scheduler": "Euler"},
        {"model": ModelRef(id="bundled", weights_sha256="b" * 64)},
        {"dtype": "bfloat16"},
        {"lock_width": 1},
        {"determinism": "off"},
        {"loras": (Lora(id="ink", weights_sha256="c" * 64),)},
        {"noise_mix": (NoiseShare(seed=1, weight=0.1),)},
    ],
    ids=str,
)
def test_everything_counts(change: dict[str, object]) -> None:
    """A change in any field is another recipe, with another id."""
    other = RECIPE.replace(**change)
    assert other != RECIPE
    assert other.id != RECIPE.id


def test_words_and_noise_may_share_a_batch() -> None:
    """The batch key ignores the words, seed and noise mix, and nothing else."""
    shared = RECIPE.replace(prompt="x", negative_prompt="y", seed=1)
    shared = shared.replace(noise_mix=(NoiseShare(seed=2, weight=0.5),))
    assert shared.batch_key == RECIPE.batch_key
    ignored = {"prompt", "typed_prompt", "negative_prompt", "seed", "noise_mix"}
    required = {name for name, each in Recipe.model_fields.items() if each.is_required()}
    assert set(json.loads(RECIPE.batch_key)) == required - ignored
    other = RECIPE.replace(arithmetic="portable-1", start="0" * 64)
    assert {"arithmetic", "start"} <= set(json.loads(other.batch_key))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("seed", -1),
        ("seed", 2**32),
        ("seed", "1"),
        ("seed", True),
        ("width", 100_000),
        ("num_inference_steps", 0),
        ("guidance_scale", -0.1),
        ("dtype", "int8"),
        ("lock_width", 17),
        ("determinism", "maybe"),
        ("prompt", "a\x00b"),
        ("prompt", "x" * 5001),
        ("scheduler", ""),
        ("model", {"id": "m", "weights_sha256": "short"}),
        ("noise_mix", [{"seed": 1, "weight": 0}]),
        ("colour", "red"),
    ],
    ids=str,
)
def test_what_a_recipe_cannot_be(field: str, value: object) -> None:
    """Values out of range, of another type, or unknown are refused with the field's name."""
    data = RECIPE.model_dump(mode="json") | {field: value}
    with pytest.raises(ValidationError, match=field):
        Recipe.model_validate_json(json.dumps(data))


def test_a_passport_keeps_what_it_does_not_know() -> None:
    """A passport from another release keeps its fields, and they count in its digest."""
    passport = Passport.model_validate({"torch": "2.13", "moon_phase": "full"})
    assert passport.model_dump()["moon_phase"] == "full"
    assert passport.digest != Passport(torch="2.13").digest
