"""How much work a regular expression can be made to do, counted and not timed.

A matcher of its own walks a pattern as Python parsed it, going back exactly as Python's does, and
counts every look at a character. So growth is a whole number that no busy machine changes. It
knows what the package's patterns use and refuses the rest.

    work(re.compile("(a+)+b"), "a" * 12, everywhere=False)
"""

from __future__ import annotations

import re
import re._constants as op
import re._parser as parser
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any

MAX_WORK = 400_000

Node = tuple[Any, Any]


class TooMuchError(Exception):
    """The pattern looked at more characters than anybody should wait for."""


class Matcher:
    """Matches one pattern at one place of a text and counts what it looks at."""

    def __init__(self, pattern: re.Pattern[str], text: str) -> None:
        self._nodes, self._one = _parsed(pattern)
        self._text = text
        self.work = 0

    def end(self, start: int, *, whole: bool) -> int | None:
        """Return where the match that begins here ends."""
        for end in self._sequence(self._nodes, start):
            if not whole or end == len(self._text):
                return end
        return None

    def _count(self) -> None:
        self.work += 1
        if self.work > MAX_WORK:
            raise TooMuchError

    def _sequence(self, nodes: list[Node], at: int, first: int = 0) -> Iterator[int]:
        """Go through the ends of these nodes, from the first of them that is asked for."""
        while first < len(nodes) and (one := self._one[id(nodes[first])]) is not None:
            self._count()
            if at == len(self._text) or not one.match(self._text[at]):
                return
            at, first = at + 1, first + 1
        if first == len(nodes):
            yield at
            return
        for middle in self._node(nodes[first], at):
            yield from self._sequence(nodes, middle, first + 1)

    def _node(self, node: Node, at: int) -> Iterator[int]:
        """Go through the ends of a node that is more than one character."""
        kind, value = node
        self._count()
        if kind in (op.MAX_REPEAT, op.POSSESSIVE_REPEAT, op.MIN_REPEAT):
            yield from self._repeat(kind, *value, at)
        elif kind is op.SUBPATTERN:
            yield from self._sequence(value[3].data, at)
        elif kind is op.BRANCH:
            for choice in value[1]:
                yield from self._sequence(choice.data, at)
        elif kind is op.AT:
            yield from self._place(value, at)
        elif kind in (op.ASSERT, op.ASSERT_NOT):
            yield from self._look(kind, *value, at)
        else:
            raise NotImplementedError(kind)

    def _repeat(self, kind: Any, low: int, high: int, body: Any, at: int) -> Iterator[int]:
        one = self._one[id(body.data[0])] if len(body.data) == 1 else None
        if one is not None:
            ends = self._ends_of_one(kind, low, high, one, at)
        else:
            ends = self._ends(kind, low, high, body.data, at)
        yield from islice(ends, 1) if kind is op.POSSESSIVE_REPEAT else ends

    def _ends_of_one(
        self, kind: Any, low: int, high: int, one: re.Pattern[str], at: int
    ) -> Iterator[int]:
        """Go through the ends of a repeat of one character, as `_ends` does, without a stack."""
        end = at
        while end - at < high:
            if kind is op.MIN_REPEAT and end - at >= low:
                yield end
            self._count()
            if end == len(self._text) or not one.match(self._text[end]):
                break
            end += 1
        else:
            if kind is op.MIN_REPEAT and end - at >= low:
                yield end
        if kind is not op.MIN_REPEAT:
            yield from range(end, at + low - 1, -1)

    def _ends(self, kind: Any, low: int, high: int, body: list[Node], at: int) -> Iterator[int]:
        """Go through the ends of a repeat, the longest first but for a lazy one."""
        if kind is op.MIN_REPEAT:
            waiting, count = [at], 0
            while waiting and count <= high:
                if count >= low:
                    yield from waiting
                waiting = [end for start in waiting for end in self._sequence(body, start)]
                count += 1
            return
        stack: list[tuple[int, int, Iterator[int]]] = [(at, 0, self._sequence(body, at))]
        while stack:
            start, count, inner = stack[-1]
            end = next(inner, None) if count < high else None
            if end is None or end == start:
                stack.pop()
                if count >= low:
                    yield start
            else:
                stack.append((end, count + 1, self._sequence(body, end)))

    def _place(self, value: Any, at: int) -> Iterator[int]:
        text = self._text
        sides = [
            0 <= place < len(text) and bool(re.match(r"\w", text[place])) for place in (at - 1, at)
        ]
        holds = {
            op.AT_BEGINNING: at == 0,
            op.AT_END: at == len(text) or text[at:] == "\n",
            op.AT_END_STRING: at == len(text),
            op.AT_BOUNDARY: sides[0] != sides[1],
        }
        if holds[value]:
            yield at

    def _look(self, kind: Any, direction: int, body: Any, at: int) -> Iterator[int]:
        start = at if direction > 0 else at - body.getwidth()[0]
        found = start >= 0 and next(self._sequence(body.data, start), None) is not None
        if found == (kind is op.ASSERT):
            yield at


@cache
def _parsed(pattern: re.Pattern[str]) -> tuple[list[Node], dict[int, re.Pattern[str] | None]]:
    """Parse a pattern once, with what matches each of its single characters."""
    nodes = list(parser.parse(pattern.pattern, pattern.flags))
    return nodes, {id(node): _class(node, pattern.flags) for node in _flat(nodes)}


def _class(node: Node, flags: int) -> re.Pattern[str] | None:
    """Return a pattern of one character for what matches one."""
    kind, value = node
    if kind is op.LITERAL:
        return re.compile(re.escape(chr(value)), flags & re.IGNORECASE)
    if kind is op.NOT_LITERAL:
        return re.compile(f"[^{re.escape(chr(value))}]", flags & re.IGNORECASE)
    if kind is op.ANY:
        return re.compile(".", flags & re.DOTALL)
    return re.compile(_as_class(value), flags) if kind is op.IN else None


def work(pattern: re.Pattern[str], text: str, *, everywhere: bool) -> int:
    """Count the looks at a character until a pattern has no more to say about a text.

    Args:
        pattern: Compiled, of texts.
        text: What it is given.
        everywhere: As `findall` and `sub` do, from every place; else as `fullmatch` does.

    Raises:
        TooMuchError: More than `MAX_WORK`.
    """
    matcher = Matcher(pattern, text)
    if not everywhere:
        matcher.end(0, whole=True)
        return matcher.work
    at = 0
    while at <= len(text):
        end = matcher.end(at, whole=False)
        at = max(end, at + 1) if end is not None else at + 1
    return matcher.work


def samples(nodes: Any, limit: int = 8) -> list[str]:
    """Return texts that a parsed pattern, or a part of it, matches; the assertions aside."""
    found = [""]
    for node in nodes:
        found = list(dict.fromkeys(a + b for a in found for b in _samples(node)))[:limit]
    return found


def pumps(pattern: re.Pattern[str]) -> list[str]:
    """Return what a hostile text would repeat: beginnings and insides of what matches."""
    nodes = parser.parse(pattern.pattern, pattern.flags)
    found: list[str] = []
    for part in _parts(nodes):
        found += [text[:end] for text in samples(part) for end in range(1, min(len(text), 16) + 1)]
        found += [text[-size:] for text in samples(part) for size in (1, 2, 3) if text]
    singles = dict.fromkeys(character for text in found for character in text)
    pairs = [a + b for a in islice(singles, 5) for b in islice(singles, 5)]
    return list(dict.fromkeys([*singles, " ", "\n", *pairs, *found]))


def _samples(node: Node) -> list[str]:
    kind, value = node
    if kind is op.LITERAL:
        return [chr(value)]
    if kind in (op.NOT_LITERAL, op.ANY):
        return ["a", "1"]
    if kind is op.IN:
        one = re.compile(_as_class(value))
        wanted = [chr(v) for k, v in value if k is op.LITERAL] + list(
            "a1 -_.\"'\\([{<:,\n\x00\u00b7"
        )
        return list(dict.fromkeys(letter for letter in wanted if one.match(letter)))[:3]
    if kind in (op.MAX_REPEAT, op.POSSESSIVE_REPEAT, op.MIN_REPEAT):
        low, high, body = value
        inner = samples(body, 4)
        return [
            text * count
            for count in {low, min(low + 2, high), min(low + 1, high)}
            for text in inner
        ]
    if kind is op.SUBPATTERN:
        return samples(value[3])
    if kind is op.BRANCH:
        return [text for choice in value[1] for text in samples(choice, 2)]
    return [""]


def _parts(nodes: Any) -> Iterator[Any]:
    """Go through a pattern, and through the body of each of its repeats and groups."""
    yield nodes
    for node in _flat(list(nodes)):
        kind, value = node
        if kind in (op.MAX_REPEAT, op.POSSESSIVE_REPEAT, op.MIN_REPEAT):
            yield value[2]
        elif kind is op.SUBPATTERN:
            yield value[3]


def _flat(nodes: list[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        kind, value = node
        inner: list[Any] = []
        if kind in (op.MAX_REPEAT, op.POSSESSIVE_REPEAT, op.MIN_REPEAT):
            inner = [value[2]]
        elif kind is op.SUBPATTERN:
            inner = [value[3]]
        elif kind is op.BRANCH:
            inner = list(value[1])
        elif kind in (op.ASSERT, op.ASSERT_NOT):
            inner = [value[1]]
        for part in inner:
            yield from _flat(list(part))


_CATEGORIES = {
    op.CATEGORY_DIGIT: r"\d",
    op.CATEGORY_NOT_DIGIT: r"\D",
    op.CATEGORY_SPACE: r"\s",
    op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w",
    op.CATEGORY_NOT_WORD: r"\W",
}


def _as_class(items: Any) -> str:
    """Write a parsed set of characters as a pattern again."""
    written = ""
    for kind, value in items:
        if kind is op.NEGATE:
            written += "^"
        elif kind is op.LITERAL:
            written += f"\\U{value:08x}"
        elif kind is op.RANGE:
            written += f"\\U{value[0]:08x}-\\U{value[1]:08x}"
        else:
            written += _CATEGORIES[value]
    return f"[{written}]"
