"""Errors that are expected, by their kinds and codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from seedgrid.core.errors import SeedGridError


@contextmanager
def refused(
    kind: type[SeedGridError],
    code: str | None = None,
    match: str | None = None,
    field: str | None = None,
) -> Iterator[pytest.ExceptionInfo[SeedGridError]]:
    """Expect an error of a kind, and of that code and at that field where they are given."""
    with pytest.raises(kind, match=match) as caught:
        yield caught
    assert code in (None, caught.value.code)
    assert field in (None, getattr(caught.value, "field", None))


def code_of(call: Callable[..., object], *arguments: object, **settings: object) -> str:
    """Return the code of the error that a call raises."""
    with pytest.raises(SeedGridError) as caught:
        call(*arguments, **settings)
    return caught.value.code
