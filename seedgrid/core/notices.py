"""Notice: something worth telling that is not an error, as a code and its data.

The English sentence is in `errors.MESSAGES`, other languages translate the code.

    str(Notice("library_rebuilt", value=12))
"""

from collections.abc import Mapping
from typing import ClassVar

from seedgrid.core.errors import MESSAGES, plain_data


class Notice:
    """A sentence by its code.

    Attributes:
        sentences: In English, by code.
        code: A key of them.
        data: What the sentence is filled with.
    """

    sentences: ClassVar[Mapping[str, str]] = MESSAGES

    def __init__(self, code: str, **data: object) -> None:
        self.code = code
        self.data = plain_data(data)

    def __str__(self) -> str:
        return self.sentences[self.code].format(**self.data)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.code}: {self})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Notice) and (self.code, self.data) == (other.code, other.data)

    def __hash__(self) -> int:
        return hash((self.code, str(self)))
