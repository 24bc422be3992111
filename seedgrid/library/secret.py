"""What this library painted itself, told apart from what others say: a keyed digest, a seal.

A PNG file may claim any pixels for any recipe. So each picture that is painted here gets a seal
over its recipe, its passport and its pixels, made with 32 random bytes that no other library has
(`library.secret`, readable by its owner alone). The seal lies in the database and, so that it
survives a rebuild, in the PNG: outside this library it says nothing, and nobody can make one.
"""

from __future__ import annotations

import contextlib
import hmac
import re
import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from seedgrid.core.picture import Entry, Picture
from seedgrid.storage.files import write_atomically

_KEY: Final = re.compile(r"[0-9a-f]{64}")
_NUM_BYTES: Final = 32
_OWNER_ALONE: Final = 0o600


class Secret:
    """The key of a library; it is made when the first picture is sealed."""

    def __init__(self, path: Path, held: Callable[[], AbstractContextManager[None]]) -> None:
        self._path = path
        self._held = held
        self._key = ""

    def seal(self, picture: Entry | Picture) -> str:
        """Return the seal of a picture, 64 hexadecimal digits."""
        return _sealed(self._known() or self._made(), picture)

    def follow(self, older: Secret) -> None:
        """Go on with an older one's key where the file is gone, so that its seals stay good."""
        with self._held():
            if older._key and not self._known():
                self._write(older._key)

    def fits(self, entry: Entry, seal: str | None) -> bool:
        """Tell whether this library made that seal for that picture."""
        key = self._known()
        return bool(key and seal) and hmac.compare_digest(_sealed(key, entry), str(seal))

    def _known(self) -> str:
        """Return the key, or nothing when there is none that can be read."""
        if not self._key:
            with contextlib.suppress(OSError, ValueError):
                found = self._path.read_text(encoding="ascii").strip()
                self._key = found if _KEY.fullmatch(found) else ""
        return self._key

    def _made(self) -> str:
        with self._held():
            if not self._known():
                self._write(secrets.token_hex(_NUM_BYTES))
        return self._key

    def _write(self, key: str) -> None:
        write_atomically(self._path, key.encode(), mode=_OWNER_ALONE)
        self._key = key


def _sealed(key: str, picture: Entry | Picture) -> str:
    text = f"{picture.recipe.id}|{picture.passport.digest}|{picture.pixels_sha256}"
    return hmac.new(bytes.fromhex(key), text.encode(), "sha256").hexdigest()
