"""The command line: its contract with scripts. Errors in this process, real work in others."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

import seedgrid.backend.deferred
from seedgrid import png
from seedgrid.backend.fake import FakeBackend, Fault
from seedgrid.cli import main
from seedgrid.library import Library

ROOT = Path(__file__).parent.parent
SMALL = ["--size", "64", "--steps", "2"]


@pytest.fixture(autouse=True)
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep pictures of the tests away from the user's own."""
    monkeypatch.setenv("SEEDGRID_LIBRARY", str(tmp_path / "library"))
    monkeypatch.delenv("SEEDGRID_MODEL", raising=False)
    return tmp_path / "library"


@pytest.fixture
def fake(backend: FakeBackend, monkeypatch: pytest.MonkeyPatch) -> FakeBackend:
    """Paint landscapes instead of loading a model."""
    monkeypatch.setattr(seedgrid.backend.deferred, "DeferredBackend", lambda: backend)
    return backend


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


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
    assert [c["change"] for c in children] == [
        ", highly realistic",
        ", artsy",
        ", trending",
        ", colorful",
    ]
    assert {(c["seed"], c["parent_id"]) for c in children} == {(9, parent["picture_id"])}
    arguments = ["--vary", "in snow", "--vary", ", red", "--prompt", "a cat", "--json"]
    assert main(["refine", parent["picture_id"][:10], *arguments]) == 0
    prompts = [row["prompt"] for row in rows(capsys.readouterr().out)]
    assert prompts == ["a cat in snow", "a cat, red"]


@pytest.mark.usefixtures("fake")
def test_a_matrix_and_its_sheet(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Prompts are rows, seeds are columns; the sheet has that shape."""
    assert (
        main(["matrix", "a fox", "a cat", "--seeds", "1,5,9", "--out", str(tmp_path), *SMALL]) == 0
    )
    assert len(capsys.readouterr().out.splitlines()) == 6
    (sheet,) = tmp_path.glob("sheet-*.png")
    assert png.read_pixels(sheet).shape == (128, 192, 3)


def test_what_is_remembered_says_so(fake: FakeBackend, capsys: pytest.CaptureFixture[str]) -> None:
    """The second time nothing is painted, unless `--fresh` asks for it."""
    for arguments, remembered, calls in ([], False, 1), ([], True, 1), (["--fresh"], False, 2):
        main(["grid", "a fox", "--seeds", "1", "--json", *SMALL, *arguments])
        (row,) = rows(capsys.readouterr().out)
        assert (row["remembered"], len(fake.calls)) == (remembered, calls)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["grid", ""], "prompt is empty"),
        (["grid"], "Missing argument"),
        (["grid", "a", "--seeds", "-1"], "-1 is out of range"),
        (["grid", "a", "--seeds", "4294967296"], "4294967296 is out of range"),
        (["grid", "a", "--seeds", "1.5"], "“1.5”"),
        (["grid", "a", "--seeds", "abc"], "“abc”"),
        (["grid", "a", "--seeds", ""], "not a list of seeds"),
        (["grid", "a", "--size", "7"], "7x7"),
        (["grid", "a", "--size", "100000"], "100000x100000"),
        (["grid", "a", "--size", "100000x100000"], "100000x100000"),
        (["grid", "a", "--size", "wide"], "“wide”"),
        (["grid", "a", "--size", "0x0"], "0x0"),
        (["grid", "a", "--steps", "0"], "0 steps"),
        (["grid", "a", "--steps", "-3"], "-3 steps"),
        (["grid", "a", "--steps", "many"], "--steps"),
        (["grid", "a", "--guidance", "nan"], "nan"),
        (["grid", "a", "--guidance", "1e38"], "1e+38"),
        (["grid", "a", "--width", "0"], "Lock width 0"),
        (["grid", "a", "--dtype", "int8"], "“int8”"),
        (["grid", "a", "--scheduler", "Magic"], "“Magic”"),
        (["grid", "a", "--determinism", "maybe"], "“maybe”"),
        (["grid", "a", "--model", "/no/such/model"], "/no/such/model"),
        (["grid", "a", "--model", "no/such-model"], "no/such-model"),
        (["grid", "a", "--model", "../../etc"], "“etc” is not a model"),
        (["grid", "a\x00b"], "U+0000"),
        (["grid", "a", "--out", "/dev/null/out"], "/dev/null/out"),
        (["grid", "a", "--bogus"], "--bogus"),
        (["refine", "/no/such.png"], "/no/such.png"),
        (["refine", "0123456789abcdef"], "0123456789abcdef"),
        (["refine", "README.md"], "not a PNG"),
        (["refine"], "Missing argument"),
        (["matrix", "a", "b"], "--seeds"),
        (["show", "/no/such.png"], "/no/such.png"),
        (["diff", "/no/such.png", "/no/such.png"], "/no/such.png"),
        (["models", "--download", "not a hub id"], "not a hub id"),
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


@pytest.mark.parametrize(
    "arguments",
    [["grid", "a", "--seeds", "abc"], ["grid", "a", "--size", "7"], ["grid", ""], ["grid", "--no"]],
    ids=str,
)
def test_bad_input_needs_no_torch(arguments: list[str]) -> None:
    """A mistake is told without the seconds that importing torch takes."""
    code = (
        "import sys; from seedgrid.cli import main\n"
        f"code = main({arguments!r}); assert 'torch' not in sys.modules; sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 2, done.stderr


def test_a_missing_device_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """A device that is not there is an error that names those that are, never a fallback."""
    assert main(["grid", "a", "--device", "cuda:77"]) == 2
    printed = capsys.readouterr()
    assert "“cuda:77”" in printed.err
    assert printed.err.count("\n") == 1


def test_a_failure_exits_1(fake: FakeBackend, capsys: pytest.CaptureFixture[str]) -> None:
    """What was started and failed exits 1 with one line; finished pictures were printed."""
    fake.faults.extend([None, Fault()])
    assert main(["grid", "a fox", "--seeds", "0-7", "--json", *SMALL]) == 1
    printed = capsys.readouterr()
    assert len(rows(printed.out)) == 4
    assert "no picture" in printed.err
    assert printed.err.count("\n") == 1


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
    capsys: pytest.CaptureFixture[str], library: Path
) -> None:
    """A damaged file is found once (exit 1), put away, and then there is nothing to find."""
    main(["grid", "a fox", "--seeds", "1-2", "--json", *SMALL])
    row = rows(capsys.readouterr().out)[0]
    assert main(["library", "check"]) == 0
    Path(row["path"]).write_bytes(b"torn")
    assert main(["library", "check", "--look-only"]) == 1
    assert main(["library", "check", "--json"]) == 1
    capsys.readouterr()
    assert main(["library", "check", "--library", str(library), "--json"]) == 0
    (report,) = rows(capsys.readouterr().out)
    assert report["clean"] is True


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
    assert len(fake.calls) == 1
    path = Path(grid[0]["path"])
    path.write_bytes(_with_one_pixel_changed(path))
    assert main(["verify", str(path), grid[1]["picture_id"]]) == 1
    words = capsys.readouterr().out.split()
    assert (words[0], "identical" in words) == ("drifted", True)


def _with_one_pixel_changed(path: Path) -> bytes:
    record, pixels = png.read(path), png.read_pixels(path)
    pixels[0, 0, 0] ^= 1
    image, buffer, texts = Image.fromarray(pixels), io.BytesIO(), PngInfo()
    for key, text in png.read_texts(path).items():
        texts.add_itxt(key, text)
    image.save(buffer, "PNG", pnginfo=texts)
    assert png.read(buffer.getvalue()) == record
    return buffer.getvalue()


@pytest.mark.usefixtures("fake")
def test_export_writes_what_was_asked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A script, a bundle and a sheet of the whole round, found by one of its pictures."""
    main(["grid", "a fox", "--json", *SMALL])
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


@pytest.mark.usefixtures("fake")
def test_import_takes_pictures_in(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A folder joins another library; the second time all is known; a bad file is one line."""
    out, other = tmp_path / "out", ["--library", str(tmp_path / "other")]
    main(["grid", "a fox", "--out", str(out), *SMALL])
    (sheet,) = out.glob("sheet-*")
    sheet.unlink()
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


def test_probe_proves_the_lock_on_the_bundled_model(capsys: pytest.CaptureFixture[str]) -> None:
    """The lock holds here at the default width; the answer is remembered."""
    arguments = ["probe", "--size", "64", "--json"]
    assert main(arguments) == 0
    (report,) = rows(capsys.readouterr().out)
    assert (report["holds"], report["proven_width"]) == (True, 4)
    main(arguments)
    assert rows(capsys.readouterr().out)[0]["remembered"] is True


@pytest.mark.usefixtures("fake")
def test_doctor_paints_a_picture_twice(capsys: pytest.CaptureFixture[str], library: Path) -> None:
    """The report has versions and what is in force; its self test leaves no picture behind."""
    assert main(["doctor", "--json"]) == 0
    (report,) = rows(capsys.readouterr().out)
    assert report["reproduces"] is True
    assert report["versions"]["pillow"]
    assert not library.exists()


def test_doctor_says_no(fake: FakeBackend, capsys: pytest.CaptureFixture[str]) -> None:
    """A backend that does not reproduce is found out: exit 1."""
    stale = np.random.Generator(np.random.PCG64(0))
    fake._generators = lambda recipes: [stale] * len(recipes)
    assert main(["doctor"]) == 1
    assert "different bits" in capsys.readouterr().err


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a command the help is shown; every command of the contract is in it."""
    assert main([]) == 0
    text = capsys.readouterr().out
    for command in (
        "ui",
        "grid",
        "refine",
        "matrix",
        "show",
        "diff",
        "library",
        "models",
        "doctor",
    ):
        assert f"\n  {command} " in text
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("seedgrid ")


# In other processes

SLOW_FAKE = """
import sys
import seedgrid.backend.deferred
from seedgrid.backend.fake import FakeBackend
seedgrid.backend.deferred.DeferredBackend = lambda: FakeBackend(step_delay_s=0.05)
from seedgrid.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def slow_grid(library: Path) -> Iterator[subprocess.Popen[str]]:
    """`grid` of eight pictures in a process of its own, two seconds a batch."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            SLOW_FAKE,
            *["grid", "fox", "--seeds", "0-7", "--json", "--size", "64", "--steps", "40"],
        ],
        cwd=ROOT,
        env={**os.environ, "SEEDGRID_LIBRARY": str(library)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


def test_lines_come_as_pictures_are_safe(slow_grid: subprocess.Popen[str]) -> None:
    """The first four lines are there while the second batch is still being painted."""
    assert slow_grid.stdout is not None
    first = [json.loads(slow_grid.stdout.readline()) for _ in range(4)]
    assert slow_grid.poll() is None
    assert all(Path(row["path"]).is_file() for row in first)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals on Windows")
def test_progress_on_a_terminal_leaves_standard_output_alone(library: Path) -> None:
    """With standard error on a terminal there is a bar on it, and all lines go to the pipe."""
    import pty

    screen, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_FAKE, "grid", "fox", "--json", "--size", "64", "--steps", "9"],
        cwd=ROOT,
        env={**os.environ, "SEEDGRID_LIBRARY": str(library), "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=terminal,
        text=True,
    )
    os.close(terminal)
    output, _ = process.communicate(timeout=60)
    assert [row["seed"] for row in rows(output)] == [0, 1, 2, 3]
    assert b"pictures, steps" in os.read(screen, 100_000)
    os.close(screen)


def test_ctrl_c_keeps_what_is_finished(slow_grid: subprocess.Popen[str], library: Path) -> None:
    """The first Ctrl+C stops within a step, says how many are kept, and exits 130."""
    assert slow_grid.stdout is not None
    first = [json.loads(slow_grid.stdout.readline()) for _ in range(4)]
    time.sleep(0.2)
    slow_grid.send_signal(signal.SIGINT)
    rest, complaint = slow_grid.communicate(timeout=30)
    assert slow_grid.returncode == 130
    assert rest == ""
    assert complaint == "seedgrid: Stopped: 4 of 8 pictures are kept.\n"
    with Library(library) as kept:
        assert {e.id for e in kept.search().entries} == {row["picture_id"] for row in first}


def test_a_reader_that_leaves_is_no_traceback(slow_grid: subprocess.Popen[str]) -> None:
    """`seedgrid grid … | head -1` ends quietly."""
    assert slow_grid.stdout is not None
    slow_grid.stdout.readline()
    slow_grid.stdout.close()
    assert slow_grid.stderr is not None
    assert "Traceback" not in slow_grid.stderr.read()
    assert slow_grid.wait(timeout=30) == 1
