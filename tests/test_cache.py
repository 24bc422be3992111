"""What is remembered between processes: small, and bounded where strangers may add to it."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from seedgrid.storage.cache import cache_folder, recall, recall_value, recall_values, remember_one

pytestmark = pytest.mark.usefixtures("forgetful")

MAX_VALUES = 8


class Found(BaseModel):
    number: int


def test_of_very_many_values_the_longest_known_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each setting and size of a stranger adds one, and all are read whenever one is wanted."""
    monkeypatch.setattr("seedgrid.storage.cache.MAX_VALUES", MAX_VALUES)
    for number in range(MAX_VALUES):
        remember_one("found", f"key {number}", Found(number=number).model_dump_json())
    remember_one("found", "key 0", Found(number=0).model_dump_json())
    for number in range(MAX_VALUES, MAX_VALUES + 3):
        remember_one("found", f"key {number}", Found(number=number).model_dump_json())
    assert recall_value("found", "key 3", Found) is None
    assert recall_value("found", "key 4", Found) == Found(number=4)
    numbers = [value.number for value in recall_values("found", Found)]
    assert numbers == [*range(4, MAX_VALUES), 0, *range(MAX_VALUES, MAX_VALUES + 3)]


def test_a_value_of_another_release_is_none() -> None:
    """What cannot be read costs the work once more, and is no error."""
    for key, value in (("a", 5), ("b", '{"number": "x"}'), ("c", '{"number": 1}')):
        remember_one("found", key, value)
    assert [recall_value("found", key, Found) for key in "abcd"] == [
        None,
        None,
        Found(number=1),
        None,
    ]
    assert recall_values("found", Found) == [Found(number=1)]
    (cache_folder() / "found.json").write_text("[1]")
    assert recall("found") == {}
