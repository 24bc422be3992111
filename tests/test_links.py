"""A recipe goes into a link and comes back; what strangers put into a link is refused by field."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pictures import make_recipe
from refusing import refused

from seedgrid.core.errors import InputError
from seedgrid.core.recipe import ModelRef, NoiseShare
from seedgrid.core.request import Request, resolve
from seedgrid.formats.links import link_query, read_link
from seedgrid.testing.fake import FAKE_CARD

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.just("\n"), min_size=1)


SHARES = st.builds(
    NoiseShare, seed=st.integers(0, 2**32 - 1), weight=st.floats(0, 1, exclude_min=True)
)


@given(
    prompt=WORDS.filter(str.strip),
    negative=WORDS,
    seed=st.integers(0, 2**32 - 1),
    guidance=st.floats(0, 30).map(lambda value: value + 0.0),
    lock_width=st.sampled_from([1, 2, 4, 8, 16]),
    dtype=st.sampled_from(["float32", "bfloat16", "float16"]),
    mix=st.lists(SHARES, max_size=20),
)
def test_a_recipe_comes_back_from_its_link(
    prompt: str,
    negative: str,
    seed: int,
    guidance: float,
    lock_width: int,
    dtype: str,
    mix: list[NoiseShare],
) -> None:
    """Every word, digit, setting and mixed seed survives, so that the same picture comes out."""
    (recipe,) = resolve(
        Request(
            prompt=prompt,
            negative_prompt=negative,
            seeds=(seed,),
            guidance_scale=guidance,
            lock_width=lock_width,
            dtype=dtype,
            noise_mix=tuple(mix),
        ),
        FAKE_CARD,
    )

    request = read_link(link_query(recipe))

    assert request is not None
    assert resolve(request, FAKE_CARD) == (recipe,)
    assert link_query(recipe.model_copy(update={"parent": recipe})) == ""  # It cannot tell that.


def test_a_link_may_say_little() -> None:
    """What is not said is left to the model's card; other people's parameters are left alone."""
    request = read_link("__theme=dark&prompt=a+red+fox&seeds=7,11&logs=container")

    assert request == Request(prompt="a red fox", seeds=(7, 11))


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("seeds=-1", "seeds"),
        ("steps=1.5", "steps"),
        ("steps=٣", "steps"),
        ("steps=" + "9" * 5000, "steps"),
        ("guidance=1e999", "guidance"),
        ("size=big", "size"),
        ("model=/etc/passwd", "model"),
        ("model=http://x/y", "model"),
        ("mix=5:2", "mix"),
        ("mix=5:.5,", "mix"),
        ("mix=" + "5:.5," * 256 + "5:.5", "mix"),
        ("guidance=nan", "guidance"),
        ("prompt=a%00b", "prompt"),
        ("prompt=" + "x" * 5001, "prompt"),
        ("prompt=a&prompt=b", "prompt"),
        ("prompt=%ff", "link"),
        ("prompt=" + "x" * 70_000, "prompt"),
        ("&".join(f"a{number}=1" for number in range(200)), "link"),
    ],
)
def test_what_cannot_be_is_refused_by_field(query: str, field: str) -> None:
    """Each value has its own check, before anything is filled in."""
    with refused(InputError, field=field):
        read_link(query)


@given(st.text(max_size=200))
def test_no_link_crashes(query: str) -> None:
    """Any text is a request, nothing, or one kind of error."""
    try:
        request = read_link(query)
    except InputError:
        return
    assert request is None or isinstance(request, Request)


def test_a_hub_model_goes_with_its_revision() -> None:
    """The commit is part of the model's name in a link."""
    model = ModelRef(id="org/name", revision="abc123", weights_sha256="ab" * 32)

    request = read_link(link_query(make_recipe(model=model)))

    assert request is not None
    assert request.model == "org/name@abc123"
