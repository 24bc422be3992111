"""The graph of a ComfyUI run: nodes by id, links followed back, values found behind links.

A graph may be damaged, endless or hostile: every walk has a budget, and what comes out of it is
never longer than a prompt can be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal

from seedgrid.core.recipe import MAX_PROMPT_CHARACTERS
from seedgrid.formats.importers.json_texts import as_dict, as_text

_MAX_NODES: Final = 5000
_MAX_STEPS: Final = 10_000
_MAX_KIND: Final = 200
_MAX_DEPTH: Final = 100
_MAX_TEXT: Final = 2 * MAX_PROMPT_CHARACTERS
_FILLED_IN: Final = "populated_text"
_WORDS: Final = (
    _FILLED_IN,
    "text",
    "text_g",
    "clip_g",
    "t5xxl",
    "mt5xl",
    "clip_l",
    "text_l",
    "bert",
    "prompt",
    "user_prompt",
    "string",
    "value",
    "wildcard_text",
    "text_0",
)
_PARTS: Final = (
    *(f"{name}_{letter}" for name in ("string", "text") for letter in "abcd"),
    *(f"{name}{number}" for name in ("string", "text", "string_") for number in range(1, 5)),
)
_BETWEEN: Final = ("delimiter", "separator")
_CONDITIONING: Final = (
    "conditioning",
    "conditioning_1",
    "conditioning_to",
    "conditioning_2",
    "conditioning_from",
    "cond",
    "cond1",
    "cond2",
)
_NUMBERS: Final = ("value", "int", "float", "number", "Number")

Role = Literal["positive", "negative"]


@dataclass(frozen=True, kw_only=True)
class Node:
    """One node: its id, its kind (`class_type`) and its inputs, values or links."""

    id: str
    kind: str
    inputs: dict[str, Any] = field(repr=False)

    @cached_property
    def is_reroute(self) -> bool:
        """Whether it only leads a line around."""
        return "reroute" in self.kind.casefold()

    def __hash__(self) -> int:
        return hash(self.id)


@dataclass(frozen=True)
class _Walk:
    """How far a walk may still go: in depth, and in steps that all walks in a graph share."""

    steps: Iterator[int]
    depth: int = _MAX_DEPTH

    def deeper(self) -> _Walk | None:
        """Return the walk one node further on, or None at its end."""
        if self.depth == 0 or next(self.steps, None) is None:
            return None
        return _Walk(self.steps, self.depth - 1)


class Graph:
    """Nodes by id."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._nodes: dict[str, Node] = {}
        self._beyond: dict[str, Node | None] = {}
        self._start = _Walk(iter(range(_MAX_STEPS)))
        for node_id, value in list(data.items())[:_MAX_NODES]:
            kind, inputs = as_text(as_dict(value).get("class_type")), as_dict(value).get("inputs")
            if kind and isinstance(inputs, dict):
                self._nodes[node_id] = Node(id=node_id, kind=kind[:_MAX_KIND], inputs=inputs)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, in the order of the file."""
        return tuple(self._nodes.values())

    def behind(self, node: Node, name: str) -> Node | None:
        """Return the node that an input is linked to, or None for a value or nothing."""
        return self._linked(node.inputs.get(name))

    def walk_back(self, start: Node, names: Sequence[str]) -> Iterator[Node]:
        """Go from a node along the first of these inputs that is a link, and so on."""
        seen: set[str] = set()
        node: Node | None = start
        while node is not None and node.id not in seen:
            seen.add(node.id)
            yield node
            links = (self.behind(node, name) for name in names)
            node = next((link for link in links if link is not None), None)

    def everything_behind(self, *starts: Node) -> set[Node]:
        """Return all nodes that these depend on, themselves among them."""
        seen: set[Node] = set()
        waiting = list(starts)
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                waiting += self._links(node)
        return seen

    def number(self, node: Node, *names: str) -> object:
        """Return the value of the first of these inputs that is a number, behind links too."""
        for name in names:
            value = self._value(node.inputs.get(name), (*names, *_NUMBERS), self._start)
            if isinstance(value, int | float) and not isinstance(value, bool):
                return value
            if isinstance(value, str) and value.strip():
                return value
        return None

    def text(self, node: Node, name: str) -> str:
        """Return the text of an input, behind links too."""
        return as_text(self._value(node.inputs.get(name), (name, *_WORDS), self._start))

    def words(self, node: Node | None, role: Role) -> str:
        """Return the words behind a conditioning: of its encoder, or joined of several.

        Args:
            node: What the conditioning comes out of.
            role: Many nodes hand on both; the role says which of them is followed.
        """
        return ", ".join(dict.fromkeys(self._words(node, role, self._start))) if node else ""

    def _words(self, node: Node, role: Role, before: _Walk) -> Iterator[str]:
        walk = before.deeper()
        if walk is None or "ZeroOut" in node.kind:
            return
        link = self.behind(node, role)
        if link is not None:
            yield from self._words(link, role, walk)
            return
        spoken = self._spoken(node, role, walk)
        if spoken:
            yield from spoken
            return
        named = [self.behind(node, name) for name in _CONDITIONING]
        links = [link for link in named if link is not None]
        if not links and len(self._links(node)) == 1:
            links = self._links(node)  # Whatever this node does, it does it to one thing.
        for link in links:
            yield from self._words(link, role, walk)

    def _spoken(self, node: Node, role: Role, walk: _Walk) -> list[str]:
        """Return the texts of a node that has some, for this role."""
        names = (role, f"text_{role}", f"{role}_prompt", *_WORDS)
        joined = self._joined(node, names, walk)
        if joined:
            return [joined]
        texts = [
            as_text(self._value(node.inputs[name], names, walk))
            for name in names
            if name in node.inputs
        ]
        spoken = [text for text in texts if text.strip()]
        has_one = role in node.inputs or _FILLED_IN in node.inputs
        return spoken[:1] if has_one else spoken

    def _value(self, value: object, names: Sequence[str], before: _Walk) -> object:
        """Return a value that may be behind links; texts that nodes join come out joined."""
        node = self._linked(value)
        if node is None:
            return value[:_MAX_TEXT] if isinstance(value, str) else value
        walk = before.deeper()
        if walk is None:
            return None
        joined = self._joined(node, names, walk)
        if joined:
            return joined
        for name in names:
            found = self._value(node.inputs.get(name), names, walk)
            if isinstance(found, int | float) or (isinstance(found, str) and found):
                return found
        return None

    def _joined(self, node: Node, names: Sequence[str], walk: _Walk) -> str:
        """Return the texts that a node joins, as it joins them."""
        values = [node.inputs[name] for name in _PARTS if name in node.inputs]
        parts = [as_text(self._value(value, names, walk)) for value in values]
        between = [as_text(node.inputs[name]) for name in _BETWEEN if name in node.inputs]
        return "".join(between[:1])[:20].join(filter(None, parts))[:_MAX_TEXT]

    def _links(self, node: Node) -> list[Node]:
        links = (self._linked(value) for value in node.inputs.values())
        return [link for link in links if link is not None]

    def _linked(self, value: object) -> Node | None:
        """Return the node behind a link; nodes that only lead lines around are passed through."""
        node = self._node(value)
        for _ in range(_MAX_DEPTH):
            if node is None or not node.is_reroute:
                return node
            further = self._beyond_reroute(node)
            if further is None:
                return node
            node = further
        return None

    def _beyond_reroute(self, node: Node) -> Node | None:
        """Return the first node behind; it is looked for once, among however many inputs."""
        if node.id not in self._beyond:
            behind = (self._node(inner) for inner in node.inputs.values())
            self._beyond[node.id] = next((inner for inner in behind if inner is not None), None)
        return self._beyond[node.id]

    def _node(self, value: object) -> Node | None:
        if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str | int):
            return self._nodes.get(str(value[0]))
        return None
