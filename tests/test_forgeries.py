"""Forgeries: whatever is done to a picture, verify says what is known, and says where.

A slice: `python -m tests.forgeries` asks the command line about hundreds.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from pictures import make_picture

from seedgrid.core.recipe import read_recipe
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.formats import png
from seedgrid.formats.told import unchecked
from seedgrid.verify import Verdict, read_claim, read_claims, verify
from tests.forgeries import besides, hidden, places, spelled
from tests.forgeries.cases import cases
from tests.forgeries.originals import Original
from tests.forgeries.painted import Painter
from tests.forgeries.pixels import SAME_SIZE
from tests.forgeries.records import OTHER_RECIPES


@pytest.fixture(scope="module")
def backend() -> DiffusersBackend:
    return DiffusersBackend()


@pytest.fixture(scope="module")
def painter(backend: DiffusersBackend, model_folder: Callable[[str], Path]) -> Painter:
    return Painter(str(model_folder("sd")), backend)


@pytest.fixture(scope="module")
def originals(painter: Painter) -> list[Original]:
    """Honest pictures of this machine."""
    return painter.originals(2, num_inference_steps=2)


def verdicts_of(backend: DiffusersBackend, files: list[bytes], folder: Path) -> list[Verdict]:
    """Verify files together, as whoever names a folder does; in the order of the files."""
    paths = [folder / f"{number:04}.png" for number in range(len(files))]
    for path, data in zip(paths, files, strict=True):
        path.write_bytes(data)
    claims, unreadable = read_claims(paths)
    found = {verdict.name: verdict for verdict in [*verify(claims, backend), *unreadable]}
    return [found[str(path)] for path in paths]


def test_a_slice_of_all_forgeries_is_judged_rightly(
    backend: DiffusersBackend, painter: Painter, originals: list[Original], tmp_path: Path
) -> None:
    """Edits, files, records: each forged one is told, and no honest one is blamed for anything."""
    some = list(cases(originals, painter.paint, every=12))
    verdicts = verdicts_of(backend, [case.data for case in some], tmp_path)
    wrong = {
        case.name: verdict.verdict
        for case, verdict in zip(some, verdicts, strict=True)
        if verdict.verdict not in case.wanted
    }
    assert not wrong
    assert {word for case in some for word in case.wanted} >= {"identical", "close", "altered"}
    for case, verdict in zip(some, verdicts, strict=True):
        assert verdict.verdict == "identical" or verdict.reasons, case.name
        assert not verdict.confirms or verdict.verdict == "identical"


def test_every_changed_recipe_can_be_read(originals: list[Original]) -> None:
    """What is true of it is painted: the list stopped at the first that could not be read."""
    record = originals[0].record["recipe"]
    for changes in OTHER_RECIPES.values():
        assert read_recipe(json.dumps(record | changes)).model == originals[0].recipe.model


def test_what_hides_is_found_before_anything_is_painted(
    originals: list[Original], tmp_path: Path
) -> None:
    """Two of a kind, other homes of what turns and colours, other tools' places, odd headers.

    Tables of a profile that one purpose asks, edits and words in XMP and EXIF were identical.
    """
    path = tmp_path / "it.png"
    it = originals[0]
    for module in (hidden, besides, places, spelled):
        for name, data in module.shown_or_told_otherwise(it):
            path.write_bytes(data)
            claim = read_claim(path)
            assert claim.shown_otherwise or claim.told_otherwise or claim.is_altered, name
        for name, data in module.shown_as_it_is(it):
            path.write_bytes(data)
            claim = read_claim(path)
            said = (claim.shown_otherwise, claim.told_otherwise, claim.is_altered)
            assert said == ((), False, False), name
    for module in (hidden, besides, spelled):
        for name, data in module.no_picture(it):
            path.write_bytes(data)
            assert len(read_claims([path])[1]) == 1, name


@pytest.mark.parametrize("words", places.ODD_WORDS)
def test_no_picture_is_blamed_for_its_own_words(words: str, tmp_path: Path) -> None:
    """“&amp;” in a prompt, or settings of another tool's, had an honest picture called altered."""
    path = tmp_path / "it.png"
    for changes in ({"prompt": words}, {"negative_prompt": words}, {"typed_prompt": words}):
        for name, data in places.with_own_words(Original(png.encode(make_picture(**changes)))):
            path.write_bytes(data)
            assert not read_claim(path).told_otherwise, name


def test_it_is_said_where(
    backend: DiffusersBackend, originals: list[Original], tmp_path: Path
) -> None:
    """The smallest rectangle around all that differs."""
    it = originals[0]
    forged = it.with_pixels(SAME_SIZE["a square of 6 by 4"](it.pixels))
    (verdict,) = verdicts_of(backend, [forged], tmp_path)
    assert verdict.as_json()["where"] == {"left": 9, "top": 4, "width": 6, "height": 6}
    assert any(reason.code == "where" for reason in verdict.reasons)


@pytest.mark.parametrize(
    ("code", "forge"),
    [
        ("digest", lambda it: it.with_record(pixels_sha256="ab" * 32)),
        ("size", lambda it: it.with_pixels(it.pixels[:48])),
        ("told_otherwise", lambda it: it.data_with_words(prompt="a ship")),
        ("typed_unverified", lambda it: it.with_recipe(typed_prompt="the king himself")),
        ("same_passport", lambda it: it.with_pixels(it.pixels ^ 1)),
        ("others_unverified", lambda it: it.data + b"seed: 9, steps: 4"),
    ],
)
def test_the_reason_is_said(
    backend: DiffusersBackend,
    originals: list[Original],
    tmp_path: Path,
    code: str,
    forge: Callable[[Original], bytes],
) -> None:
    """What does not fit in the file is named, and so is what no verdict can tell."""
    (verdict,) = verdicts_of(backend, [forge(originals[0])], tmp_path)
    assert code in {reason.code for reason in verdict.reasons}


def test_whatever_a_file_holds_beside_is_named() -> None:
    """No list of lies is complete: what SeedGrid does not write itself is never vouched for."""
    data = png.encode(make_picture(prompt="a café, 猫"))
    assert unchecked(data) == ()
    end = data[-12:]
    for kind, content in (
        (b"tEXt", b"Comment\0it took me nine hours"),
        (b"iTXt", b"seedgrid\0\0\0en\0\xe2\x80\x8bother\0{}"),
        (b"zTXt", b"any\x07\0\0"),
        (b"eXIf", b"MM\0*"),
        (b"prVt", b"mine"),
    ):
        chunk = struct.pack(">I", len(content)) + kind + content
        forged = data[:-12] + chunk + struct.pack(">I", zlib.crc32(kind + content)) + end
        (name,) = unchecked(forged)
        assert name.startswith(kind.decode())
        assert name.isprintable()
    assert unchecked(data + b"more") == ("data behind the end",)


def test_an_empty_passport_excuses_nothing_and_blames_nobody(
    backend: DiffusersBackend, originals: list[Original], tmp_path: Path
) -> None:
    """The pixels of the recipe are identical whatever is told of where they were made."""
    it = originals[0]
    edited = it.with_pixels(it.pixels ^ 1, passport={})
    (verdict,) = verdicts_of(backend, [edited], tmp_path)
    assert verdict.verdict == "drifted"
    assert read_claim(tmp_path / "0000.png").passport.digest != it.passport.digest
