"""Any order of doings, restarts and accidents leaves a library that says what a plain dict says."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from pictures import make_lineage, make_picture

from seedgrid.core.picture import Entry, changed_tags
from seedgrid.library import Library


class LibraryStates(RuleBasedStateMachine):
    """A library beside a dict of what it must hold."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.library = Library(self.folder / "library")
        self.expected: dict[str, Entry] = {}

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def _pick(self, number: int) -> Entry:
        return list(self.expected.values())[number % len(self.expected)]

    @rule(seed=st.integers(0, 5))
    def add(self, seed: int) -> None:
        entry = self.library.add(make_picture(seed=seed, width=32, height=32))
        self.expected[entry.id] = entry

    @precondition(lambda self: self.expected)
    @rule(number=st.integers(0, 99))
    def add_again(self, number: int) -> None:
        entry = self.library.add_again((self._pick(number), make_lineage()))[0]
        self.expected[entry.id] = entry

    @precondition(lambda self: self.expected)
    @rule(
        number=st.integers(0, 99),
        favourite=st.booleans(),
        note=st.sampled_from(["", "später"]),
        tags=st.sampled_from([((), ("night",)), (("night", "狐狸"), ()), (("<b>",), ("狐狸",))]),
    )
    def mark(
        self, number: int, favourite: bool, note: str, tags: tuple[tuple[str, ...], ...]
    ) -> None:
        picture_id = self._pick(number).id
        self.library.set_favourite(picture_id, favourite)
        self.library.set_note(picture_id, note)
        add, remove = tags
        self.library.tag([picture_id], add=add, remove=remove)
        now = changed_tags(self.expected[picture_id].tags, add=add, remove=remove)
        changed = replace(self.expected[picture_id], favourite=favourite, note=note, tags=now)
        self.expected[picture_id] = changed

    @precondition(lambda self: self.expected)
    @rule(number=st.integers(0, 99), trashed=st.booleans())
    def trash_or_restore(self, number: int, trashed: bool) -> None:
        picture_id = self._pick(number).id
        (self.library.trash if trashed else self.library.restore)(picture_id)
        self.expected[picture_id] = replace(self.expected[picture_id], trashed=trashed)

    @rule()
    def empty_trash(self) -> None:
        self.library.empty_trash()
        self.expected = {key: entry for key, entry in self.expected.items() if not entry.trashed}

    @rule()
    def restart(self) -> None:
        self.library = Library(self.folder / "library")
        assert self.library.notices == ()

    @precondition(lambda self: self.expected)
    @rule(change=st.sampled_from(["DELETE FROM pictures", "UPDATE pictures SET seed = seed + 1"]))
    def spoil_rows(self, change: str) -> None:
        """The files and the backup bring everything back."""
        (self.folder / "library" / "library.backup.db").unlink(missing_ok=True)
        Library(self.folder / "library")
        with self.library._database.writes() as connection:
            connection.execute(change)
        if change.startswith("DELETE"):
            (self.folder / "library" / "library.db").unlink()
            self.library = Library(self.folder / "library")
        self.library.check(repair=True)
        self.expected = {
            key: replace(entry, origin="not checked") for key, entry in self.expected.items()
        }

    @invariant()
    def holds_what_the_dict_holds(self) -> None:
        pages = [self.library.search(trashed=trashed, limit=500) for trashed in (False, True)]
        found = {entry.id: entry for page in pages for entry in page.entries}
        assert found == self.expected
        works = self.library.works(limit=500).works
        seen = [entry for entry in found.values() if not entry.trashed]
        assert sum(work.times * work.num_pictures for work in works) == len(seen)
        assert sum(each.num_pictures for each in self.library.collections()) == sum(
            len(entry.tags) for entry in seen
        )
        assert self.library.check().is_clean


LibraryStates.TestCase.settings = settings(
    max_examples=12, stateful_step_count=12, deadline=None, derandomize=True
)
TestLibraryStates = LibraryStates.TestCase
