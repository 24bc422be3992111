"""What a library painted itself is a memory; what came from outside is only what somebody says."""

from __future__ import annotations

import io
import json
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pictures import make_lineage, make_picture
from PIL import Image

from seedgrid.core.picture import Entry, Picture, pixels_sha256
from seedgrid.formats import png, png_chunks
from seedgrid.library import Library
from seedgrid.studio import Studio
from seedgrid.testing.fake import FakeBackend


def sealed_by_hand(data: bytes, seal: str) -> bytes:
    """Write a seal into a picture as anybody can."""
    seal_chunk = png_chunks.plain_text(png.SEAL_KEY, seal)
    return png_chunks.with_texts(png_chunks.split(data), (seal_chunk,))


def forged(picture: Picture) -> bytes:
    """Another's pixels under this recipe and passport, with everything in the file in step."""
    pixels = 255 - picture.pixels
    return png.encode(replace(picture, pixels=pixels, lineage=make_lineage()))


def remembered(library: Library, picture: Picture) -> Entry | None:
    recipe_id = picture.recipe.id
    return library.remembered([recipe_id], picture.passport.digest).get(recipe_id)


def test_what_was_painted_here_is_a_memory(tmp_path: Path) -> None:
    """And says so, at once and after a restart."""
    picture = make_picture()
    with Library(tmp_path) as library:
        assert library.add(picture).checked
        assert remembered(library, picture) is not None
    with Library(tmp_path) as library:
        assert library.search().entries[0].checked
        assert remembered(library, picture) is not None


def test_forged_pixels_are_kept_and_never_remembered(tmp_path: Path) -> None:
    """A file whose pixels and their digest were rewritten was painted from then on as known."""
    picture = make_picture()
    with Library(tmp_path) as library:
        entry = library.add_png(forged(picture))
        assert not entry.checked
        assert not library.get(entry.id).checked
        assert remembered(library, picture) is None
        mine = library.add(picture)
        for _ in range(6):
            library.add_png(forged(picture))
        found = remembered(library, picture)
        assert found is not None
        assert found.id == mine.id


def test_a_forgery_with_the_seal_of_the_true_picture_is_found_out(tmp_path: Path) -> None:
    """The seal is over the pixels as well: copying it from another file is no use."""
    picture = make_picture()
    with Library(tmp_path) as library:
        seal = png.read_seal(library.add(picture).path.read_bytes())
        assert seal is not None
        other = make_picture(seed=8)
        for data in (forged(picture), png.encode(other)):
            assert not library.add_png(sealed_by_hand(data, seal)).checked
        assert remembered(library, other) is None


def test_another_librarys_seal_says_nothing_here(tmp_path: Path) -> None:
    """Each library believes itself alone."""
    picture = make_picture()
    with Library(tmp_path / "theirs") as theirs, Library(tmp_path / "ours") as ours:
        data = theirs.add(picture).path.read_bytes()
        ours.add(make_picture(seed=9))
        assert not ours.add_png(data).checked
        assert remembered(ours, picture) is None


def test_who_is_who_survives_a_rebuild_from_the_files(tmp_path: Path) -> None:
    """Painted, forged, and verified pictures are told apart when the database is gone."""
    mine, theirs, verified = (make_picture(seed=seed) for seed in range(3))
    with Library(tmp_path) as library:
        library.add(mine)
        library.add_png(forged(theirs))
        library.confirm(library.add_png(png.encode(verified)).id)
        before = {entry.id: entry for entry in library.search().entries}
    (tmp_path / "library.db").unlink()
    with Library(tmp_path) as library:
        assert {entry.id: entry for entry in library.search().entries} == before
        assert library.check().is_clean
        known = [remembered(library, picture) is not None for picture in (mine, theirs, verified)]
    assert known == [True, False, True]


def test_a_row_cannot_be_sealed_by_hand(tmp_path: Path) -> None:
    """Whoever may write the database still lacks the key."""
    picture = make_picture()
    with Library(tmp_path) as library:
        library.add(make_picture(seed=9))
        entry = library.add_png(forged(picture))
        with library._storage.database.writes() as connection:
            connection.exec_driver_sql(
                "INSERT INTO seals VALUES (?, ?, ?, ?)",
                (entry.recipe.id, entry.passport.digest, entry.pixels_sha256, "ab" * 32),
            )
        assert not library.get(entry.id).checked
        assert remembered(library, picture) is None


def test_the_key_is_its_owners_alone(tmp_path: Path) -> None:
    """Nobody else on the machine may read it, and it is in no picture."""
    with Library(tmp_path) as library:
        entry = library.add(make_picture())
    path = tmp_path / "library.secret"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes() not in entry.path.read_bytes()


@pytest.mark.parametrize("content", ["", "ab", "x" * 64, None])
def test_a_lost_or_damaged_key_forgets_and_goes_on(tmp_path: Path, content: str | None) -> None:
    """Without the key nothing is known to be ours; what is painted then is a memory again."""
    picture = make_picture()
    with Library(tmp_path) as library:
        library.add(picture)
    path = tmp_path / "library.secret"
    path.unlink()
    if content is not None:
        path.write_text(content)
    with Library(tmp_path) as library:
        assert remembered(library, picture) is None
        assert library.add(replace(picture, lineage=make_lineage())).checked
        assert remembered(library, picture) is not None


def test_a_copy_of_a_memory_is_one_too(tmp_path: Path) -> None:
    """Shown again at another place of the tree, it is still what this library painted."""
    with Library(tmp_path) as library:
        entry = library.add(make_picture())
        (copy,) = library.add_again((entry, make_lineage()))
        assert copy.checked
        assert library.get(copy.id).checked


def test_refining_a_forgery_does_not_make_it_true(tmp_path: Path) -> None:
    """The whole attack: edit a picture, rewrite its digest, refine it, and ask for its recipe."""
    with Studio(library=tmp_path / "library", backend=FakeBackend()) as studio:
        grid = studio.grid("misty mountains", seeds=[0], width=64, height=64)
        data = grid[0].path.read_bytes()
        true_pixels = np.asarray(grid[0].image)
    path = tmp_path / "forged.png"
    path.write_bytes(with_pixels(data, 255 - true_pixels))
    with Studio(library=tmp_path / "other", backend=FakeBackend()) as studio:
        studio.refine(path, [", artsy"])
        again = studio.grid("misty mountains", seeds=[0], width=64, height=64)
        np.testing.assert_array_equal(np.asarray(again[0].image), true_pixels)


def with_pixels(data: bytes, pixels: np.ndarray) -> bytes:
    """Edit a picture as a forger would: other pixels, and their digest in the record."""
    record = json.loads(png.read_texts(data)[png.CHUNK_KEY])
    record["pixels_sha256"] = pixels_sha256(pixels)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    chunks = png.png_chunks.split(buffer.getvalue())
    return png.png_chunks.with_texts(
        chunks, [png.png_chunks.utf8_text(png.CHUNK_KEY, json.dumps(record))]
    )
