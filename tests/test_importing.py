"""Pictures come in from files, folders and bundles; one bad file does not stop the rest."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from foreign_files import file_with
from pictures import make_lineage, make_picture, saved_again
from PIL import Image

from seedgrid.formats import png
from seedgrid.library import Library
from seedgrid.library import take_in as module
from seedgrid.library.take_in import Taken, take_in
from seedgrid.storage import starts


def ours(**changes: object) -> bytes:
    return png.encode(make_picture(**changes))


SETTINGS = "a red fox\nSteps: 20, Sampler: Euler a, CFG scale: 7, Seed: 42, Size: 512x512"


def taken(library: Library, *paths: Path) -> list[Taken]:
    return list(take_in(library, paths))


def write_zip(path: Path, files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as bundle:
        for name, data in files.items():
            bundle.writestr(name, data)
    return path


def test_ours_come_in_with_their_lineage(library: Library, tmp_path: Path) -> None:
    """Parent, change and place in the tree are those in the file, which is kept as it is."""
    lineage = make_lineage(parent_id="ab" * 16, change=", artsy")
    (tmp_path / "fox.png").write_bytes(ours(lineage=lineage))

    (result,) = taken(library, tmp_path / "fox.png")

    assert result.entry is not None
    assert result.is_new
    assert result.entry.lineage == lineage
    assert result.entry.path.read_bytes() == (tmp_path / "fox.png").read_bytes()


def test_importing_twice_changes_nothing(library: Library, tmp_path: Path) -> None:
    """A picture that is there is recognised; one in the trash or damaged is there again."""
    data = ours()
    (tmp_path / "fox.png").write_bytes(data)
    taken(library, tmp_path / "fox.png")
    (tmp_path / "packed.png").write_bytes(saved_again(data))

    results = taken(library, tmp_path / "fox.png", tmp_path / "packed.png")

    assert [result.is_new for result in results] == [False, False]
    (entry,) = library.search().entries
    library.trash(entry.id)
    entry.path.write_bytes(data[:99])
    taken(library, tmp_path / "fox.png")
    assert len(library.search().entries) == 1
    assert entry.read_file() == data


def test_another_picture_under_a_known_id_is_kept_beside_it(
    library: Library, tmp_path: Path
) -> None:
    """Neither replaces the other, and doing it again adds nothing."""
    lineage = make_lineage()
    for name, seed in (("first", 1), ("second", 2)):
        (tmp_path / f"{name}.png").write_bytes(ours(seed=seed, lineage=lineage))

    taken(library, tmp_path / "first.png", tmp_path / "second.png", tmp_path / "second.png")

    assert sorted(entry.recipe.seed for entry in library.search().entries) == [1, 2]
    assert library.get(lineage.picture_id).recipe.seed == 1


def test_a_folder_comes_in_whole(library: Library, tmp_path: Path) -> None:
    """Folders inside folders and names in capitals too; other files are passed over."""
    (tmp_path / "art" / "deep").mkdir(parents=True)
    (tmp_path / "art" / "a.png").write_bytes(ours(seed=1))
    (tmp_path / "art" / "deep" / "B.PNG").write_bytes(ours(seed=2))
    for name in ("notes.txt", "._a.png"):  # The second is macOS's, beside a.png
        (tmp_path / "art" / name).write_text("no picture")
    (tmp_path / "art" / "loop").symlink_to(tmp_path / "art")

    results = taken(library, tmp_path / "art")

    assert [result.entry.recipe.seed for result in results if result.entry] == [1, 2]
    assert len(results) == 2


def test_a_bundles_model_is_no_picture(library: Library, tmp_path: Path) -> None:
    """The sample sheets of the bundled model, in our own bundle, were six errors at its import."""
    members = {"recipes.json": b"[]", "pictures/a.png": ours(seed=1), "model/sheets/a.jpg": b"x"}
    assert [each.error for each in taken(library, write_zip(tmp_path / "art.zip", members))] == [
        None
    ]


def test_other_tools_pictures_come_as_jpeg_and_webp_too(library: Library, tmp_path: Path) -> None:
    """Given by name, in a folder or in a bundle."""
    (tmp_path / "art").mkdir()
    for name in ("a.jpg", "b.JPEG", "c.webp"):
        block = Image.Exif()
        block.get_ifd(0x8769)[0x9286] = b"UNICODE\0" + SETTINGS.encode("utf-16-be")
        Image.new("RGB", (8, 8)).save(tmp_path / "art" / name, exif=block)
    files = {path.name: path.read_bytes() for path in (tmp_path / "art").iterdir()}
    bundle = write_zip(tmp_path / "art.zip", files)

    results = taken(library, tmp_path / "art" / "a.jpg", tmp_path / "art", bundle)

    assert [result.imported.request.seeds for result in results if result.imported] == [(42,)] * 7


def test_one_bad_file_does_not_stop_the_rest(library: Library, tmp_path: Path) -> None:
    """Each file has its own answer."""
    data = ours()
    for name, content in {
        "1.png": data[:-50],
        "2.png": data,
        "3.png": b"",
        "4.png": file_with(parameters=SETTINGS),
        "5.png": file_with(parameters=SETTINGS)[:40],
    }.items():
        (tmp_path / name).write_bytes(content)

    results = taken(library, *(tmp_path / f"{number}.png" for number in range(1, 7)))

    errors = [result.error.code if result.error else None for result in results]
    assert errors == [
        "picture_damaged",
        None,
        "picture_not_png",
        None,
        "picture_damaged",
        "picture_missing",
    ]


def test_an_edited_picture_is_refused(library: Library, tmp_path: Path) -> None:
    """Pixels under a recipe that did not make them do not come in."""
    (tmp_path / "edited.png").write_bytes(saved_again(ours(), pixel=(1, 2, 3)))

    (result,) = taken(library, tmp_path / "edited.png")

    assert result.error is not None
    assert result.error.code == "picture_altered"


def test_names_in_a_bundle_lead_nowhere(library: Library, tmp_path: Path) -> None:
    """Names that climb out of a folder write nothing outside the library."""
    names = ("../../evil.png", "/etc/evil.png", "C:\\evil.png", "a\0.png")
    path = write_zip(tmp_path / "art.zip", {name: ours(seed=i) for i, name in enumerate(names)})
    before = {file for file in tmp_path.rglob("*") if "library" not in file.parts}

    assert len([result for result in taken(library, path) if result.entry]) >= 3

    after = {file for file in tmp_path.rglob("*") if "library" not in file.parts}
    assert before == after


def test_a_bomb_in_a_bundle_is_not_unpacked(library: Library, tmp_path: Path) -> None:
    """A member that unpacks to more than a picture may have is refused, the others come in."""
    path = write_zip(tmp_path / "art.zip", {"bomb.png": b"\0" * (65 * 2**20), "fox.png": ours()})

    bomb, fox = taken(library, path)

    assert bomb.error is not None
    assert bomb.error.code == "picture_large"
    assert fox.is_new


def test_a_bundle_of_too_many_or_too_much_is_refused(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each limit is one sentence."""
    path = write_zip(tmp_path / "art.zip", {f"{seed}.png": ours(seed=seed) for seed in range(3)})

    for limit in ({"MAX_UNPACKED_BYTES": 20_000}, {"MAX_MEMBERS": 2}, {"_MAX_LIST_BYTES": 100}):
        monkeypatch.setattr(module, *limit.popitem())
        refusals = [result.error.code for result in taken(library, path) if result.error]
        assert refusals == ["bundle_large"]


def test_a_damaged_bundle_gives_one_sentence(library: Library, tmp_path: Path) -> None:
    """Text named .zip, a truncated one, a wrong check sum and a password are all told."""
    good = write_zip(tmp_path / "good.zip", {"fox.png": ours()}, zipfile.ZIP_STORED).read_bytes()
    flipped = bytearray(good)
    flipped[200] ^= 1
    locked = bytearray(good)
    locked[6:8] = struct.pack("<H", 1)
    locked[locked.rindex(b"PK\1\2") + 8] |= 1
    for name, data in {
        "text.zip": b"hello",
        "short.zip": good[: len(good) // 2],
        "flipped.zip": bytes(flipped),
        "locked.zip": bytes(locked),
        "missing.zip": None,
    }.items():
        if data is not None:
            (tmp_path / name).write_bytes(data)

        (result,) = taken(library, tmp_path / name)

        assert result.error is not None, name
        assert result.error.code == "bundle_damaged", name


def test_the_start_pictures_of_an_unpacked_bundle_come_in_on_windows(
    library: Library, tmp_path: Path
) -> None:
    """Where a backslash parts a folder from a file's name."""
    start = starts.write(tmp_path / "starts", np.zeros((8, 8, 3), np.uint8))
    art = tmp_path / "art"
    art.mkdir()
    (tmp_path / "starts" / f"{start}.png").rename(art / rf"C:\art\starts\{start}.png")
    assert [taken.start for taken in take_in(library, [art])] == [start]
