"""Settings as ComfyUI writes them: `prompt`, the graph of nodes that made the picture.

There is no list of settings, only nodes and links. From the node that saves the picture the links
lead back to the nearest sampler; its inputs, each a value or the nearest node behind a link that
has one, are the settings. What is computed on the way (texts that are joined, numbers that are
added) is not computed again: then the words are those that were found.

Source: https://github.com/comfyanonymous/ComfyUI, nodes.py and comfy_extras/nodes_custom_sampler.py
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from seedgrid.core.errors import Notice, PictureError
from seedgrid.formats.importers.found import Found, as_dict, as_text, read_object

_TOOL: Final = "ComfyUI"
_MAX_NODES: Final = 1000
"""In a graph; the largest that are shared have some hundreds."""
_MAX_KIND: Final = 200
_FILLED_IN: Final = "populated_text"
_WORDS: Final = (
    *("text", "text_g", "text_l", "clip_g", "t5xxl", "clip_l"),
    *("prompt", "string", "value"),
)
_PART: Final = re.compile(r"(?:string|text)_?[a-d0-4]")
"""Inputs of nodes that join texts."""
_NUMBERS: Final = ("value", "int", "float", "number", "Number")
_NO_WORDS: Final = frozenset({"clip", "model", "vae", "image", "latent_image", "control_net"})
_WEIGHT: Final = re.compile(r"(?<!\\)\([^()]+(?<!\\)\)|embedding:")
_EXTRAS: Final = {
    "ControlNet": "ControlNet",
    "IPAdapter": "IP-Adapter",
    "Upscale": "upscaling",
    "CLIPSetLastLayer": "CLIP skip",
    "FreeU": "FreeU",
    "ConditioningSetArea": "areas",
    "ConditioningSetMask": "masks",
    "ModelSampling": "model sampling",
}

Node = dict[str, Any]
"""As the file has it: `class_type`, and `inputs`, each a value or `[id of a node, output]`."""


def read(texts: Mapping[str, str]) -> Found | None:
    """Read the settings, or return None when ComfyUI did not write this picture.

    Raises:
        PictureError: `picture_foreign`: it holds no graph, or none with a sampler.
    """
    if not texts.get("prompt", "").lstrip().startswith(("{", "[")):
        if "workflow" in texts:
            reason = "the picture holds ComfyUI's workflow without the values of its run"
            raise PictureError("picture_foreign", reason=reason)
        return None
    nodes = {
        name: value
        for name, value in list(read_object(texts["prompt"]).items())[:_MAX_NODES]
        if as_text(as_dict(value).get("class_type")) and isinstance(value.get("inputs"), dict)
    }
    return _Reader(nodes).found()


class _Reader:
    """Reads one graph."""

    def __init__(self, nodes: dict[str, Node]) -> None:
        self._nodes = nodes

    def found(self) -> Found:
        ends = self._ends() or list(self._nodes.values())
        sampler = self._nearest(ends, _is_sampler)
        if sampler is None:
            raise PictureError("picture_foreign", reason="no sampler is behind the saved picture")
        # Several samplers in a row are passes over one picture: the first decides the composition.
        before = self._all_behind(self._behind(sampler, "latent_image"))
        earlier = [node for node in before if _is_sampler(node) and node is not sampler]
        kinds = " ".join(_kind(node) for node in self._all_behind(ends))
        extras = tuple(name for part, name in _EXTRAS.items() if part in kinds)
        passes = (Notice("import_second_pass"),) if earlier else ()
        return self._settings(earlier[-1] if earlier else sampler, extras, passes)

    def _ends(self) -> list[Node]:
        """Return the nodes that save a picture, else those that only show one."""
        nodes = [(_kind(node).casefold().replace(" ", ""), node) for node in self._nodes.values()]
        saving = [node for kind, node in nodes if "save" in kind and "image" in kind]
        return saving or [node for kind, node in nodes if kind.startswith("previewimage")]

    def _settings(
        self, sampler: Node, extras: tuple[str, ...], passes: tuple[Notice, ...]
    ) -> Found:
        guider = next(iter(self._behind(sampler, "guider")), sampler)
        positive = self._words(guider, "positive") or self._words(guider, "conditioning")
        negative = self._words(guider, "negative")
        latent = self._nearest(self._behind(sampler, "latent_image"), _decides_size)
        size = None if latent is None or "Encode" in _kind(latent) else latent
        sigmas = self._nearest(self._behind(sampler, "sigmas"), _has_steps) or sampler
        models = self._chain(guider, "model")
        conditioned = self._all_behind(self._behind(guider, "positive", "conditioning"))
        flux = next((node for node in conditioned if "Flux" in _kind(node)), None)
        return Found(
            tool=_TOOL,
            prompt=positive,
            negative_prompt=negative,
            seed=self._value(sampler, "noise", "noise_seed", "seed"),
            width=self._value(size, "", "width", "empty_latent_width"),
            height=self._value(size, "", "height", "empty_latent_height"),
            steps=self._value(sigmas, "", "steps"),
            guidance=self._value(flux, "", "guidance") or self._value(guider, "", "cfg"),
            sampler=self._text(sampler, "sampler", "sampler_name").removeprefix("Sampler"),
            schedule=self._schedule(sigmas),
            model=next(filter(None, map(_model_of, models)), ""),
            is_cpu_noise=True,
            extras=extras,
            loras=tuple(name for node in models for name in _loras_of(node) if name != "None"),
            reasons=(*passes, *self._reasons(sampler, size, (positive, negative))),
        )

    def _reasons(
        self, sampler: Node, size: Node | None, words: tuple[str, str]
    ) -> Iterator[Notice]:
        if not words[0].strip():
            yield Notice("import_words")
        if size is None and "latent_image" in sampler["inputs"]:
            yield Notice("import_first_picture")
        count = self._value(size, "", "batch_size")
        if count not in (None, 1):
            yield Notice("import_batch", value=count)
        if _WEIGHT.search(" ".join(words)):
            yield Notice("import_weights", tool=_TOOL)

    def _schedule(self, sigmas: Node) -> str:
        """Name the noise levels; some nodes make just one kind, as `KarrasScheduler` does."""
        kind = _kind(sigmas)
        alone = kind.removesuffix("Scheduler") if kind.endswith("Scheduler") else ""
        return as_text(self._value(sigmas, "", "scheduler")) or alone

    def _behind(self, node: Node, *names: str) -> list[Node]:
        """Return the nodes that some inputs of a node are linked to; of all if none is named."""
        inputs = node["inputs"]
        return self._linked(*(map(inputs.get, names) if names else inputs.values()))

    def _linked(self, *values: object) -> list[Node]:
        """Return the nodes that values are links to; other values are passed over."""
        ids = [str(value[0]) for value in values if isinstance(value, list) and len(value) == 2]
        return [self._nodes[name] for name in ids if name in self._nodes]

    def _all_behind(self, starts: list[Node]) -> list[Node]:
        """Return these nodes and all that they depend on, the nearest first, each once."""
        seen = {id(node): node for node in starts}
        waiting = list(starts)
        for node in waiting:
            for each in self._behind(node):
                if id(each) not in seen:
                    seen[id(each)] = each
                    waiting.append(each)
        return list(seen.values())

    def _nearest(self, starts: list[Node], is_it: Callable[[Node], bool]) -> Node | None:
        return next(filter(is_it, self._all_behind(starts)), None)

    def _chain(self, node: Node, name: str) -> list[Node]:
        """Return the nodes behind an input, and behind the input of that name of each of these."""
        found: dict[int, Node] = {}
        while (behind := self._behind(node, name)) and id(behind[0]) not in found:
            node = behind[0]
            found[id(node)] = node
        return list(found.values())

    def _words(self, node: Node, role: str) -> str:
        """Return the words of a role: the node's own text, or those of the encoders behind it."""
        found: dict[str, None] = {}
        seen: set[int] = set()
        waiting: list[object] = [node["inputs"].get(role)]
        while waiting:
            value = waiting.pop()
            if isinstance(value, str) and value.strip():
                found[value.strip()] = None
            for each in self._linked(value):
                if id(each) not in seen and "ZeroOut" not in _kind(each):
                    seen.add(id(each))
                    waiting += reversed(_with_words(each["inputs"], role))
        return ", ".join(found)

    def _value(self, node: Node | None, link: str, *names: str) -> object:
        """Return the first of these inputs, of the nearest node that has one.

        Args:
            node: Where to look first.
            link: Of the node's inputs the one behind which it may stand.
            names: Of the inputs.
        """
        if node is None:
            return None
        starts = self._behind(node, link) if link else []
        nearest = self._nearest(starts, lambda each: any(name in each["inputs"] for name in names))
        inputs = (nearest or node)["inputs"]
        value = next((inputs[name] for name in names if name in inputs), None)
        if not isinstance(value, list):
            return None if isinstance(value, bool) else value
        known = (*names, *_NUMBERS, *_WORDS)
        behind = self._all_behind(self._linked(value))
        found = (each["inputs"].get(name) for each in behind for name in known)
        return next((one for one in found if isinstance(one, int | float | str)), None)

    def _text(self, node: Node, link: str, name: str) -> str:
        """Return a text, or where none is there the kind of the node behind the link."""
        kinds = [_kind(behind) for behind in self._behind(node, link)]
        return as_text(self._value(node, link, name)) or "".join(kinds[:1])


def _kind(node: Node) -> str:
    return str(node["class_type"])[:_MAX_KIND]


def _has_steps(node: Node) -> bool:
    return "steps" in node["inputs"]


def _is_sampler(node: Node) -> bool:
    has_seed = any(name in node["inputs"] for name in ("seed", "noise_seed", "noise"))
    return "Sampler" in _kind(node) and has_seed


def _with_words(inputs: dict[str, Any], role: str) -> list[object]:
    """Return the inputs of a node in which words are, or lead to them, for a role.

    Many nodes hand on both roles: only one of them is followed.
    """
    names = [name for name in (_FILLED_IN, role) if name in inputs][:1]
    names = names or [name for name in inputs if name in _WORDS or _PART.fullmatch(name)]
    names = names or [name for name in inputs if name not in _NO_WORDS]
    return [inputs[name] for name in names]


def _decides_size(node: Node) -> bool:
    """Tell whether a node makes an empty picture, or one of another picture."""
    kind, inputs = _kind(node), node["inputs"]
    has_width = "width" in inputs or "empty_latent_width" in inputs
    return (has_width and "Upscale" not in kind) or "VAEEncode" in kind


def _model_of(node: Node) -> str:
    names = ("ckpt_name", "unet_name", "model_path", "model_name")
    return next(filter(None, (as_text(node["inputs"].get(name)) for name in names)), "")


def _loras_of(node: Node) -> Iterator[str]:
    """Give the LoRAs of a loader; some hold many, each with a switch of its own."""
    for name, value in node["inputs"].items():
        if isinstance(value, dict) and value.get("on") is True:
            yield as_text(value.get("lora"))
        elif re.fullmatch(r"lora(?:_name)?(?:_\d+)?", name) and as_text(value):
            yield as_text(value)
