"""Whatever a stranger's file holds: a request or one sentence, no crash, no long time."""

from __future__ import annotations

import json
from typing import Any

import pytest
from foreign_files import COMFY, FOOOCUS, INVOKE, NOVELAI, SWARM_PARAMS, imported, node
from hypothesis import given
from hypothesis import strategies as st

from seedgrid.core.errors import InputError, PictureError
from seedgrid.core.request import Request, resolve
from seedgrid.formats.importers.imported import fit
from seedgrid.testing.fake import FAKE_CARD

NAN, INFINITE = float("nan"), float("inf")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=10,
    )
)
def test_values_of_any_type_give_a_request(value: Any) -> None:
    """Whatever stands where a number or a text should be, it is left out or refused by name."""
    documents = [
        {"invokeai_metadata": json.dumps(dict.fromkeys(INVOKE, value))},
        {"parameters": json.dumps({"sui_image_params": dict.fromkeys(SWARM_PARAMS, value)})},
        {"parameters": json.dumps(dict.fromkeys(FOOOCUS, value)), "fooocus_scheme": "fooocus"},
        {"Software": "NovelAI", "Comment": json.dumps(dict.fromkeys(NOVELAI, value))},
        {
            "prompt": json.dumps(
                {
                    key: node(str(part["class_type"]), **dict.fromkeys(part["inputs"], value))
                    for key, part in COMFY.items()
                }
            )
        },
    ]
    for texts in documents:
        try:
            found = imported(**texts)
        except InputError:
            continue
        assert isinstance(found.request, Request)


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text under any key does anything but give a request or one kind of error."""
    text = "".join(letter for letter in text if not "\ud800" <= letter <= "\udfff")
    for key in ("parameters", "prompt", "invokeai_metadata", "workflow"):
        for content in (text, f"{text}\nSteps: 1, Seed: {text}, Size: {text}, Sampler: x"):
            try:
                found = imported(**{key: content})
            except PictureError:
                continue
            assert isinstance(found.request, Request)


@pytest.mark.parametrize(
    "number", [float("nan"), float("inf"), float("-inf"), 1e308, -5, "x", 2**70]
)
def test_numbers_out_of_all_range_are_left_out_or_brought_in(number: object) -> None:
    """Whatever stands for size, steps and guidance, the request can be resolved."""
    names = ("width", "height", "steps", "cfg_scale")
    found = imported(invokeai_metadata=json.dumps(INVOKE | dict.fromkeys(names, number)))

    assert resolve(fit(found, FAKE_CARD).request, FAKE_CARD)


def test_names_from_a_file_cannot_play_tricks_on_a_screen() -> None:
    """Control characters, half letters and letters without end stay out of the sentence."""
    name = "\x1b[31m\ud800\r\n\x9b" + "a" * 50_000
    data = INVOKE | {
        "model": {"name": name},
        "scheduler": name,
        "loras": [{"model": {"name": name}}],
    }

    sentence = str(imported(invokeai_metadata=json.dumps(data)).notice)

    assert sentence.isprintable()
    assert len(sentence) < 1000
    assert sentence.encode()
