"""The command line: its contract with scripts, and one line for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import ROOT, SMALL, rows, run_python

from seedgrid.cli import main
from seedgrid.core.prompts import GUIDE_SUFFIXES
from seedgrid.formats import png
from seedgrid.testing.fake import FakeBackend, Fault

pytestmark = pytest.mark.usefixtures("library_folder")


@pytest.mark.usefixtures("fake")
def test_a_grid_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """One object a line with what scripts rely on; the file is there and says the same."""
    assert main(["grid", "a fox", "--seeds", "3-4", "--json", *SMALL]) == 0
    printed = capsys.readouterr()
    assert [row["seed"] for row in rows(printed.out)] == [3, 4]
    for row in rows(printed.out):
        record = png.read(Path(row["path"]))
        assert row["recipe_id"] == record.recipe.id
        assert row["pixels_sha256"] == record.pixels_sha256
        assert (row["prompt"], row["picture_id"]) == ("a fox", record.lineage.picture_id)
        assert row["library_path"] == row["path"]
        assert row["lock"] == "not tested here"
    assert printed.err == ""


@pytest.mark.usefixtures("fake")
def test_out_holds_copies_and_the_sheet(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """`path` is the copy; the 2x2 sheet lies beside the copies; nothing unfinished is left."""
    out = tmp_path / "deep" / "out"
    assert main(["grid", "a fox", "--out", str(out), "--json", *SMALL]) == 0
    paths = [Path(row["path"]) for row in rows(capsys.readouterr().out)]
    (sheet,) = out.glob("sheet-*.png")
    assert sorted(out.iterdir()) == sorted([*paths, sheet])
    first, third = png.read_pixels(paths[0]), png.read_pixels(paths[2])
    pixels = png.read_pixels(sheet)
    assert pixels.shape == (128, 128, 3)
    assert (pixels[:64, :64] == first).all()
    assert (pixels[64:, :64] == third).all()


@pytest.mark.usefixtures("fake")
def test_refine_takes_a_file_or_an_id(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Four variations of the guide by default, all on the picture's seed; or one's own words."""
    main(["grid", "a fox", "--seeds", "9", "--out", str(tmp_path), "--json", *SMALL])
    (parent,) = rows(capsys.readouterr().out)
    assert main(["refine", parent["path"], "--json"]) == 0
    children = rows(capsys.readouterr().out)
    assert [c["change"] for c in children] == list(GUIDE_SUFFIXES)
    assert {(c["seed"], c["parent_id"]) for c in children} == {(9, parent["picture_id"])}
    arguments = ["--vary", "in snow", "--vary", ", red", "--prompt", "a cat", "--json"]
    assert main(["refine", parent["picture_id"][:10], *arguments]) == 0
    prompts = [row["prompt"] for row in rows(capsys.readouterr().out)]
    assert prompts == ["a cat in snow", "a cat, red"]


@pytest.mark.usefixtures("fake")
def test_a_matrix_and_its_sheet(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Prompts are rows, also those of braces, seeds are columns; the sheet has that shape."""
    prompts = ["a {fox|cat}", "a cat"]
    assert main(["matrix", *prompts, "--seeds", "1,5,9", "--out", str(tmp_path), *SMALL]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 6
    (sheet,) = tmp_path.glob("sheet-*.png")
    assert png.read_pixels(sheet).shape == (128, 192, 3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["grid", ""], "prompt is empty"),
        (["grid"], "Missing argument"),
        (["grid", "a", "--seeds", "-1"], "-1 is out of range"),
        (["grid", "a", "--size", "7"], "7x7"),
        (["grid", "a", "--steps", "0"], "“0” is no number of steps"),
        (["grid", "a", "--steps", "many"], "--steps"),
        (["grid", "a", "--guidance", "1e38"], "1e+38"),
        (["grid", "a", "--scheduler", "Magic"], "“Magic”"),
        (["grid", "a", "--model", "/no/such/model"], "/no/such/model"),
        (["grid", "a", "--model", "no/such-model"], "no/such-model"),
        (["grid", "a\x00b"], "U+0000"),
        (["grid", "a", "--out", "/dev/null/out"], "/dev/null/out"),
        (["grid", "a", "--bogus"], "--bogus"),
        (["refine", "/no/such.png"], "/no/such.png"),
        (["refine", "README.md"], "no picture that SeedGrid reads"),
        (["matrix", "a", "b"], "--seeds"),
        (["models", "--download", "not a hub id"], "not a hub id"),
        (["verify", "x" * 300], "xxx"),
        (["final", "a", "--strength", "0.3", "--upscaler", "x"], "--strength or --upscaler"),
        (["export", "a", "--with-model"], "--bundle"),
        (["probe", "--lora", "no-such-lora"], "no-such-lora"),
        (["bogus"], "bogus"),
    ],
    ids=str,
)
def test_bad_input_is_one_line_and_exit_2(
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each mistake gives exactly one line that names it, and nothing on standard output."""
    monkeypatch.chdir(ROOT)
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("seedgrid: ")
    assert printed.err.count("\n") == 1
    assert words in printed.err


def test_a_pickle_checkpoint_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A .ckpt file is not opened, whatever is in it."""
    (tmp_path / "model.ckpt").write_bytes(b"cos\nsystem\n(S'touch pwned'\ntR.")
    assert main(["grid", "a", "--model", str(tmp_path / "model.ckpt")]) == 2
    assert "pickle" in capsys.readouterr().err


def test_bad_input_needs_no_torch() -> None:
    """A mistake is told without the seconds that importing torch takes."""
    code = (
        "import sys; from seedgrid.cli import main\n"
        "for wrong in (['a', '--seeds', 'abc'], ['a', '--size', '7'], [''], ['--no'],\n"
        "              ['a', '--start', '~no-user.png']):\n"
        "    assert main(['grid', *wrong]) == 2\n"
        "assert 'torch' not in sys.modules"
    )
    run_python("-c", code)


def test_a_failure_exits_1(fake: FakeBackend, capsys: pytest.CaptureFixture[str]) -> None:
    """What was started and failed exits 1 with one line; finished pictures were printed."""
    fake.faults.extend([None, Fault()])
    assert main(["grid", "a fox", "--seeds", "0-7", "--json", *SMALL]) == 1
    printed = capsys.readouterr()
    assert len(rows(printed.out)) == 4
    assert "no picture" in printed.err
    assert printed.err.count("\n") == 1


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a command the help is shown; every command of the contract is in it."""
    assert main([]) == 0
    text = capsys.readouterr().out
    painting, looking = ("ui", "grid", "refine", "matrix"), ("show", "diff", "library")
    for command in (*painting, *looking, "models", "doctor"):
        assert f"\n  {command} " in text
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("seedgrid ")
