"""The opening page: four pictures of the model that ships, honest about who painted them."""

from __future__ import annotations

from pathlib import Path

from seedgrid.core.prompts import GUIDE_SUFFIXES
from seedgrid.formats import png
from seedgrid.studio import Studio
from seedgrid.web.serializers.stage import opening_cells, opening_files
from seedgrid.web.server.routes import PageServices, starting_suffixes
from seedgrid.web.state.page_state import PageState

ME = PageState(visitor="0" * 32)


def test_the_four_are_of_the_model_that_ships(tmp_path: Path) -> None:
    """After new weights: `python -m tools.training opening`, or the page shows none of them."""
    records = [png.read_checked(path)[0] for path in opening_files()]
    assert [record.lineage.cell for record in records] == [0, 1, 2, 3]
    assert len({record.lineage.round_id for record in records}) == 1
    with Studio("bundled", tmp_path) as studio:
        assert {record.recipe.model for record in records} == {studio.card().ref}
        assert [cell["prompt"] for cell in opening_cells(studio)] == [
            record.recipe.prompt for record in records
        ]
        assert len(starting_suffixes(studio)) == 4
        assert starting_suffixes(studio) != GUIDE_SUFFIXES


def test_a_click_takes_them_in_as_pictures_from_elsewhere(
    studio: Studio, services: PageServices
) -> None:
    """The four are the round on the stage, none of them a memory; once, however often."""
    for _ in range(2):
        update = services.library.on_example(3, ME)
    assert [cell["state"] for cell in update.stage["cells"]] == ["done"] * 4
    assert update.stage["picked"] == 2
    assert update.picked["checked"] is False
    shown = update.place["fields"]
    assert (shown["prompt"], shown["seeds"]) == ("rocket, neon", "5-8")
    assert shown["more_prompts"] == ""
    assert len(studio.library.work(str(update.state and update.state.work))) == 4
