"""What a library painted itself is a memory; what came from outside is only what somebody says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from forgeries import Original
from pictures import make_lineage, make_picture

from seedgrid.core.picture import Entry, Picture
from seedgrid.formats import png
from seedgrid.library import Library
from seedgrid.studio import Studio


def forged(picture: Picture) -> bytes:
    """Another's pixels under this recipe and passport, with everything in the file in step."""
    pixels = 255 - picture.pixels
    return png.encode(replace(picture, pixels=pixels, lineage=make_lineage()))


def remembered(library: Library, picture: Picture) -> Entry | None:
    recipe_id = picture.recipe.id
    return library.find_painted([recipe_id], picture.passport.digest).get(recipe_id)


def test_forged_pixels_are_kept_and_never_remembered(tmp_path: Path) -> None:
    """A file whose pixels and their digest were rewritten was painted from then on as known."""
    picture = make_picture()
    library = Library(tmp_path)
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


def test_what_was_verified_here_is_a_memory_until_the_library_is_rebuilt(tmp_path: Path) -> None:
    """After a rebuild nobody knows which pixels were painted here: none of them is a memory."""
    mine, verified = (make_picture(seed=seed) for seed in range(2))
    library = Library(tmp_path)
    library.add(mine)
    taken = library.add_png(png.encode(verified))
    assert (taken.origin, remembered(library, verified)) == ("taken in", None)
    assert library.mark_verified(taken.id).origin == "verified here"
    assert remembered(library, verified) is not None
    (tmp_path / "library.db").unlink()

    rebuilt = Library(tmp_path)

    assert {entry.origin for entry in rebuilt.search().entries} == {"not checked"}
    assert [remembered(rebuilt, each) for each in (mine, verified)] == [None, None]


def test_refining_a_forgery_does_not_make_it_true(
    studio: Studio, elsewhere: Studio, tmp_path: Path
) -> None:
    """The whole attack: edit a picture, rewrite its digest, refine it, and ask for its recipe."""
    (entry,) = studio.grid("misty mountains", seeds=[0], width=64, height=64)
    true = replace(
        make_picture(), pixels=np.asarray(entry.image), recipe=entry.recipe, passport=entry.passport
    )
    path = tmp_path / "forged.png"
    path.write_bytes(Original(true, true.pixels).with_pixels(255 - true.pixels))
    elsewhere.refine(path, [", artsy"])
    (again,) = elsewhere.grid("misty mountains", seeds=[0], width=64, height=64)
    np.testing.assert_array_equal(np.asarray(again.image), true.pixels)
