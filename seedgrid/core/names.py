"""Names that a file may bring: of models, their revisions, and releases of libraries.

They end in commands, addresses, folders and requirements, so what is one is said here, once and
narrowly. Knows nothing of the hub or of files; letters and digits are those of ASCII.

    is_hub_id("org/name"), is_revision("main"), release("2.13.0+cpu")   # True, True, '2.13.0'
"""

import re
from typing import Final

_PART: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?"
_HUB_ID: Final = re.compile(rf"{_PART}/{_PART}")
_REVISION: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_RELEASE: Final = re.compile(
    r"[0-9]{1,4}(?:\.[0-9]{1,6}){1,3}(?:(?:a|b|rc)[0-9]{1,3})?(?:\.post[0-9]{1,3})?"
    r"(?:\.dev[0-9]{1,8})?"
)
_NO_SEGMENT: Final = frozenset('/\\:*?"<>|')
_MAX_SEGMENT: Final = 200


def is_hub_id(text: str) -> bool:
    """Tell whether a text is `org/name` by the hub's rules, so that it is no path and no option.

    Source: https://github.com/huggingface/huggingface_hub, `utils/_validators.py`
    """
    is_spelled = _HUB_ID.fullmatch(text) is not None
    return is_spelled and not any(part in text for part in ("--", "..")) and text[-4:] != ".git"


def is_revision(text: str) -> bool:
    """Tell whether a text can be a commit, a tag or a branch; one with a slash in it is not."""
    return _REVISION.fullmatch(text) is not None and ".." not in text


def is_folder_name(text: str) -> bool:
    """Tell whether a text can be the name of one folder or file, and can lead nowhere else."""
    return (
        0 < len(text) <= _MAX_SEGMENT
        and text.isprintable()
        and text[0] not in ".-~"
        and not _NO_SEGMENT & set(text)
    )


def is_model_name(text: str) -> bool:
    """Tell whether a recipe may call its model so: by a hub id, or by a folder's or file's name."""
    return is_hub_id(text) or is_folder_name(text)


def release(version: str) -> str | None:
    """Return a library's release as package indexes have it, without a local build's suffix.

    Returns:
        `"2.13.0"`; None when the text is no version.
    """
    public = version.partition("+")[0]
    return public if _RELEASE.fullmatch(public) else None
