"""No regular expression of the package takes more than its share of a long text.

Each is found in the source, given what a hostile text would repeat, and its work counted: twice
the text may be twice the work, not four times. Patterns of pydantic's fields are not here: Rust
reads them, in linear time whatever they say.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from backtracking import Matcher, TooMuchError, pumps, samples, work
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parent.parent
SOURCES = sorted([*(ROOT / "seedgrid").rglob("*.py"), ROOT / "app.py"])
SCRIPTS = sorted((ROOT / "assets").glob("*.js"))

_ANCHORED = {"match", "fullmatch"}
_FUNCTIONS = {"compile", "search", "findall", "finditer", "sub", "subn", "split", *_ANCHORED}
_SIZES = ((150, 300), (600, 1200))
"""Characters; where the shorter pair grows, a bounded repeat may still be filling up."""


def python_patterns() -> Iterator[tuple[str, re.Pattern[str], bool]]:
    """Find each pattern, and whether it is only ever tried at the beginning of a text."""
    for path in SOURCES:
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if _is_use_of_re(node):
                place = f"{path.relative_to(ROOT)}:{node.lineno}"
                yield place, _compiled(node, path), _is_anchored(node, tree)


def _is_use_of_re(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in _FUNCTIONS
    )


def _compiled(call: ast.Call, path: Path) -> re.Pattern[str]:
    """Compile the pattern of a call as its module does."""
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    module = importlib.import_module(name)
    expression = ast.Expression(call.args[0])
    pattern = eval(compile(expression, str(path), "eval"), vars(module))  # noqa: S307 (our source)
    if isinstance(pattern, bytes):
        pattern = pattern.decode("latin-1")
    flags = re.RegexFlag(0)
    for word in ("IGNORECASE", "DOTALL", "ASCII", "re.I"):
        if word in ast.unparse(call):
            flags |= re.IGNORECASE if word == "re.I" else getattr(re, word)
    return re.compile(pattern, flags)


def _is_anchored(call: ast.Call, tree: ast.Module) -> bool:
    """Tell whether a pattern is used by `fullmatch` alone, or by `match` from the start."""
    if call.func.attr != "compile":
        return call.func.attr in _ANCHORED
    names = [
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is call
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    ]
    uses = [
        (node.func.attr, len(node.args))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in names
    ]
    return bool(uses) and all(name in _ANCHORED and count == 1 for name, count in uses)


def script_patterns() -> Iterator[tuple[str, re.Pattern[str], bool]]:
    """Find the patterns of the page's scripts, written as Python writes them."""
    for path in SCRIPTS:
        for number, line in enumerate(path.read_text().split("\n"), 1):
            for literal in re.findall(
                r"[(=,:]\s?/((?:\\.|[^/\\*])(?:\\.|[^/\\])*)/[a-z]*[.,)]", line
            ):
                pattern = literal.replace(r"\p{L}", r"\w").replace(r"\p{N}", r"\d")
                yield f"{path.name}:{number}", re.compile(pattern), False


PATTERNS = [*python_patterns(), *script_patterns()]


@pytest.mark.parametrize(
    ("pattern", "is_anchored"),
    [pytest.param(pattern, anchored, id=place) for place, pattern, anchored in PATTERNS],
)
def test_twice_the_text_is_twice_the_work(pattern: re.Pattern[str], is_anchored: bool) -> None:
    """Whatever is repeated in a text, before whatever end, the work grows as the text does."""
    guilty = hostile_text(pattern, is_anchored=is_anchored)

    assert guilty is None, f"{pattern.pattern!r} grows with {guilty!r}"


@pytest.mark.parametrize(
    ("pattern", "is_anchored"),
    [
        (r"\s*(-?\d{1,20})(?:\s*[,;\s]\s*(-?\d{1,20}))*\s*[,;]?\s*", True),
        (r"(\d+% of seed \d+( \+ )?)+", True),
        (r"\s*\S+", False),
        (r"(a+)+b", True),
        (r"(a|a)*b", True),
        (r"x*x*y", True),
        (r"models--([^/]+?)--([^/]+)/snapshots/(\w+)/?$", False),
        (r"^(\w+\s?)*$", True),
    ],
)
def test_the_counter_finds_what_grows(pattern: str, is_anchored: bool) -> None:
    """What once stood in the package, and what the textbooks warn of, is found by it."""
    assert hostile_text(re.compile(pattern), is_anchored=is_anchored) is not None


def hostile_text(pattern: re.Pattern[str], *, is_anchored: bool) -> str | None:
    """Return what has to be repeated to make the work outgrow the text; None if nothing."""
    whole = samples(re._parser.parse(pattern.pattern, pattern.flags), 4)
    starts = {text[:end] for text in whole for end in range(min(len(text), 8))} | {""}
    for pump in pumps(pattern):
        for start in sorted(starts) if is_anchored else ("", "x"):
            for end in ("\x00", ""):
                if _grows(pattern, start, pump, end, everywhere=not is_anchored):
                    return start + pump + "…" + end
    return None


def _grows(pattern: re.Pattern[str], start: str, pump: str, end: str, *, everywhere: bool) -> bool:
    try:
        for short, long in _SIZES:
            once, twice = (
                work(pattern, start + pump * (size // len(pump)) + end, everywhere=everywhere)
                for size in (short, long)
            )
            if twice <= 2.6 * once + 200:
                return False
    except TooMuchError:
        return True
    return True


LETTERS = "ab1 -–,;:<>()[]{}\\\"'lora/.@%+\n"


@pytest.mark.parametrize("pattern", [pattern for _, pattern, _ in PATTERNS])
@given(text=st.text(LETTERS, max_size=12))
def test_the_counter_matches_as_python_does(pattern: re.Pattern[str], text: str) -> None:
    """What it counts is the work of finding the very match that Python finds."""
    found, whole = pattern.match(text), pattern.fullmatch(text)

    assert Matcher(pattern, text).end(0, whole=False) == (found.end() if found else None)
    assert Matcher(pattern, text).end(0, whole=True) == (whole.end() if whole else None)


def test_all_patterns_were_found() -> None:
    """Nobody takes patterns from elsewhere, where this file would not see them."""
    foreign = [
        path.name
        for path in SOURCES
        if re.search(r"from re import|import (regex|re2|fnmatch)|\bre as\b", path.read_text())
    ]

    assert foreign == []
    assert len(PATTERNS) >= 25
    assert any(place.endswith(".js") or ".js:" in place for place, _, _ in PATTERNS)
