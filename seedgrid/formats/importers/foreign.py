"""Read another tool's picture: which tool it was is told by the keys of its texts.

read_foreign(Path("00012-1234.png")).request.prompt
"""

from collections.abc import Callable, Mapping
from typing import Final

from seedgrid.core.errors import PictureError
from seedgrid.formats import exif, png
from seedgrid.formats.importers import a1111, comfyui, fooocus, invokeai, novelai, swarmui
from seedgrid.formats.importers.imported import Found, Imported, to_imported

_READERS: Final[tuple[Callable[[Mapping[str, str]], Found | None], ...]] = (
    invokeai.read,
    swarmui.read,
    fooocus.read,
    a1111.read,
    novelai.read,
    comfyui.read,
)


_OTHERS: Final = frozenset({"prompt", "negative_prompt", "seed", "workflow"})
"""Texts that are of tools whatever is in them, in small letters."""


def read_foreign(source: png.Source) -> Imported:
    """Turn another tool's picture into a request, with what cannot come along.

    Raises:
        PictureError: The file is missing or damaged; `picture_without_recipe` when it says
            nothing of how it was made; `picture_foreign` when what it says cannot be read.
    """
    data = png.read_bytes(source)
    texts = exif.read_texts(data) if exif.is_photo(data) else png.read_texts(data)
    for read in _READERS:
        found = read(texts)
        if found is not None:
            return to_imported(found)
    raise PictureError("picture_without_recipe")


def names_settings(texts: Mapping[str, str]) -> bool:
    """Tell whether any of these tools would find settings of its own in a file's texts."""
    if not _OTHERS.isdisjoint(map(str.casefold, texts)):
        return True
    try:
        return any(read(texts) is not None for read in _READERS)
    except PictureError:  # They are its own, and damaged.
        return True
