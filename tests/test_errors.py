"""Errors: one sentence each, with the value."""

from __future__ import annotations

import ast
import collections
import string
from pathlib import Path

import pytest

from seedgrid.core.errors import MESSAGES, RunError
from seedgrid.locales import locales

ROOT = Path(__file__).parent.parent
OURS = {"Notice", "InputError", "ModelError", "DeviceError", "PictureError", "RunError"}
OURS |= {"RunCancelled", "LibraryError"}


def test_each_sentence_is_one_line_and_ends() -> None:
    """A sentence is one line that begins like a sentence and ends like one."""
    for code, text in MESSAGES.items():
        assert "\n" not in text, code
        assert text.endswith((".", "?", ")", "`", "}")), code
        assert text[0].isupper() or text[0] in "“{", code


@pytest.mark.parametrize("language", locales())
def test_a_librarys_own_sentence_ends_once(language: str) -> None:
    """What diffusers says ends with a full stop as often as not; ours has one in either case."""
    sentences = locales()[language].errors
    with_reason = [text for text in sentences.values() if "{reason}" in text]
    assert len(with_reason) > 15
    for said in ("The size must fit.", "The size must fit"):
        data = RunError("pipeline_refused", reason=said).data
        for text in with_reason:
            filled = text.format_map(collections.defaultdict(lambda: "x", data))
            assert ".." not in filled
            assert ".。" not in filled
            assert filled[-1] in ".。)）”"


def _raised() -> list[tuple[str, str, set[str]]]:
    """Return (place, code, names of data) of every error and notice made in the package."""
    found = []
    for path in sorted((ROOT / "seedgrid").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            first = node.args[0] if node.args else None
            if node.func.id not in OURS or not isinstance(first, ast.Constant):
                continue
            names = {keyword.arg or "**" for keyword in node.keywords}
            found.append((f"{path.name}:{node.lineno}", first.value, names))
    return found


def test_each_error_that_is_raised_has_its_sentence() -> None:
    """Every code in the source is in the table, and brings what its sentence needs."""
    problems = []
    for place, code, names in _raised():
        if code not in MESSAGES:
            problems.append(f"{place}: {code} has no sentence")
            continue
        fields = {name for _, name, _, _ in string.Formatter().parse(MESSAGES[code]) if name}
        fields = {name.split(".")[0].split("[")[0] for name in fields}
        if "**" not in names and not fields <= names | {"field"}:
            problems.append(f"{place}: {code} lacks {fields - names}")
    assert not problems
    assert len(_raised()) > 30
