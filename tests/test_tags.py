"""Tags, the order of the library, and works that are alike."""

from __future__ import annotations

import pytest
from pictures import make_lineage, make_picture
from refusing import refused

from seedgrid.core.errors import InputError
from seedgrid.core.picture import MAX_TAG_CHARACTERS, MAX_TAGS, Entry, changed_tags, check_tag
from seedgrid.library import Library
from seedgrid.library.search import Sort


@pytest.fixture
def three(library: Library) -> tuple[Entry, ...]:
    """A fox, a zebra that is a favourite, an apple: each a work of its own."""
    words = ("a fox", "Zebra", "apple")
    made = tuple(library.add(make_picture(seed=n, prompt=w)) for n, w in enumerate(words))
    return made[0], library.set_favourite(made[1].id, True), made[2]


@pytest.mark.parametrize(
    ("text", "tag"),
    [("fox", "fox"), ("  #two \t words ", "two words"), ("cafe\u0301", "café"), ("狐狸", "狐狸")],
)
def test_a_tag_is_kept_on_one_line(text: str, tag: str) -> None:
    """Single spaces, one kind of each letter, no sign in front."""
    assert check_tag(text) == tag


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "tag_empty"),
        (" # ", "tag_empty"),
        ("x" * (MAX_TAG_CHARACTERS + 1), "tag_long"),
        (" " * 10**6 + "x", "tag_empty"),
        ("x" * 10**6, "tag_long"),
        ("fox\x1b[31m", "tag_characters"),
        ("fox\u202eevil", "tag_characters"),
        ("half \ud800", "tag_characters"),
    ],
)
def test_a_hostile_tag_is_refused(text: str, code: str) -> None:
    """Whatever is too long or cannot be seen; a long one is not read to its end."""
    with refused(InputError, code):
        check_tag(text)


def test_a_picture_has_so_many_tags_and_no_more(library: Library, three: tuple[Entry, ...]) -> None:
    """All pictures or none; another spelling is the same tag."""
    fox, zebra, _ = three
    many = [f"tag {number}" for number in range(MAX_TAGS)]
    library.tag([fox.id], add=many)
    with pytest.raises(InputError, match="20 tags"):
        library.tag([zebra.id, fox.id], add=["one more"])
    assert library.get(zebra.id).tags == ()
    assert changed_tags(("Fox",), add=["FOX", "red"]) == ("Fox", "red")


def test_tags_gather_pictures_and_survive_the_database(
    library: Library, three: tuple[Entry, ...]
) -> None:
    """Markup and separators are letters like others; the backup brings all back."""
    hostile = "<img src=x onerror=alert(1)>"[:MAX_TAG_CHARACTERS]
    fox, zebra, apple = three
    library.tag([fox.id, zebra.id], add=["night", hostile])
    library.tag([zebra.id], add=["night, rain"], remove=["NIGHT"])
    library.trash(apple.id)
    library.tag([apple.id], add=["thrown"])
    found = [(each.tag, each.num_pictures) for each in library.collections()]
    assert found == [(hostile, 2), ("night", 1), ("night, rain", 1)]
    assert [entry.id for entry in library.search(tag="night").entries] == [fox.id]
    assert library.search(tag="nig").entries == ()
    assert library.check().is_clean
    (library.folder / "library.backup.db").unlink()
    before = [library.get(entry.id).tags for entry in three]
    Library(library.folder)  # Makes the backup of the day.
    (library.folder / "library.db").unlink()
    rebuilt = Library(library.folder)
    assert [rebuilt.get(entry.id).tags for entry in three] == before


@pytest.mark.parametrize(
    ("sort", "pictures", "works"),
    [
        ("newest", "0210", "021"),
        ("oldest", "0120", "120"),
        ("favourites", "1020", "102"),
        ("words", "0021", "021"),
    ],
)
def test_each_order_goes_through_all_pages(
    library: Library, three: tuple[Entry, ...], sort: Sort, pictures: str, works: str
) -> None:
    """One after the other, each once, by pages of one; two works that are alike are one."""
    again = library.add_again((three[0], make_lineage()))[0]
    seen, after = "", None
    while True:
        page = library.search(limit=1, after=after, sort=sort)
        seen += "".join(str(entry.recipe.seed) for entry in page.entries)
        after = page.after
        if after is None:
            break
    assert seen == pictures
    found, after = [], None
    while True:
        works_page = library.works(limit=1, after=after, sort=sort)
        found += works_page.works
        after = works_page.after
        if after is None:
            break
    assert "".join(str(work.cover.recipe.seed) for work in found) == works
    assert {work.cover.recipe.seed: work.times for work in found} == {0: 2, 1: 1, 2: 1}
    assert next(work.id for work in found if work.times == 2) == again.lineage.work_id
