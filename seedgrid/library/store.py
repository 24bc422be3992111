"""Library: a folder in which everything made is kept and can be found again.

    with Library(Path("art")) as library:
        entry = library.add(picture)

When `add` returns, the picture survives kill -9, a power cut and a full disk. Threads and
processes share a library freely. Knows nothing of models or screens.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from seedgrid.core.checks import check_prompt
from seedgrid.core.errors import InputError, LibraryError
from seedgrid.core.picture import Entry, Lineage, Picture, Pixels, changed_tags
from seedgrid.core.recipe import Recipe
from seedgrid.formats import png
from seedgrid.library import checkup, opening
from seedgrid.library.checkup import Report
from seedgrid.library.in_threads import in_threads
from seedgrid.library.marks import MarkValue
from seedgrid.library.reader import LibraryReader
from seedgrid.library.storage import File, LibraryStorage
from seedgrid.library.tables import DamagedRowError
from seedgrid.storage import starts
from seedgrid.storage.files import check_room, make_folder

BUSY_TIMEOUT_S: Final = 30.0

_NUM_RECENT: Final = 64
_NUM_TRIES: Final = 4
"""Whoever deletes a folder may still be at it when it is made again."""
_BESIDE_PIXELS: Final = 16 * 1024
"""Bytes of a picture's recipe and row; packed pixels are never more than unpacked ones."""


class Library(LibraryReader):
    """Every picture made, with its lineage, its marks and its file.

    A change of marks is made to all of the pictures that it names, or to none: an `InputError`
    (`picture_unknown`) or a `LibraryError` leaves everything as it was.

    Attributes:
        notices: What happened at the start that the artist should know.

    Raises:
        LibraryError: The folder or its database refuses; nothing is changed.
    """

    def __init__(self, folder: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self.folder = folder.expanduser().absolute()
        storage = LibraryStorage.at(self.folder, timeout_s=busy_timeout_s)
        super().__init__(storage)
        starts.know(self.starts)
        self._just_added: dict[str, Path] = {}
        try:
            self._open(storage)
        except BaseException:  # Ctrl+C too: no file stays open and locked.
            self._left_a_trace = True
            self.close()
            raise

    @property
    def starts(self) -> Path:
        """The folder of what its pictures were begun from."""
        return self.folder / "starts"

    def __repr__(self) -> str:
        return f"Library({str(self.folder)!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the folder; calling again does nothing."""
        self._storage.database.close()
        self._storage.objects.close_session(leave_trace=self._left_a_trace)

    def check_room(self, recipes: Iterable[Recipe]) -> None:
        """Make sure that pictures of these recipes will find room, before they are painted.

        Raises:
            LibraryError: `disk_low`, with what is wanted and what is free.
        """
        make_folder(self.folder)  # It may have been deleted; the pictures will make it again.
        sizes = [3 * recipe.width * recipe.height + _BESIDE_PIXELS for recipe in recipes]
        check_room(self.folder, sum(sizes))

    def add(self, picture: Picture) -> Entry:
        """Keep a picture that was painted here; when this returns it is safe on disk.

        Raises:
            LibraryError: Full, read-only or locked; what was kept before is untouched.
        """
        return self.add_together([picture])[0]

    def add_together(self, pictures: Sequence[Picture]) -> tuple[Entry, ...]:
        """Keep a few pictures, all or none; the disk is waited for once and not for each."""
        return self._add(*in_threads(self._storage.written, pictures))

    def add_png(self, data: bytes) -> Entry:
        """Keep a SeedGrid PNG file as it is, chunks and all; one that is there already stays.

        Its entry is `checked` only if this library painted it: anybody can write any pixels, and
        their digest, into a file.

        Raises:
            PictureError: It holds no recipe, is damaged, or its pixels are not those of its recipe.
            InputError: `picture_twice`: another file has its id.
            LibraryError: Full, read-only or locked.
        """
        png.read_checked(data)
        return self._add(self._storage.taken(data))[0]

    def add_again(self, *copies: tuple[Entry, Lineage]) -> tuple[Entry, ...]:
        """Keep the same pixels at other places in the tree; they are copied, not computed.

        Raises:
            LibraryError: `picture_lost` when a file is not what it was; or the folder refuses.
        """
        files = []
        for entry, lineage in copies:
            data = self._storage.objects.read(entry.file_sha256)
            if data is None:
                raise LibraryError("picture_lost", value=entry.id)
            files.append(self._storage.taken(png.rewrite(data, lineage=lineage)))
        return self._add(*files)

    def keep_start(self, pixels: Pixels) -> str:
        """Keep a picture to begin others from; return the SHA-256 of its pixels."""
        return starts.keep(self.starts, pixels)

    def confirm(self, picture_id: str) -> Entry:
        """Take a picture from elsewhere for true: verify painted it again here, bit for bit.

        Raises:
            InputError: `picture_unknown`.
            LibraryError: Nothing has changed.
        """
        with self._traced():
            return self._storage.confirm(picture_id)

    def set_favourite(self, picture_id: str, favourite: bool) -> Entry:
        """Mark or unmark a favourite."""
        return self.set_favourites((picture_id,), favourite)[0]

    def set_favourites(self, picture_ids: Sequence[str], favourite: bool) -> tuple[Entry, ...]:
        """Mark or unmark favourites."""
        return self._change(picture_ids, favourite=favourite)

    def set_note(self, picture_id: str, note: str) -> Entry:
        """Write a note to a picture, in place of the one before; too long a one is refused."""
        return self._change((picture_id,), note=check_prompt(note, field="note"))[0]

    def tag(
        self, picture_ids: Sequence[str], *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> tuple[Entry, ...]:
        """Put tags on pictures and take others off; refused as by `core.tags.changed_tags`."""
        return self._change_each(
            picture_ids,
            lambda entry: {"tags": changed_tags(entry.tags, add=add, remove=remove)},
        )

    def trash(self, *picture_ids: str) -> tuple[Entry, ...]:
        """Put pictures into the trash; their files stay."""
        return self._change(picture_ids, trashed=True)

    def restore(self, *picture_ids: str) -> tuple[Entry, ...]:
        """Take pictures out of the trash."""
        return self._change(picture_ids, trashed=False)

    def empty_trash(self) -> int:
        """Delete what is in the trash for good, rows and files.

        Raises:
            LibraryError: What is not yet deleted is deleted at the next start.
        """
        return len(self._delete_trashed())

    def check(self, *, repair: bool = False) -> Report:
        """Read every file and every row, say what was wrong, and put it right if it shall be."""
        report = checkup.inspect(self._storage, deep=True)
        if repair and not report.is_clean:
            with self._traced(), self._storage.lock.held():
                opening.repair(self._storage, report)
        return report

    def file_of(self, picture_id: str) -> Path | None:
        """Return where a picture's file is, without a look at the rows if it was just added."""
        path = self._just_added.get(picture_id)
        if path is not None and path.is_file():
            return path
        try:
            return self.get(picture_id).path
        except InputError:
            return None

    def _open(self, storage: LibraryStorage) -> None:
        """Make sure that it can be used, now and whatever happens to its files later."""
        self.notices = opening.open_storage(storage)
        storage.database.mends_with(self._reopen, storage.lock.guard)

    def _reopen(self, is_damaged: bool) -> None:
        """Make again what somebody deleted, replaced or overwrote while we had it open."""
        self._just_added = {}
        self.notices += opening.open_again(self._storage, is_damaged=is_damaged)

    def _delete_trashed(self) -> tuple[Entry, ...]:
        with self._traced(), self._storage.lock.held():
            return self._storage.delete_trashed()

    def _add(self, *files: File) -> tuple[Entry, ...]:
        with self._traced():
            entries = self._kept(files)
        recent = {**self._just_added, **{entry.id: entry.path for entry in entries}}
        self._just_added = dict(list(recent.items())[-_NUM_RECENT:])
        return entries

    def _kept(self, files: Sequence[File], num_tries: int = _NUM_TRIES) -> tuple[Entry, ...]:
        """Keep files, again where a row was damaged or the folder was deleted meanwhile."""
        try:
            return self._storage.add(*files)
        except DamagedRowError as error:
            if num_tries == 1:
                raise
            self._mend_picture(str(error))
        except LibraryError as error:
            if num_tries == 1 or not self._storage.was_deleted(error):
                raise
        return self._kept(files, num_tries - 1)

    def _change(self, picture_ids: Sequence[str], **marks: MarkValue) -> tuple[Entry, ...]:
        return self._change_each(picture_ids, lambda _: marks)

    def _change_each(
        self, picture_ids: Sequence[str], said: Callable[[Entry], Mapping[str, MarkValue]]
    ) -> tuple[Entry, ...]:
        with self._traced():
            try:
                return self._storage.change(picture_ids, said)
            except DamagedRowError as error:
                self._mend_picture(str(error))
                return self._storage.change(picture_ids, said)
