"""Pictures as they are, in one ZIP file: the PNGs with their recipes inside, and nothing else."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from seedgrid.core.entry import Entry
from seedgrid.core.errors import InputError
from seedgrid.core.filenames import picture_filename, unlike_each_other
from seedgrid.storage.files import open_atomically

# A fixed date makes equal archives equal files.
_DATE: Final = (2026, 1, 1, 0, 0, 0)


def write_pictures(entries: Sequence[Entry], path: Path) -> None:
    """Write the files of these pictures, named by their words; those that are gone are left out.

    Raises:
        InputError: `export_nothing`: no file is there.
        LibraryError: The archive cannot be written.
    """
    there = [entry for entry in entries if entry.path.is_file()]
    if not there:
        raise InputError("export_nothing", field="picture")
    names = unlike_each_other(picture_filename(e.recipe.prompt, e.recipe.seed) for e in there)
    with open_atomically(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, entry in zip(names, there, strict=True):
            # PNGs are packed already.
            archive.writestr(zipfile.ZipInfo(name, _DATE), entry.path.read_bytes())
