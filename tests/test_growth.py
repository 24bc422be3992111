"""No regular expression of the package takes more than its share of a long text.

Each is found in the source and tried on 30,000 characters of what it repeats. Linear work takes
a millisecond there, quadratic work seconds. Patterns of pydantic's fields are not here: Rust reads
them, in linear time whatever they say.
"""

from __future__ import annotations

import ast
import importlib
import re
import signal
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from types import FrameType

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted([*(ROOT / "seedgrid").rglob("*.py"), ROOT / "app.py"])
SCRIPTS = sorted((ROOT / "assets").glob("*.js"))

_ANCHORED = {"match", "fullmatch"}
_NAMES = ("compile", "search", "findall", "finditer", "sub", "subn", "split", *_ANCHORED)
_FUNCTIONS = {f"re.{name}" for name in _NAMES}
_LENGTH = 30_000
_COMMON = ("a", "1", " ", "\n", "-", ",", "\x00")


def python_patterns() -> Iterator[tuple[str, re.Pattern[str], bool]]:
    """Find each pattern, and whether it is only ever tried at the beginning of a text."""
    for path in SOURCES:
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if _is_use_of_re(node):
                place = f"{path.relative_to(ROOT)}:{node.lineno}"
                yield place, _compiled(node, path), _is_anchored(node, tree)


def _is_use_of_re(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in _FUNCTIONS


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


@pytest.mark.skipif(not hasattr(signal, "SIGVTALRM"), reason="Windows has no such timer")
@pytest.mark.parametrize(
    ("pattern", "is_anchored"),
    [pytest.param(pattern, anchored, id=place) for place, pattern, anchored in PATTERNS],
)
def test_no_pattern_freezes_on_a_long_text(pattern: re.Pattern[str], is_anchored: bool) -> None:
    """Whatever is repeated, before whatever end, a text of the greatest length is read."""
    text = freezing_text(pattern, is_anchored=is_anchored, limit_s=2.0)
    assert text is None, f"{pattern.pattern!r} freezes on {text!r}"


@pytest.mark.skipif(not hasattr(signal, "SIGVTALRM"), reason="Windows has no such timer")
@pytest.mark.parametrize(
    ("pattern", "is_anchored"),
    [
        (r"\s*(-?\d{1,20})(?:\s*[,;\s]\s*(-?\d{1,20}))*\s*[,;]?\s*", True),
        (r"\s*\S+", False),
        (r"x*x*y", True),
        (r"models--([^/]+?)--([^/]+)/snapshots/(\w+)/?$", False),
    ],
)
def test_patterns_that_freeze_are_found(pattern: str, is_anchored: bool) -> None:
    """The control: what once stood in the package, and what textbooks warn of."""
    assert freezing_text(re.compile(pattern), is_anchored=is_anchored, limit_s=0.05) is not None


def freezing_text(pattern: re.Pattern[str], *, is_anchored: bool, limit_s: float) -> str | None:
    """Return what begins a text on which a pattern needs too much processor time, or None."""
    plain = re.sub(r"\\.", "", pattern.pattern)
    words = [*dict.fromkeys(re.findall(r"[A-Za-z-]{2,}", plain))][:3]
    letters = [*dict.fromkeys([*_COMMON, *re.sub(r"[\[\]()*+?|^$]", "", plain)])][:20]
    pairs = [a + b for a, b in product(letters[:4], repeat=2)]
    find = pattern.fullmatch if is_anchored else pattern.search

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    text = ""
    try:
        for start, pump, end in product(
            ["", "1", "a", *words], [*letters, *words, *pairs], ["", "\x00"]
        ):
            text = start + pump * (_LENGTH // len(pump)) + end
            signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
            find(text)
    except TimeoutError:
        return text[:40]
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return None


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
