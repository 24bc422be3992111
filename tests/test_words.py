"""Words that a model declares: what it does not know, and its names in other languages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seedgrid.core.card import ModelCard, Vocabulary
from seedgrid.core.request import Request, advise, ask_again, resolve
from seedgrid.core.variations import refine
from seedgrid.formats.links import link_query, read_link
from seedgrid.library import Library
from seedgrid.models import registry
from seedgrid.studio import Studio
from seedgrid.testing.fake import FAKE_CARD, FakeBackend

SUBMARINE = "a submarine below Tokyo"


@pytest.fixture(scope="module")
def bundled() -> ModelCard:
    """The card of the model in the box."""
    return registry.find("bundled").card


@pytest.fixture(scope="module")
def card(bundled: ModelCard) -> ModelCard:
    """A fake model that knows the bundled one's words."""
    return replace(FAKE_CARD, hints=bundled.hints, vocabulary=bundled.vocabulary)


@pytest.fixture
def words(bundled: ModelCard) -> Vocabulary:
    assert bundled.vocabulary is not None
    return bundled.vocabulary


@pytest.fixture
def backend(card: ModelCard) -> FakeBackend:
    return FakeBackend(card=card)


@pytest.mark.parametrize(
    ("typed", "painted"),
    [
        ("猫，水彩", "cat, watercolor"),
        ("红色的猫在雪中，梵高风格", "red cat in the snow, in the style of Van Gogh"),
        ("고양이가, 수채화", "cat, watercolor"),
        ("빨간 고양이, 픽셀 아트", "red cat, pixel art"),
        ("潜艇在雪中", "潜艇 in the snow"),
        ("달리는 고양이", "달리는 cat"),
        ("  a cat ,  watercolor ", "  a cat ,  watercolor "),
        ("ein Hund", "ein Hund"),
        ("", ""),
    ],
)
def test_names_of_other_languages_are_painted_as_the_models_words(
    words: Vocabulary, typed: str, painted: str
) -> None:
    """And what holds none of them stays as it was typed, every space."""
    assert words.painted(typed) == painted


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        (SUBMARINE, ("submarine", "Tokyo")),
        ("Labrador in the style of Vermeer, highly realistic", ()),
        ("a small red cottage under the stars, 8-bit sprite", ()),
        ("猫，水彩", ()),
        ("潜艇，水彩", ("潜艇",)),
        ("Tokyo tokyo TOKYO", ("Tokyo",)),
    ],
)
def test_unknown_words_are_named_as_they_were_written(
    words: Vocabulary, text: str, unknown: tuple[str, ...]
) -> None:
    """Small words and fillers are nobody's concern."""
    assert words.unknown(text) == unknown


def test_every_word_that_is_offered_is_known_and_has_names(bundled: ModelCard) -> None:
    """In Chinese and Korean too; each name is understood as its word."""
    words = bundled.vocabulary
    assert words is not None
    offered = [word for each in bundled.hints.values() for word in each]
    for word in offered:
        assert words.unknown(word) == ()
        for language in ("zh", "ko"):
            name = words.called(word, language)
            assert (name != word, words.painted(name)) == (True, word)


def test_the_recipe_keeps_what_was_typed_and_what_was_painted(card: ModelCard) -> None:
    """It is asked for again without the list of names, through a request and through a link."""
    (recipe,) = resolve(Request(prompt="猫，水彩", seeds=(7,)), card)
    kept = recipe.prompt, recipe.typed_prompt, recipe.words
    assert kept == ("cat, watercolor", "猫，水彩", "猫，水彩")
    forgetful = replace(card, vocabulary=None)
    assert resolve(ask_again(recipe), forgetful) == (recipe,)
    link = read_link(link_query(recipe))
    assert link is not None
    assert resolve(link, forgetful) == (recipe,)


def test_a_refinement_appends_to_both(card: ModelCard, words: Vocabulary) -> None:
    """The typed words grow as they were typed, the painted ones as they are painted."""
    (parent,) = resolve(Request(prompt="猫", seeds=(7,)), card)
    lines = ["，霓虹", ", artsy", "，", "夜晚", "steps 3，霓虹", "model bundled, artsy"]
    neon, plain, alone, _, moved = refine(parent, lines, lambda _: card, vocabulary=words)
    assert (neon.prompt, neon.typed_prompt) == ("cat, neon", "猫，霓虹")
    assert (plain.prompt, plain.typed_prompt) == ("cat, artsy", "猫, artsy")
    assert (alone.prompt, alone.typed_prompt) == ("cat at night", "猫 夜晚")
    assert (moved.prompt, moved.typed_prompt) == ("cat, artsy", "猫, artsy")
    (english,) = refine(parent, [", artsy"], lambda _: card, prompt="cat")
    assert (english.prompt, english.typed_prompt) == ("cat, artsy", "")


def test_the_library_and_its_file_keep_both(studio: Studio) -> None:
    """Both words find it; the lineage says what was typed; read from its file it is the same."""
    first = studio.grid("猫，水彩", seeds="1-2")
    (second,) = studio.refine(first[0], ["，霓虹"])
    library: Library = studio.library
    assert {e.id for e in library.search("水彩").entries} == {*(p.id for p in first), second.id}
    assert len(library.search("watercolor").entries) == 3
    assert library.get(second.id).lineage.change == "，霓虹"
    again = studio.find(second.path)
    assert again.recipe == second.recipe
    assert again.recipe.prompt == "cat, watercolor, neon"


def test_a_run_says_which_words_it_did_not_know(studio: Studio) -> None:
    """The command line and Python hear of it by the run's notices, the page at the field."""
    run = studio.start_grid(Request(prompt=SUBMARINE, seeds=(1,)))
    (notice,) = run.notices
    assert str(notice).startswith("This model does not know: submarine, Tokyo. It draws 30 things")
    assert str(notice).endswith(
        "among them Labrador, cat, house, sailboat, lighthouse, tree, mountain, "
        "sunflower, fish, moon."
    )
    assert studio.grid(SUBMARINE, seeds=1).notices == run.notices
    assert studio.start_grid(Request(prompt="a cat", seeds=(1,))).notices == ()


@pytest.mark.parametrize(
    ("request_", "codes"),
    [
        (Request(prompt="a cat"), []),
        (Request(prompt=SUBMARINE), ["prompt words_unknown"]),
        (Request(prompt="a cat", negative_prompt="fog"), []),
        (
            Request(prompt="a cat", negative_prompt="fog", guidance_scale=1),
            ["negative negative_idle"],
        ),
        (Request(prompt="a cat", width=512, height=512), ["size size_unusual"]),
        (Request(prompt="a cat", width=256, height=384), []),
        (Request(prompt="a cat", width=128, height=128), ["size size_unusual"]),
        (Request(prompt="a cat", width=512, height=128), ["size size_unusual"]),
    ],
)
def test_advice_stands_at_its_field(card: ModelCard, request_: Request, codes: list[str]) -> None:
    """Words, what has no effect, and sizes far from the model's own."""
    assert [f"{each.field} {each.notice.code}" for each in advise(request_, card)] == codes


def test_a_model_made_for_few_steps_says_so_where_many_are_asked_for(
    bundled: ModelCard, card: ModelCard
) -> None:
    """A model with eight steps by default takes any number."""
    many = Request(prompt="a cat", num_inference_steps=12)
    (advice,) = advise(many, bundled)
    assert advice.field == "steps"
    assert str(advice.notice) == (
        "This model was made for few steps (1): at 12 steps, pictures take longer and lose detail."
    )
    assert advise(replace(many, num_inference_steps=1), bundled) == ()
    assert advise(replace(many, num_inference_steps=60), card) == ()
