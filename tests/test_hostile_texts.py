"""Hostile words: whatever their length and their repetition, reading them takes one pass.

Growth is counted on the patterns (test_growth.py); here are the borders that let texts in, and the
meaning of a list of seeds, which must not have changed with the way it is read.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Callable
from types import FrameType

import pytest

from seedgrid.core.checks import MAX_CHARACTERS as MAX_MIX_CHARACTERS
from seedgrid.core.errors import InputError, PictureError
from seedgrid.core.prompts import MAX_COMPARISONS, compare_words
from seedgrid.core.seeds import MAX_CHARACTERS, parse_seeds
from seedgrid.formats.importers import a1111, comfyui, invokeai
from seedgrid.formats.links import read_link
from seedgrid.web.actions.form import FormPayload, read_request

_ITEM = re.compile(r"(-?\d{1,20})(?:\s*[-–…]\s*(\d{1,20}))?")


@pytest.mark.parametrize(
    "part",
    [
        "1   ",
        "1\t \n",
        "1 - ",
        "1-2 ",
        "1,",
        "1 , ",
        "1  -  2  ",
        "0-0 ",
        "-0 ",
        "٣ \u3000",
        "1…2  ",
    ],
)
@pytest.mark.parametrize("end", ["x", "-", ",,", "\x00", "1.5"])
def test_a_long_list_of_seeds_is_refused_at_once(part: str, end: str) -> None:
    """As long as the border lets in, and wrong at its end: it froze the server with 65 letters."""
    text = (part * MAX_CHARACTERS)[: MAX_CHARACTERS - len(end)] + end

    with pytest.raises(InputError) as caught:
        parse_seeds(text)

    assert caught.value.field == "seeds"


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("seeds", "1," * MAX_CHARACTERS),
        ("seeds", " " * MAX_CHARACTERS + "1"),
        ("size", "1" * 100_000),
        ("size", "x" * 1_000_000),
        ("steps", "1" * 1_000_000),
        ("steps", " 1" * 100_000),
        ("guidance", "1" * 1_000_000),
        ("guidance", "0." + "0" * 1_000_000 + "1"),
        ("guidance", "٣" * 1_000_000),
        ("mix", "5:.1," * MAX_MIX_CHARACTERS),
        ("mix", " " * (MAX_MIX_CHARACTERS + 1)),
    ],
)
def test_no_field_of_the_page_takes_a_text_without_end(field: str, text: str) -> None:
    """Each field has a length of its own, and its error shows only the beginning."""
    with pytest.raises(InputError) as caught:
        read_request(FormPayload(**{"seeds": "1", field: text}))

    assert caught.value.field == field
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "query",
    [
        "seeds=" + "1+++" * 16 + "x",
        "seeds=" + "1+++" * 2400 + "x",
        "seeds=" + "1%20" * 12_000,
        "seeds=" + "1%E3%80%80" * 2400 + "%00",
        "mix=" + "5:.5," * 12_000,
        "mix=" + "5:0." + "1" * 60_000,
        "size=" + "1" * 60_000,
        "steps=" + "1" * 60_000,
        "guidance=" + "1" * 60_000,
        "guidance=1." + "1" * 60_000,
        "model=" + "a" * 60_000,
        "model=" + "a." * 30_000 + "/",
        "model=a/b@" + "c" * 60_000,
        "seeds=" + "1," * 40_000,
    ],
)
def test_no_link_takes_long(query: str) -> None:
    """A link is opened by a plain visit: each of these is refused in one pass."""
    with pytest.raises(InputError) as caught:
        read_link(query)

    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("," * 5000, ",." * 2500),
        (" " * 5000, " " * 4999 + "x"),
        ("ab" * 2500, "ba " * 1600),
        ("狐" * 5000, "狐犬" * 2500),
        ("a " * 2500, "b a " * 1250),
        (", " * 2500, " ," * 2500),
    ],
)
def test_two_long_prompts_are_compared_within_a_bound(
    before: str, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two prompts of 5,000 characters in a stranger's picture kept the page busy for minutes."""
    asked: list[int] = []

    class Counted:
        def __init__(self, *, a: list[str], b: list[str], autojunk: bool) -> None:
            assert not autojunk
            asked.append(len(a) * len(b))

        def get_opcodes(self) -> list[tuple[str, int, int, int, int]]:
            return []

    monkeypatch.setattr("seedgrid.core.prompts.difflib.SequenceMatcher", Counted)
    compare_words(before, after)

    assert all(count <= MAX_COMPARISONS for count in asked)


def link(node: str) -> list[object]:
    return [node, 0]


def comfyui_graph(**nodes: tuple[str, dict[str, object]]) -> dict[str, str]:
    """The texts of a picture of ComfyUI's, with nodes added or replaced."""
    plain: dict[str, tuple[str, dict[str, object]]] = {
        "save": ("SaveImage", {"images": link("sampler")}),
        "sampler": (
            "KSampler",
            {"seed": 1, "positive": link("words"), "negative": link("words"), "steps": 2}
            | {"latent_image": link("empty"), "model": link("model"), "cfg": 3},
        ),
        "words": ("CLIPTextEncode", {"text": "a fox"}),
        "empty": ("EmptyLatentImage", {"width": 64, "height": 64}),
        "model": ("CheckpointLoaderSimple", {"ckpt_name": "x"}),
    }
    graph = {
        name: {"class_type": kind, "inputs": inputs}
        for name, (kind, inputs) in (plain | nodes).items()
    }
    return {"prompt": json.dumps(graph)}


def maze(depth: int = 40) -> dict[str, tuple[str, dict[str, object]]]:
    """Nodes that each lead to the next in five ways: more ways than anybody can walk."""
    names = ("text", "string", "value", "text_a", "text_b")
    return {
        f"maze{number}": ("X", dict.fromkeys(names, link(f"maze{number + 1}")))
        for number in range(depth)
    }


def many_inputs_before_one_reroute(size: int) -> dict[str, str]:
    inputs: dict[str, object] = {f"input{number}": link("around") for number in range(size)}
    values: dict[str, object] = {f"value{number}": 0 for number in range(size)}
    return comfyui_graph(
        words=("CLIPTextEncode", inputs | {"text": "a"}),
        around=("Reroute", values | {"end": link("empty")}),
    )


def many_loras_behind_a_maze(size: int) -> dict[str, str]:
    loras: dict[str, object] = {f"lora_{number}": link("maze0") for number in range(size)}
    return comfyui_graph(model=("Loader", loras), **maze())


def one_long_kind(size: int) -> dict[str, str]:
    inputs: dict[str, object] = {f"input{number}": link("words") for number in range(size)}
    return comfyui_graph(words=("ReRoute" + "x" * 20 * size, inputs), model=("y" * size, inputs))


@pytest.mark.parametrize(
    "texts_of",
    [
        many_inputs_before_one_reroute,
        many_loras_behind_a_maze,
        one_long_kind,
        lambda size: {"parameters": "Steps: 1, Seed: 2, " + "a: b, " * 10 * size},
        lambda size: {"parameters": "Steps: 1, Seed: 2, Noise mix: " + "1:.5," * 10 * size},
        lambda size: {"parameters": "<lora:a:1>" * 10 * size + "\nSteps: 1, Seed: 2, Size: 1x1"},
        lambda size: {"Dream": '"' + "[a]" * 10 * size + '" -s1 -S2' + " -s1" * size},
        lambda size: {"prompt": "[" * size},
        lambda size: {"sd-metadata": json.dumps({"image": {"variations": [{}] * size}})},
    ],
)
def test_no_foreign_text_is_more_work_than_its_length(
    texts_of: Callable[[int], dict[str, str]],
) -> None:
    """Work is counted in calls: twice the text is at most twice the work, and not much for each.

    A graph of 122 KB took 2.4 s and four times as long for twice as much; one of 22 KB took 8.6 s.
    """
    short, long = texts_of(400), texts_of(800)

    once, twice = calls_to_read(short), calls_to_read(long)

    assert twice <= 2.6 * once + 1000
    assert twice <= 100 * len(next(iter(long.values()))) + 1_500_000


def calls_to_read(texts: dict[str, str]) -> int:
    """Count the calls, of Python's functions and of C's, that it takes to read texts."""
    count = 0

    def on_call(frame: FrameType, event: str, argument: object) -> None:  # noqa: ARG001
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(on_call)
    try:
        for read in (invokeai.read, a1111.read, comfyui.read):
            with contextlib.suppress(PictureError):
                read(texts)
    finally:
        sys.setprofile(None)
    return count
