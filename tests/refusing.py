"""Errors that are expected, by their kinds and codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from seedgrid.core.errors import SeedGridError


@contextmanager
def refused(
    kind: type[SeedGridError], code: str, match: str | None = None
) -> Iterator[pytest.ExceptionInfo[SeedGridError]]:
    """Expect an error of a kind with that code."""
    with pytest.raises(kind, match=match) as caught:
        yield caught
    assert caught.value.code == code


def code_of(call: Callable[..., object], *arguments: object, **settings: object) -> str:
    """Return the code of the error that a call raises."""
    with pytest.raises(SeedGridError) as caught:
        call(*arguments, **settings)
    return caught.value.code
