"""Prompt weights: read as elsewhere, painted as a plain call with weighed embeddings paints."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from painting import check_bundle_reproduced, one_thread, paint, recipes_for

from seedgrid.core.errors import InputError
from seedgrid.core.prompts import plain_words, read_weights
from seedgrid.core.request import Request, advise, resolve
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.export.bundle import write_bundle
from seedgrid.studio import Studio

PROMPTS = ("a (red:1.3) fox", "a [red] ((fox))", "a red fox", "(a red fox:0.5), artsy")


@pytest.mark.parametrize(
    ("prompt", "pieces"),
    [
        ("normal text", [("normal text", 1.0)]),
        ("an (important) word", [("an ", 1.0), ("important", 1.1), (" word", 1.0)]),
        ("(unbalanced", [("unbalanced", 1.1)]),
        (r"\(literal\]", [("(literal]", 1.0)]),
        ("a [red] fox", [("a ", 1.0), ("red", 1 / 1.1), (" fox", 1.0)]),
        ("(a (b:2):0.5)", [("a ", 0.5), ("b", 1.0)]),
        ("(8:30 pm)", [("8:30 pm", 1.1)]),
        ("a ) b ]", [("a ) b ]", 1.0)]),
        ("", []),
    ],
)
def test_weights_are_read_as_elsewhere(prompt: str, pieces: list[tuple[str, float]]) -> None:
    """The examples of AUTOMATIC1111's own parser, and what people mistype."""
    found = read_weights(prompt)
    assert [text for text, _ in found] == [text for text, _ in pieces]
    assert [weight for _, weight in found] == pytest.approx([weight for _, weight in pieces])
    assert plain_words(prompt) == "".join(text for text, _ in pieces)


@given(st.text(alphabet="ab ()[]:.\\19", max_size=60))
def test_any_text_can_be_read(text: str) -> None:
    """Every text has words, or a weight that is too great."""
    with suppress(InputError):  # A weight that is too great.
        assert all(words for words, _ in read_weights(text))
        assert len(plain_words(text)) <= len(text)


def weighed(pipe: Any, embeddings: torch.Tensor, weights: list[dict[str, float]]) -> torch.Tensor:
    """Weigh letters by hand: the small models' tokenizer has a token for each."""
    rows = []
    for row, of_word in zip(embeddings, weights, strict=True):
        factors = torch.ones(len(row))
        place = 1
        for word, weight in of_word.items():
            length = len(pipe.tokenizer(word).input_ids) - 2
            factors[place : place + length] = weight
            place += length
        scaled = row * factors[:, None]
        rows.append(row if (factors == 1).all() else scaled * (row.mean() / scaled.mean()))
    return torch.stack(rows)


@pytest.mark.parametrize("name", ["sd", "sdxl", "lcm"])
def test_weighed_pictures_are_those_of_a_plain_call(
    painter: DiffusersBackend, folder: Path, name: str
) -> None:
    """Bit for bit `pipe(prompt_embeds=…)`, with embeddings that were weighed by hand."""
    plain = recipes_for(painter, folder)
    recipes = [
        recipe.model_copy(update={"weights": True, "prompt": prompt})
        for recipe, prompt in zip(plain, PROMPTS, strict=True)
    ]
    painted = paint(painter, recipes)
    pipe = diffusers.DiffusionPipeline.from_pretrained(folder, dtype=torch.float32)
    pipe.set_progress_bar_config(disable=True)
    words = ["a red fox", "a red fox", "a red fox", "a red fox, artsy"]
    by_word = [
        {"a": 1.0, "red": 1.3, "fox": 1.0},
        {"a": 1.0, "red": 1 / 1.1, "fox": 1.1 * 1.1},
        {},
        {"a": 0.5, "red": 0.5, "fox": 0.5, ",": 1.0, "artsy": 1.0},
    ]
    guided = recipes[0].guidance_scale > 1 and name != "lcm"
    with one_thread(), torch.no_grad():
        told = pipe.encode_prompt(
            prompt=words, device="cpu", num_images_per_prompt=1, do_classifier_free_guidance=guided
        )
    given = {"prompt_embeds": weighed(pipe, told[0], by_word)}
    if name != "lcm":
        given["negative_prompt_embeds"] = told[1]
    if name == "sdxl":
        given |= {"pooled_prompt_embeds": told[2], "negative_pooled_prompt_embeds": told[3]}
    with one_thread():
        images = pipe(
            **given,
            width=recipes[0].width,
            height=recipes[0].height,
            num_inference_steps=recipes[0].num_inference_steps,
            guidance_scale=recipes[0].guidance_scale,
            generator=[torch.Generator("cpu").manual_seed(recipe.seed) for recipe in recipes],
            output_type="np",
        ).images
    for picture, image in zip(painted, images, strict=True):
        assert np.array_equal(picture, (image * 255).round().astype(np.uint8))
    unweighed = paint(painter, [each.model_copy(update={"prompt": "a red fox"}) for each in plain])
    assert np.array_equal(unweighed[2], painted[2])
    assert not np.array_equal(unweighed[0], painted[0])


@pytest.mark.sweep
def test_the_bundles_script_weighs_words_too(sd: Path, tmp_path: Path) -> None:
    """With diffusers alone, the negative prompt's words as well; the recipe's id says it."""
    small: dict[str, Any] = {"width": 64, "height": 64, "num_inference_steps": 2}
    with Studio(str(sd), tmp_path / "library") as studio:
        grid = studio.grid(PROMPTS[0], "0-1", weights=True, negative_prompt="(z:2) a", **small)
        assert "weights" not in studio.resolve(Request(prompt="a"))[0].model_dump()
    write_bundle(list(grid), tmp_path / "art.zip", model=sd)
    check_bundle_reproduced(tmp_path / "art.zip")


def test_a_model_that_reads_words_otherwise_refuses(
    painter: DiffusersBackend, model_folder: Callable[[str], Path]
) -> None:
    """SD3 and Flux read with T5 as well, whose rows are not CLIP's."""
    for name in ("sd3", "flux"):
        card = painter.card(str(model_folder(name)))
        with pytest.raises(InputError, match="cannot weigh words"):
            resolve(Request(prompt="a (red:1.3) fox", weights=True), card)


def test_brackets_without_the_switch_are_told(painter: DiffusersBackend) -> None:
    """Whoever comes from elsewhere expects them to weigh."""
    card = painter.card("bundled")
    told = advise(Request(prompt="a (cat:1.3)"), card)
    assert "weights_off" in [each.notice.code for each in told]
    assert not advise(Request(prompt="a (cat:1.3)", weights=True), card)
