"""The graph of a ComfyUI run: nodes by id, links followed back, values found behind links.

A graph may be damaged, endless or hostile: every walk visits a node once and ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from seedgrid.importing.json_texts import as_dict, as_text

_MAX_NODES: Final = 5000
_WORDS: Final = (
    "text",
    "text_g",
    "clip_g",
    "t5xxl",
    "clip_l",
    "text_l",
    "prompt",
    "string",
    "value",
    "wildcard_text",
    "populated_text",
)
_PARTS: Final = ("string_a", "string_b", "text_a", "text_b", "text1", "text2")
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
_NUMBERS: Final = ("value", "int", "float", "number", "seed", "noise_seed", "Number", "cfg")

Role = Literal["positive", "negative"]


@dataclass(frozen=True, kw_only=True)
class Node:
    """One node: its id, its kind (`class_type`) and its inputs, values or links."""

    id: str
    kind: str
    inputs: dict[str, Any] = field(repr=False)

    def __hash__(self) -> int:
        return hash(self.id)


class Graph:
    """Nodes by id.

    Args:
        data: The JSON of the chunk `prompt`; what is no node is left out.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self._nodes: dict[str, Node] = {}
        for node_id, value in list(data.items())[:_MAX_NODES]:
            kind, inputs = as_text(as_dict(value).get("class_type")), as_dict(value).get("inputs")
            if kind and isinstance(inputs, dict):
                self._nodes[node_id] = Node(id=node_id, kind=kind, inputs=inputs)

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

    def everything_behind(self, start: Node) -> set[Node]:
        """Return all nodes that a node depends on, itself among them."""
        seen: set[Node] = set()
        waiting = [start]
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                links = (self._linked(value) for value in node.inputs.values())
                waiting += [link for link in links if link is not None]
        return seen

    def number(self, node: Node, *names: str) -> object:
        """Return the value of the first of these inputs that is there, behind links too."""
        for name in names:
            value = self._value(node.inputs.get(name), (*names, *_NUMBERS))
            if isinstance(value, int | float) and not isinstance(value, bool):
                return value
        return None

    def text(self, node: Node, name: str) -> str:
        """Return the text of an input, behind links too."""
        return as_text(self._value(node.inputs.get(name), (name, *_WORDS)))

    def words(self, node: Node | None, role: Role) -> str:
        """Return the words behind a conditioning: of its encoder, or joined of several.

        Args:
            node: What the conditioning comes out of.
            role: Many nodes hand on both; the role says which of them is followed.
        """
        return ", ".join(dict.fromkeys(self._words(node, role, set()))) if node else ""

    def _words(self, node: Node, role: Role, seen: set[str]) -> Iterator[str]:
        if node.id in seen or "ZeroOut" in node.kind:
            return
        seen.add(node.id)
        link = self.behind(node, role)
        if link is not None:
            yield from self._words(link, role, seen)
            return
        names = _names_of(role)
        values = [self._value(node.inputs.get(name), names) for name in names]
        spoken = [as_text(value) for value in values if as_text(value).strip()]
        if spoken:
            yield from spoken[:1] if role in node.inputs else spoken
            return
        for name in (*_CONDITIONING, *_PARTS):
            link = self.behind(node, name)
            if link is not None:
                yield from self._words(link, role, seen)

    def _value(self, value: object, names: Sequence[str]) -> object:
        """Follow links until a value is there."""
        seen: set[str] = set()
        while True:
            node = self._linked(value)
            if node is None:
                return value
            if node.id in seen:
                return None
            seen.add(node.id)
            parts = [self._part(node.inputs.get(name), names, seen) for name in _PARTS]
            joined = [part for part in parts if part]
            if joined:
                return as_text(node.inputs.get("delimiter")).join(joined)
            value = next((node.inputs[name] for name in names if name in node.inputs), None)

    def _part(self, value: object, names: Sequence[str], seen: set[str]) -> str:
        node = self._linked(value)
        if node is None:
            return as_text(value)
        if node.id in seen:
            return ""
        seen.add(node.id)
        inner = next((node.inputs[name] for name in names if name in node.inputs), None)
        return as_text(inner)

    def _linked(self, value: object) -> Node | None:
        is_link = isinstance(value, list) and len(value) == 2
        return self._nodes.get(str(value[0])) if is_link and isinstance(value, list) else None


def _names_of(role: Role) -> tuple[str, ...]:
    return (role, f"text_{role}", f"{role}_prompt", *_WORDS)
