"""The table of environment variables is complete, and the docs say what the code does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from seedgrid.core import variables
from seedgrid.core.errors import InputError
from seedgrid.core.variables import LIMITS, count, number

ROOT = Path(__file__).parent.parent
SOURCES = sorted([*(ROOT / "seedgrid").rglob("*.py"), ROOT / "app.py"])
FOREIGN = re.compile(r"(SPACE_ID|GRADIO_[A-Z_]+|FORWARDED_ALLOW_IPS|CUBLAS_[A-Z_]+)")
OURS = re.compile(r"SEEDGRID_[A-Z_]+")
INSIDE = {"SEEDGRID_VERSION"}
"""Names in generated programs that are no environment variables."""


def _texts(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


TABLE = {
    row[0]: row[2:]
    for line in (ROOT / "docs" / "operations.md").read_text().splitlines()
    if len(row := [cell.strip(" `") for cell in line.split("|")[1:-1]]) == 4
}
"""The defaults at home and on a public page, by variable."""


def test_every_variable_in_the_code_is_in_the_docs() -> None:
    """Whoever reads another variable writes a line about it first."""
    used = {
        text
        for path in SOURCES
        for text in _texts(path)
        if OURS.fullmatch(text) or FOREIGN.fullmatch(text)
    }
    assert used - INSIDE <= TABLE.keys()
    assert {name for name in TABLE if OURS.fullmatch(name)} <= used


def test_the_docs_say_the_bounds() -> None:
    """Their table has the defaults of the code."""
    for name, bounds in LIMITS.items():
        assert TABLE[name] == ["–" if bound is None else str(bound) for bound in bounds], name


def test_a_public_page_is_bounded_and_ones_own_machine_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every bound has a sane default for strangers; `none` takes it away."""
    monkeypatch.delenv("SEEDGRID_MAX_QUEUE_S", raising=False)
    monkeypatch.delenv("SPACE_ID", raising=False)
    monkeypatch.setenv("SEEDGRID_PUBLIC", "0")
    assert number("SEEDGRID_MAX_QUEUE_S") is None
    monkeypatch.setenv("SEEDGRID_PUBLIC", "1")
    assert number("SEEDGRID_MAX_QUEUE_S") == 1800.0
    monkeypatch.setenv("SEEDGRID_MAX_QUEUE_S", "60")
    assert count("SEEDGRID_MAX_QUEUE_S") == 60
    monkeypatch.setenv("SEEDGRID_MAX_QUEUE_S", "none")
    assert number("SEEDGRID_MAX_QUEUE_S") is None
    for name in LIMITS:
        monkeypatch.delenv(name, raising=False)
        assert number(name) is not None, name


@pytest.mark.parametrize("text", ["many", "0", "-1", "nan", "inf", "1e999"])
def test_a_bound_that_is_no_number_is_told(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program does not start with a bound that bounds nothing by mistake."""
    monkeypatch.setenv("SEEDGRID_MAX_RUN_S", text)
    with pytest.raises(InputError, match="SEEDGRID_MAX_RUN_S"):
        number("SEEDGRID_MAX_RUN_S")


def test_a_space_is_public(monkeypatch: pytest.MonkeyPatch) -> None:
    """So is a page of which the variable says so, and no other."""
    monkeypatch.delenv("SPACE_ID", raising=False)
    monkeypatch.delenv("SEEDGRID_PUBLIC", raising=False)
    assert not variables.is_public()
    assert variables.trusted_proxies() == ""
    monkeypatch.setenv("SEEDGRID_PUBLIC", "1")
    assert variables.is_public()
    monkeypatch.setenv("SEEDGRID_PUBLIC", "0")
    monkeypatch.setenv("SPACE_ID", "someone/seedgrid")
    assert variables.is_public()
    assert "10.0.0.0/8" in variables.trusted_proxies()
    assert "127." not in variables.trusted_proxies()
