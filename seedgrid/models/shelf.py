"""Files that are called by their names: LoRAs and upscaler networks, wherever they lie.

A recipe holds a name and a digest, never a path. A name means the files that were used under it
before, the last one first, and those in the folders of their kind. Knows nothing of what is in one.

    SHELF = Shelf(kind="loras", folders=lambda: [Path("loras")])
    SHELF.paths("fox")   # [PosixPath('loras/fox.safetensors')]
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from seedgrid.core.text import is_folder_name
from seedgrid.models.digests import file_digest
from seedgrid.models.files import SUFFIX
from seedgrid.storage.cache import recall_texts, remember_one


@dataclass(frozen=True, kw_only=True)
class Shelf:
    """Where the files of one kind are.

    Attributes:
        kind: Under which the cache remembers where files were used.
        folders: Where they may lie, asked each time.
    """

    kind: str
    folders: Callable[[], Iterable[Path]]

    def paths(self, name: str) -> list[Path]:
        """Return the files that are called so; a name is one path segment, its ending is free."""
        if not is_folder_name(name):
            return []
        name = name.removesuffix(SUFFIX)
        lying = (folder / f"{name}{SUFFIX}" for folder in self.folders())
        return [path for path in (*self._used(name), *lying) if path.is_file()]

    def all(self) -> Iterator[Path]:
        """Return every file, those that were used before first; a name may come again."""
        used = (path for name in recall_texts(self.kind) for path in self._used(name))
        lying = (path for folder in self.folders() for path in folder.glob(f"*{SUFFIX}"))
        return (path for path in (*used, *lying) if path.is_file())

    def keep(self, path: Path) -> None:
        """Make a file known by its name from now on."""
        others = [str(each) for each in self._used(path.stem) if each != path]
        remember_one(self.kind, path.stem, [str(path), *others])

    def _used(self, name: str) -> list[Path]:
        return [Path(place) for place in recall_texts(self.kind).get(name, [])]


def with_digest(paths: Iterable[Path], sha256: str, *, anew: bool = False) -> Path | None:
    """Return the first file with these weights.

    Args:
        paths: That are called as a recipe says.
        sha256: Of the weights that it names.
        anew: Read every byte, whatever is remembered of the files.
    """
    return next((path for path in paths if file_digest(path, anew=anew) == sha256), None)
