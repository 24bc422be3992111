"""The commands about pictures that are there: show, diff, verify, library, export, import."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
from command import SMALL, rows
from pictures import saved_again

from seedgrid.cli import main
from seedgrid.formats import png
from seedgrid.testing.fake import FakeBackend

pytestmark = pytest.mark.usefixtures("library_folder")


@pytest.mark.usefixtures("fake")
def test_show_says_what_is_in_a_picture(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Recipe, passport and lineage, as text and as JSON, without the library's help."""
    main(["grid", "a fox", "--seeds", "5", "--out", str(tmp_path), "--json", *SMALL])
    (row,) = rows(capsys.readouterr().out)
    assert main(["show", row["path"]]) == 0
    text = capsys.readouterr().out
    assert "a fox" in text
    assert row["recipe_id"] in text
    assert main(["show", row["path"], "--json"]) == 0
    (shown,) = rows(capsys.readouterr().out)
    assert shown["recipe"]["seed"] == shown["seed"] == 5
    assert shown["lineage"]["picture_id"] == row["picture_id"]
    assert shown["passport"]["device"] == "fake"


@pytest.mark.usefixtures("fake")
def test_diff_says_how_pictures_differ(capsys: pytest.CaptureFixture[str]) -> None:
    """Words that were added, settings that differ, the largest difference of pixels."""
    main(["grid", "a fox", "--seeds", "5", "--json", *SMALL])
    (parent,) = rows(capsys.readouterr().out)
    main(["refine", parent["path"], "--vary", ", artsy", "--json"])
    (child,) = rows(capsys.readouterr().out)
    assert main(["diff", parent["path"], child["path"]]) == 0
    assert "a fox{+, artsy+}" in capsys.readouterr().out
    main(["diff", parent["path"], child["path"], "--json"])
    (difference,) = rows(capsys.readouterr().out)
    assert difference["recipe"] == {"prompt": ["a fox", "a fox, artsy"]}
    before, after = (png.read_pixels(Path(row["path"])).astype(int) for row in (parent, child))
    assert difference["max_abs_diff"] == np.abs(before - after).max()
    main(["diff", parent["path"], parent["path"], "--json"])
    (same,) = rows(capsys.readouterr().out)
    assert same["recipe"] == same["passport"] == {}
    assert (same["max_abs_diff"], same["differing_pixels"]) == (0, 0)


@pytest.mark.usefixtures("fake")
def test_the_library_is_listed_newest_first(capsys: pytest.CaptureFixture[str]) -> None:
    """All pictures, or those whose prompt holds some words, at most so many."""
    for prompt in ("a red fox", "a cat"):
        main(["grid", prompt, "--seeds", "1-2", *SMALL])
    capsys.readouterr()
    assert main(["library", "--json"]) == 0
    listed = rows(capsys.readouterr().out)
    assert [(row["prompt"], row["seed"]) for row in listed] == [
        ("a cat", 2),
        ("a cat", 1),
        ("a red fox", 2),
        ("a red fox", 1),
    ]
    assert main(["library", "--search", "fox", "--limit", "1"]) == 0
    assert capsys.readouterr().out.count("a red fox") == 1


@pytest.mark.usefixtures("fake")
def test_the_library_is_checked_and_repaired(
    capsys: pytest.CaptureFixture[str], library_folder: Path
) -> None:
    """A damaged file is found and put away once; its picture is missing from then on."""
    main(["grid", "a fox", "--seeds", "1-2", "--json", *SMALL])
    row = rows(capsys.readouterr().out)[0]
    assert main(["library", "check"]) == 0
    Path(row["path"]).write_bytes(b"torn")
    assert main(["library", "check", "--look-only"]) == 1
    assert main(["library", "check", "--json"]) == 1
    capsys.readouterr()
    assert main(["library", "--json", "check", "--library", str(library_folder)]) == 1
    (report,) = rows(capsys.readouterr().out)
    assert not report["damaged"]
    assert len(report["missing"]) == 1
    database = library_folder / "library.db"
    database.write_bytes(b"text")
    assert main(["library", "check", "--look-only"]) == 1
    assert database.read_bytes() == b"text"
    Path(row["path"]).unlink(missing_ok=True)
    assert [main(["library", "check"]), main(["library", "check"])] == [1, 0]


def test_models_lists_the_bundled_one(capsys: pytest.CaptureFixture[str]) -> None:
    """The model in the box is there, whole, with its family."""
    assert main(["models", "--json"]) == 0
    bundled = next(row for row in rows(capsys.readouterr().out) if row["id"] == "bundled")
    assert bundled["family"] == "StableDiffusionPipeline"
    assert "problem" not in bundled


def test_verify_says_what_became_of_pictures(
    fake: FakeBackend, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Whole pictures are identical, an altered one is not (exit 1); sheets are left out."""
    main(["grid", "a fox", "--out", str(tmp_path / "out"), "--json", *SMALL])
    grid = rows(capsys.readouterr().out)
    fake.calls.clear()
    assert main(["verify", str(tmp_path / "out"), "--json"]) == 0
    verdicts = rows(capsys.readouterr().out)
    assert sorted(v["path"] for v in verdicts) == sorted(row["path"] for row in grid)
    assert {v["verdict"] for v in verdicts} == {"identical"}
    assert verdicts[0].keys() >= {"path", "verdict", "max_abs_diff", "psnr_db", "reasons"}
    assert len(fake.calls) == 1
    sheets = tmp_path / "sheets"
    sheets.mkdir()
    next((tmp_path / "out").glob("sheet-*.png")).rename(sheets / "sheet.png")
    assert main(["verify", str(sheets)]) == 2, "nothing was verified, so nothing holds"
    capsys.readouterr()
    path = Path(grid[0]["path"])
    path.write_bytes(saved_again(path.read_bytes(), pixel=(1, 2, 3)))
    assert main(["verify", str(path), grid[1]["picture_id"]]) == 1
    words = capsys.readouterr().out.split()
    assert (words[0], "identical" in words) == ("altered", True)
    assert main(["verify", str(tmp_path / "nowhere.png")]) == 2, "it is not there"


@pytest.mark.usefixtures("fake")
def test_export_writes_what_was_asked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A script, a bundle and a sheet of the whole round, found by one of its pictures."""
    main(["grid", "a fox", "--out", str(tmp_path / "out"), "--json", *SMALL])
    row = rows(capsys.readouterr().out)[0]
    files = {name: tmp_path / f"a{name}" for name in (".py", ".zip", ".png")}
    options = ["--script", str(files[".py"]), "--bundle", str(files[".zip"])]
    options += ["--sheet", str(files[".png"]), "--round"]
    assert main(["export", row["picture_id"], *options]) == 0
    compile(files[".py"].read_text(), "a.py", "exec")
    assert len([n for n in zipfile.ZipFile(files[".zip"]).namelist() if n.endswith(".png")]) == 4
    assert png.read_pixels(files[".png"]).shape[:2] >= (128, 128)
    assert main(["export", row["path"]]) == 0
    assert row["pixels_sha256"] in capsys.readouterr().out
    everything = [str(path) for path in (tmp_path / "out").glob("*.png")]  # With the contact sheet
    assert len(everything) == 5
    assert main(["export", *everything]) == 0
    assert main(["export", *everything, "--film", str(tmp_path / "a.webp")]) == 2


@pytest.mark.usefixtures("fake")
def test_import_takes_pictures_in(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A folder joins another library, its sheet left out; twice is once; a bad file is a line."""
    out, other = tmp_path / "out", ["--library", str(tmp_path / "other")]
    main(["grid", "a fox", "--out", str(out), *SMALL])
    capsys.readouterr()
    for is_new in (True, False):
        assert main(["import", str(out), "--json", *other]) == 0
        taken = rows(capsys.readouterr().out)
        assert [row["is_new"] for row in taken] == [is_new] * 4
    assert main(["library", "--json", *other]) == 0
    assert len(rows(capsys.readouterr().out)) == 4
    (out / "torn.png").write_bytes(b"torn")
    assert main(["import", str(out), *other]) == 1
    assert main(["import", str(out / "torn.png"), *other]) == 2
    assert capsys.readouterr().err.count("\n") == 2


def test_probe_proves_the_lock(capsys: pytest.CaptureFixture[str], sd: Path) -> None:
    """The lock holds here at the default width on a real pipeline; the answer is remembered."""
    arguments = ["probe", "--model", str(sd), "--size", "32", "--json"]
    assert main(arguments) == 0
    (report,) = rows(capsys.readouterr().out)
    assert (report["holds"], report["tested_width"]) == (True, 4)
    main(arguments)
    assert rows(capsys.readouterr().out)[0]["remembered"] is True


@pytest.mark.usefixtures("fake")
def test_doctor_paints_a_picture_twice(
    capsys: pytest.CaptureFixture[str], library_folder: Path
) -> None:
    """The report has versions and what is in force; its self test leaves no picture behind."""
    assert main(["doctor", "--json"]) == 0
    printed = capsys.readouterr()
    assert "does not know" not in printed.err
    (report,) = rows(printed.out)
    assert report["reproduces"] is True
    assert report["versions"]["pillow"]
    assert not library_folder.exists()


def test_doctor_says_no(fake: FakeBackend, capsys: pytest.CaptureFixture[str]) -> None:
    """A backend that does not reproduce is found out: exit 1."""
    stale = np.random.Generator(np.random.PCG64(0))
    fake._generators = lambda recipes: [stale] * len(recipes)
    assert main(["doctor"]) == 1
    assert "different bits" in capsys.readouterr().err
