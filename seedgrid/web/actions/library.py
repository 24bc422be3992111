"""The actions of the library page: list, search, open, import, mark, and move into the trash.

Works and pictures are listed in pages. A tile stands for a picture and all pictures equal to it, or
for a work and all works equal to it; an action on a tile applies to all of them.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Final

from fastapi import Body
from pydantic import BaseModel, Field, StringConstraints

from seedgrid.core.errors import InputError, SeedGridError
from seedgrid.core.picture import MAX_TAGS, Entry, PictureId, pixels_sha256
from seedgrid.core.recipe import MAX_SIZE_PX, Seed, Value
from seedgrid.core.request import Request
from seedgrid.formats import png
from seedgrid.formats.importers.imported import Imported, fit
from seedgrid.formats.own_texts import WorkPicture
from seedgrid.library import Library
from seedgrid.library.search import Sort
from seedgrid.library.take_in import Taken, back_from_trash, take_in
from seedgrid.studio import Studio
from seedgrid.web.serializers import pictures, stage
from seedgrid.web.serializers.form import write_fields
from seedgrid.web.serializers.stage import opening_files
from seedgrid.web.state.page_state import (
    Id,
    PageState,
    PageUpdate,
    State,
    next_epoch,
    reports_errors,
)
from seedgrid.web.state.snapshot import Snapshot, Snapshots

PAGE_SIZE: Final = 60
MAX_TAGS_SHOWN: Final = 200
# Fields that another tool's picture fills in at once; the page offers its other settings
_FILLED: Final = ("prompt", "negative_prompt", "seeds", "noise_mix", "weights")

Words = Annotated[str, StringConstraints(max_length=200)]
Instant = Annotated[str, StringConstraints(pattern=r"^(\d{4}(-\d\d){2}T[\d:.]{12})?$")]


class Query(Value):
    """A search of the library page; empty attributes do not restrict it.

    `number` counts a browser's searches and is repeated in the answer; `after` is that of
    the answer before. `since` is the first moment (UTC), `until` that after the last.
    """

    number: Annotated[int, Field(ge=0)] = 0
    text: Words = ""
    model: Words = ""
    seed: Seed | None = None
    favourite: bool = False
    trashed: bool = False
    since: Instant = ""
    until: Instant = ""
    tag: Words = ""
    sort: Sort = "newest"
    after: Annotated[int, Field(ge=0, lt=2**63)] | None = None  # SQLite has no larger numbers

    @property
    def has_no_condition(self) -> bool:
        """Whether nothing restricts it, so that it lists all works."""
        return self == Query(number=self.number, sort=self.sort, after=self.after)


MAX_WORKS: Final = 200
MAX_PICTURES: Final = 2000  # In one request; the page splits larger restores

WorkIds = Annotated[tuple[PictureId, ...], Field(strict=False, max_length=MAX_WORKS)]
PictureIds = Annotated[tuple[PictureId, ...], Field(strict=False, max_length=MAX_PICTURES)]

Tags = Annotated[
    tuple[Annotated[str, StringConstraints(max_length=400)], ...],
    Field(strict=False, max_length=MAX_TAGS),
]


class Selection(BaseModel, frozen=True, strict=True, extra="forbid"):
    """Works and pictures by their ids; each of `equals` stands for all pictures equal to it."""

    works: WorkIds = ()
    pictures: PictureIds = ()
    equals: WorkIds = ()


class Throw(Selection):
    """What to move into the trash, or out of it."""

    trashed: bool


class Mark(Selection):
    """Marks to set on pictures, and tags to add or remove; None leaves a mark as it is."""

    favourite: bool | None = None
    add: Tags = ()
    remove: Tags = ()


@reports_errors
class LibraryActions:
    """The actions of the library page. Safe from any thread."""

    def __init__(self, studio: Studio, snapshots: Snapshots) -> None:
        self._studio = studio
        self._snapshots = snapshots

    def on_search(self, asked: Annotated[Query, Body(embed=True)], state: State) -> PageUpdate:
        """Return a page of works, or of the pictures that a search finds."""
        library, query = self._snapshots.of(state).library, asked
        if query.has_no_condition:
            works = library.works(limit=PAGE_SIZE, after=query.after, sort=query.sort)
            items = [pictures.item(work.cover, work) for work in works.works]
            after = works.after
        else:
            conditions = query.model_dump(exclude={"number"}, exclude_defaults=True)
            page = library.search(**conditions, merged=True, limit=PAGE_SIZE)
            items = [pictures.item(e, times=page.times.get(e.id, 1)) for e in page.entries]
            after = page.after
        is_more = query.after is not None
        answer = {"number": query.number, "items": items, "after": after, "is_more": is_more}
        return PageUpdate(library=answer if is_more else answer | {"tags": _tags_of(library)})

    def on_open(self, picture_id: Id, state: State) -> PageUpdate:
        """Show the round of a library picture, with the picture picked."""
        snapshot = self._snapshots.of(state)
        return snapshot.moved_to(snapshot.library.get(picture_id or "")).show()

    def on_example(self, example: Annotated[int, Body(embed=True)], state: State) -> PageUpdate:
        """Show the round of an opening picture, after importing all of them into the library."""
        snapshot = self._snapshots.of(state)
        if not 1 <= example <= len(opening_files()):
            return PageUpdate()
        taken = list(take_in(snapshot.library, opening_files()))
        entry = taken[example - 1].entry
        if entry is None:
            return PageUpdate()
        update = snapshot.moved_to(entry).show()
        place, seed = update.place or {}, entry.recipe.seed
        # The fields are filled in from the clicked picture alone.
        own = {"prompt": entry.recipe.prompt, "seeds": f"{seed}-{seed + 3}", "more_prompts": ""}
        return replace(update, place=place | {"fields": (place.get("fields") or {}) | own})

    def on_empty_trash(self, state: State) -> PageUpdate:
        """Delete all pictures in the trash."""
        self._snapshots.of(state).library.empty_trash()
        return PageUpdate()

    def on_note(
        self, picture_id: Id, note: Annotated[str, Body(max_length=2000)], state: State
    ) -> PageUpdate:
        """Write a note to a picture."""
        self._snapshots.of(state).library.set_note(picture_id or "", note)
        return PageUpdate()

    def on_trash(self, asked: Annotated[Throw, Body(embed=True)], state: State) -> PageUpdate:
        """Move pictures into the trash or out; return the ids of those moved in, for undo."""
        library = self._snapshots.of(state).library
        ids = [e.id for e in _selected_entries(library, asked) if e.trashed != asked.trashed]
        (library.trash if asked.trashed else library.restore)(*ids)
        return PageUpdate(library={"thrown": ids if asked.trashed else []})

    def on_mark(self, asked: Annotated[Mark, Body(embed=True)], state: State) -> PageUpdate:
        """Mark pictures and all pictures of works."""
        library = self._snapshots.of(state).library
        ids = [entry.id for entry in _selected_entries(library, asked)]
        if asked.favourite is not None:
            library.set_favourites(ids, asked.favourite)
        if asked.add or asked.remove:
            library.tag(ids, add=asked.add, remove=asked.remove)
        return PageUpdate(library={"tags": _tags_of(library)})

    def on_drop(
        self, files: Sequence[str], state: PageState, most: int | None = None
    ) -> PageUpdate:
        """Import dropped files: SeedGrid's are stored and shown, other tools' fill in fields."""
        snapshot, paths = self._snapshots.of(state), [Path(file) for file in files]
        try:
            taken = [
                _found_by_pixels(each, snapshot.library)
                for each in islice(take_in(snapshot.library, paths), most)
            ]
            is_bundle = any(path.suffix.lower() == ".zip" for path in paths)
            if taken and not is_bundle and all(_lacks_recipe(each) for each in taken):
                # No file holds a recipe: the last one becomes the start picture.
                start = self._studio.take_start(paths[-1], snapshot.library)
                status = stage.say(next_epoch(), "status_begin", kind="note")
                return PageUpdate(fields={"start": start}, status=status)
            return self._show_imported(taken, snapshot)
        except SeedGridError as error:
            return PageUpdate(status=stage.complain(next_epoch(), error, field="drop"))

    def _show_imported(self, taken: Sequence[Taken], snapshot: Snapshot) -> PageUpdate:
        """Show imported files: a poster's work, SeedGrid's pictures, or another tool's settings."""
        ours = [each.entry for each in taken if each.entry is not None]
        foreign = [each.imported for each in taken if each.imported is not None]
        works = [each.work for each in taken if each.work]
        if works:
            return self._paint_work(works[-1], snapshot)
        if ours:
            update = snapshot.moved_to(ours[-1]).show()
            status = stage.say(next_epoch(), "status_taken_in", kind="done", number=len(ours))
            return replace(update, status=status)
        if foreign:
            return self._fill_in(foreign[-1])
        errors = [each.error for each in taken if each.error is not None]
        raise errors[0] if errors else InputError("import_nothing", field="drop")

    def _paint_work(self, work: Sequence[WorkPicture], snapshot: Snapshot) -> PageUpdate:
        """Start and show a run for a poster's missing pictures; without any, show its last."""
        state, library = snapshot.state, snapshot.library
        run = self._studio.start_work(
            work, owner=state.visitor, address=state.address, library=library
        )
        if run is not None:
            return snapshot.after(run).show()
        return snapshot.moved_to(library.get(work[-1].lineage.picture_id)).show()

    def _fill_in(self, imported: Imported) -> PageUpdate:
        """Fill in prompt and seeds of another tool's picture, and offer its other settings."""
        fitting = fit(imported, self._studio.card())
        request = fitting.request
        basic = Request(**{name: getattr(request, name) for name in _FILLED})
        fields: stage.Json = {**write_fields(basic)}
        whole = write_fields(request)
        settings = {name: value for name, value in whole.items() if value != fields[name]}
        reasons = [stage.notice(reason) for reason in fitting.reasons]
        data = {"tool": fitting.tool, "reasons": reasons, "settings": settings}
        status = stage.say(next_epoch(), "error_imported", kind="note") | {"data": data}
        del fields["model"]
        return PageUpdate(fields=fields, status=status)


def _lacks_recipe(taken: Taken) -> bool:
    without = ("picture_without_recipe", "picture_foreign")
    return taken.error is not None and taken.error.code in without


def _found_by_pixels(taken: Taken, library: Library) -> Taken:
    """Look up a picture whose file has no recipe in the library, by its pixels."""
    if not _lacks_recipe(taken):
        return taken
    try:
        if max(png.read_size(Path(taken.name))) > MAX_SIZE_PX:
            return taken
        pixels = png.read_pixels(Path(taken.name))
    except SeedGridError:  # The file is in a bundle, or no PNG.
        return taken
    entry = library.with_pixels(pixels_sha256(pixels))
    return replace(taken, entry=back_from_trash(library, entry), error=None) if entry else taken


def _tags_of(library: Library) -> list[stage.Json]:
    """Return the library's most used tags."""
    tags = library.collections()[:MAX_TAGS_SHOWN]
    return [{"tag": each.tag, "number": each.num_pictures} for each in tags]


def _selected_entries(library: Library, selection: Selection) -> Sequence[Entry]:
    """Return the pictures that a selection stands for, each once."""
    works = {alike: None for work in selection.works for alike in library.alike(work)}
    entries = {entry.id: entry for work in works for entry in library.work(work)}
    entries |= {entry.id: entry for one in selection.equals for entry in library.equals(one)}
    for picture_id in selection.pictures:
        if picture_id not in entries:
            entries[picture_id] = library.get(picture_id)
    return tuple(entries.values())
