"""The studio: the whole workflow in a few words, on the fake backend and a real library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command import run_python
from pictures import saved_again
from refusing import refused
from reports import report_for

from seedgrid.core.errors import InputError, LibraryError, Notice
from seedgrid.core.request import Request
from seedgrid.diffusion.probe_results import record_width
from seedgrid.formats import png
from seedgrid.studio import Studio, default_library, default_model
from seedgrid.testing.fake import FakeBackend

SMALL: Any = {"width": 64, "height": 64, "num_inference_steps": 2}


def test_the_lineage_of_a_refinement(studio: Studio) -> None:
    """A variation knows its parent, the tree it belongs to, its cell, and what was changed."""
    grid = studio.grid("a fox", **SMALL)
    finals = studio.refine(grid[1], [", artsy", "in snow"])
    parent = grid[1].lineage
    assert {f.lineage.parent_id for f in finals} == {grid[1].id}
    assert {f.lineage.work_id for f in finals} == {parent.work_id}
    assert len({f.lineage.round_id for f in finals} - {parent.round_id}) == 1
    assert [f.lineage.change for f in finals] == [", artsy", "in snow"]
    assert [f.lineage.cell for f in finals] == [0, 1]


def test_settings_vary_like_words(studio: Studio, backend: FakeBackend) -> None:
    """All on the seed of the pick; those of equal settings share a batch."""
    grid = studio.grid("a fox", **SMALL)
    backend.calls.clear()
    lines = ["guidance 3", ", artsy", "steps 4", "guidance 3, at night"]
    finals = studio.refine(grid[1], lines)
    assert [final.lineage.change for final in finals] == [
        "guidance 3",
        ", artsy",
        "steps 4",
        ", at night, guidance 3",
    ]
    assert [len(call.recipes) for call in backend.calls] == [2, 1, 1]
    assert {final.seed for final in finals} == {grid[1].seed}
    assert {final.recipe.lock_width for final in finals} == {grid[1].recipe.lock_width}


def test_a_picture_whose_file_is_lost_can_be_gone_on_from(studio: Studio) -> None:
    """Its recipe is kept, by its id too; only a copy of the file cannot be had."""
    grid = studio.grid("a fox", **SMALL)
    grid[1].path.unlink()
    studio.library.trash(grid[2].id)

    for number in (1, 2):
        (final,) = studio.refine(grid[number].id, [", artsy"])
        assert final.seed == grid[number].seed
        assert final.lineage.parent_id == grid[number].id
    with refused(LibraryError, "picture_lost"):
        grid[1].save(studio.library_folder / "copy.png")
    with pytest.raises(OSError, match="irectory"):
        grid[0].save(studio.library_folder)
    assert not list(studio.library_folder.parent.glob("*.part"))


def test_refining_a_file_from_elsewhere(studio: Studio, elsewhere: Studio, tmp_path: Path) -> None:
    """A PNG of another library can be refined; it joins this one, so that the tree is whole."""
    file = elsewhere.grid("a fox", seeds=[4], **SMALL)[0].save(tmp_path / "fox.png")
    (final,) = studio.refine(file, [", artsy"])
    parent_id = final.lineage.parent_id
    assert parent_id == png.read(file).lineage.picture_id
    assert studio.library.get(parent_id).recipe.seed == 4
    file.write_bytes(saved_again(file.read_bytes()))
    assert studio.refine(file, [", neon"])[0].lineage.parent_id == parent_id


def test_bad_input_starts_nothing(studio: Studio, backend: FakeBackend) -> None:
    """A mistake is told before a folder is made or a thread started."""
    for wrong in ({"prompt": ""}, {"seeds": "1.5"}, {"width": 7}, {"num_inference_steps": 0}):
        with pytest.raises(InputError):
            studio.grid(**({"prompt": "a fox"} | wrong))
    assert not studio.library_folder.exists()
    assert backend.calls == []


def test_more_pictures_than_a_run_may_paint_are_refused_before_any_is_planned(
    studio: Studio, backend: FakeBackend
) -> None:
    """Prompts, choices in braces and seeds are counted together."""
    choices = f"a fox {{{'|'.join(map(str, range(200)))}}}"
    with pytest.raises(InputError) as caught:
        studio.grid(choices, seeds="0-9")
    assert (caught.value.code, caught.value.data["value"]) == ("pictures_count", 2000)
    assert not backend.calls


def test_what_is_known_is_remembered_after_a_restart(tmp_path: Path) -> None:
    """The same grid in a new studio comes from the library, bit for bit, without painting."""
    hashes = []
    for expected_calls in (1, 0):
        backend = FakeBackend()
        with Studio(library=tmp_path, backend=backend) as studio:
            grid = studio.grid("a fox", **SMALL)
            hashes.append([picture.pixels_sha256 for picture in grid])
        assert len(backend.calls) == expected_calls
    assert hashes[0] == hashes[1]


def test_a_narrower_batch_than_the_parent_had_is_told(
    studio: Studio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a test said no, variations are as narrow as the lock holds, and the answer says so."""
    monkeypatch.setenv("SEEDGRID_CACHE", str(tmp_path))
    parent = studio.grid("a fox", seeds=[1], **SMALL)[0]
    before = studio.start_refine(parent, [", artsy"])
    record_width(parent.recipe, report_for(parent.recipe, tested=1))
    words = studio.start_refine(parent, [", colorful"])
    noise = studio.start_variations(parent, weight=0.1)
    again = studio.start_again([parent])
    portable = studio.start_grid(Request(prompt="a fox", seeds=(1,), portable=True))
    runs = (before, words, noise, again, portable)
    assert [run.jobs[0].recipe.lock_width for run in runs] == [4, 1, 1, 4, 4]
    told = Notice("width_lowered", width=1, usual=4)
    assert [run.notices for run in runs] == [(), (told,), (told,), (), ()]
    assert str(told).startswith("Computed in batches of 1, not 4")


def test_defaults_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """SEEDGRID_MODEL and SEEDGRID_LIBRARY name the defaults; without them there are others."""
    monkeypatch.setenv("SEEDGRID_MODEL", "org/model")
    monkeypatch.setenv("SEEDGRID_LIBRARY", str(tmp_path))
    assert (default_model(), default_library()) == ("org/model", tmp_path)
    monkeypatch.delenv("SEEDGRID_MODEL")
    monkeypatch.delenv("SEEDGRID_LIBRARY")
    assert default_model() == "bundled"
    assert default_library().name == "seedgrid"


def test_public_names_are_there() -> None:
    """Everything in `seedgrid.__all__` can be imported, and nothing heavy comes with the rest."""
    code = (
        "import sys, seedgrid\n"
        "for name in seedgrid.__all__: getattr(seedgrid, name)\n"
        "print([m for m in ('torch', 'diffusers', 'gradio') if m in sys.modules])"
    )
    assert run_python("-c", code).stdout.strip() == "[]"
