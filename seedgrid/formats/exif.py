"""Reads the texts in the EXIF block of a JPEG or WebP file, with limits, by the keys of PNG texts.

AUTOMATIC1111, Forge, SD.Next, SwarmUI and Fooocus write their `parameters` as the user comment;
ComfyUI writes `prompt:{…}` into the camera's model.

Source: Exif 2.32, 4.6.5 (user comment)
"""

import struct
from typing import Final

from seedgrid.core.errors import PictureError
from seedgrid.formats.importers.foreign import as_text, read_object
from seedgrid.storage.unpacking import exif_block, exif_fields

_SOFTWARE, _MAKER_NOTE, _USER_COMMENT = 0x0131, 0x927C, 0x9286
_MAKE_AND_MODEL: Final = range(0x0100, 0x0111)  # ComfyUI uses the tags from the model downwards

_TEXT_TAGS: Final = {_SOFTWARE, _MAKER_NOTE, _USER_COMMENT, *_MAKE_AND_MODEL}


def read_texts(data: bytes) -> dict[str, str]:
    """Read the texts by PNG keys; raise `picture_foreign`, or `picture_text` above 256 KB."""
    block = exif_block(data)
    if block is None:
        raise PictureError("picture_text", value="EXIF")
    try:
        tags = exif_fields(block, _TEXT_TAGS) if block else {}
    except (struct.error, ValueError) as error:
        raise PictureError("picture_foreign", reason="their EXIF data are damaged") from error
    return _texts(tags)


def _texts(tags: dict[int, bytes]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for tag in reversed(_MAKE_AND_MODEL):
        key, _, value = _decode_plain(tags.get(tag, b"")).partition(":")
        if key.casefold() in ("prompt", "workflow") and value.lstrip().startswith("{"):
            texts.setdefault(key.casefold(), value)
    comment = _decode_comment(tags.get(_USER_COMMENT, b""))
    if _decode_plain(tags.get(_SOFTWARE, b"")).startswith("Fooocus"):
        texts["fooocus_scheme"] = _decode_plain(tags.get(_MAKER_NOTE, b""))
    if '"NovelAI"' in comment and '"Comment"' in comment:
        texts |= {key: as_text(value) for key, value in read_object(comment).items()}
    elif comment:
        texts["parameters"] = comment
    return texts


def _decode_comment(value: bytes) -> str:
    """Decode a user comment; its first eight bytes may name the encoding."""
    code, words = value[:8], value[8:]
    if code == b"UNICODE\0":
        return _decode_utf16(words)
    return _decode_plain(words if code in (b"ASCII\0\0\0", bytes(8)) else value)


def _decode_utf16(words: bytes) -> str:
    """Decode UTF-16 of either byte order, which differs between programs."""
    if 0 not in words:
        return _decode_plain(words)
    # Settings hold Latin letters, whose other byte is zero.
    is_little = words[1::2].count(0) > words[::2].count(0)
    text = words[: len(words) // 2 * 2].decode("utf-16-le" if is_little else "utf-16-be", "replace")
    return text.strip("\ufeff\ufffe\0 ")


def _decode_plain(value: bytes) -> str:
    try:
        return value.decode().strip("\0 ")
    except UnicodeDecodeError:
        return value.decode("latin-1").strip("\0 ")
