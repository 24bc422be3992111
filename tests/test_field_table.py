"""The table of fields: each setting stands there once, and everything else is made of it."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import fields as attributes
from pathlib import Path

import pytest
from command import ROOT, run_python
from hypothesis import given, settings
from hypothesis import strategies as st
from pictures import make_recipe
from typer.main import get_command

from seedgrid.cli.program import app as program
from seedgrid.core.field import Field
from seedgrid.core.fields import FIELDS, ON_PAGE, OPTIONS
from seedgrid.core.recipe import NoiseShare, Recipe
from seedgrid.core.request import Request, ask_again, resolve
from seedgrid.diffusion.backend import Placement
from seedgrid.export import script
from seedgrid.locales import english
from seedgrid.testing.fake import FAKE_CARD
from seedgrid.web.serializers.form import FormPayload, read_request, write_fields

WORDS = {
    "bar": ("label", "placeholder"),
    "words": ("label", "placeholder", "info"),
    "lines": ("label", "placeholder", "info"),
    "text": ("label", "placeholder", "info"),
    "number": ("label", "info"),
    "choice": ("label", "info"),
    "switch": ("label", "info"),
}


def filled_by(*belongs: str) -> list[str]:
    return [name for row in FIELDS if row.scope in belongs for name in row.attributes]


def names_of(kind: type) -> set[str]:
    return {one.name for one in attributes(kind)}


def test_each_attribute_of_a_request_has_one_field() -> None:
    """Nothing can be asked for that is not in the table."""
    assert sorted(filled_by("recipe")) == sorted(names_of(Request))
    assert set(filled_by("placement")) <= names_of(Placement)
    assert len({row.name for row in FIELDS}) == len(FIELDS)


def test_each_setting_of_a_recipe_has_its_attribute_and_a_check() -> None:
    """Without a `check` in its row, what was asked for never reaches the recipe."""
    read_by_resolve = {"seeds", "portable", "loras", "upscaler", "model"}
    checked = {name for row in FIELDS if row.check for name in row.attributes}
    assert names_of(Request) - checked == read_by_resolve
    assert checked <= set(Recipe.model_fields), "add the attribute to Recipe, with a default"


def test_the_exported_script_is_told_every_attribute_of_a_recipe() -> None:
    """What the script leaves out would come out otherwise."""
    told = re.findall(r"recipe\.(\w+)", Path(script.__file__).read_text())
    only_shown = {"typed_prompt"}
    assert set(Recipe.model_fields) - set(told) == only_shown


@pytest.mark.parametrize("row", ON_PAGE, ids=lambda row: row.name)
def test_the_page_has_its_words(row: Field) -> None:
    """Label, and placeholder or hint, are there to be translated; lists translate by option."""
    assert row.widget is not None
    assert {f"{row.name}_{kind}" for kind in WORDS[row.widget]} <= set(english().words)


@pytest.mark.parametrize("command", ["grid", "matrix"])
def test_the_command_line_has_an_option_for_each_field(command: str) -> None:
    """With the help of the table; what is not given stays open."""
    options = {one.name: one for one in get_command(program).commands[command].params}  # type: ignore[attr-defined] # a group
    for row in OPTIONS:
        assert options[row.name].help == row.help
        assert options[row.name].default == row.default


@settings(deadline=None)
@given(
    guidance=st.floats(0, 30).map(lambda value: value + 0.0),
    steps=st.integers(1, 100),
    width=st.sampled_from([64, 96, 256]),
    negative=st.text("fog, \n", max_size=20),
    mix=st.lists(
        st.builds(NoiseShare, seed=st.integers(0, 2**32 - 1), weight=st.floats(0.01, 1)), max_size=3
    ),
)
def test_what_a_field_shows_is_read_again(
    guidance: float, steps: int, width: int, negative: str, mix: list[NoiseShare]
) -> None:
    """Written into the fields of the page and read from there, a recipe is the same."""
    recipe = make_recipe(
        guidance_scale=guidance,
        num_inference_steps=steps,
        width=width,
        negative_prompt=negative,
        noise_mix=tuple(mix),
        model=FAKE_CARD.ref,
        scheduler=FAKE_CARD.scheduler,
    )
    again = read_request(FormPayload(**write_fields(ask_again(recipe))))
    assert resolve(again, FAKE_CARD) == (recipe,)


# One row, and the words of its label. Its use is there: backends read `Placement.threads`.
ROW = """    "strength": Field(
        "threads",
        scope="placement",
        attributes=("threads",),
        value_type=int,
        widget="number",
        help="Threads of one operation.",
    ),
"""
PROBE = """
import json
import re
from typer.main import get_command
from seedgrid.cli.options import make_placement
from seedgrid.cli.program import app
from seedgrid.web.serializers.form import FormPayload, RoundPayload, read_placement
from seedgrid.core.prompts import GUIDE_SUFFIXES
from seedgrid.web.server.page import document

html = document("ko", GUIDE_SUFFIXES).decode()
options = get_command(app).commands["grid"].params
print(json.dumps({
    "ids": sorted(re.findall('<div id="(sg-[^"]+)" class="sg-setting', html)),
    "label": re.search("Threads [(]ko[)]", html)[0],
    "page": read_placement(FormPayload(threads="2")),
    "card": read_placement(RoundPayload(vary=("a",), threads="3")),
    "option": [one.help for one in options if one.name == "threads"],
    "command": make_placement({"threads": 5, "device": "cpu"}).threads,
    "errors stand at it": '"threads"' in html.split('"fields"')[1],
}))
"""


def test_a_new_setting_is_one_row(tmp_path: Path) -> None:
    """A row and its label are enough for the form, the card's rounds, the options and errors."""
    package = tmp_path / "seedgrid"
    shutil.copytree(ROOT / "seedgrid", package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    table = package / "core" / "fields.py"
    before, mark, after = table.read_text().partition('    "model": Field(\n        "device"')
    assert mark
    table.write_text(before + ROW + mark + after)
    for path in (package / "locales").glob("*.json"):
        told = json.loads(path.read_text())
        told["fields"]["threads_label"] = f"Threads ({path.stem})"
        path.write_text(json.dumps(told))

    done = run_python("-c", PROBE, cwd=tmp_path)

    folded = [f"sg-{row.id}" for row in ON_PAGE if row.widget != "bar"]
    assert json.loads(done.stdout) == {
        "ids": sorted([*folded, "sg-threads"]),
        "label": "Threads (ko)",
        "page": {"threads": 2},
        "card": {"threads": 3},
        "option": ["Threads of one operation."],
        "command": 5,
        "errors stand at it": True,
    }
