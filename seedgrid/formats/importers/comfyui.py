"""Settings as ComfyUI writes them: `prompt`, the graph of nodes that made the picture.

There is no list of settings, only nodes and links. From the node that saves the picture the links
lead back to the nearest sampler; its inputs, each a value or the nearest node behind a link that
has one, are the settings. What is computed on the way (texts that are joined, numbers that are
added) is not computed again: then the words are those that were found.

Source: https://github.com/comfyanonymous/ComfyUI, nodes.py and comfy_extras/nodes_custom_sampler.py
"""

import re
from collections.abc import Iterator, Mapping, Sequence
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
        saved = self._behind(*self._ends())
        samplers = [node for node in saved if _is_sampler(node)]
        if not samplers:
            raise PictureError("picture_foreign", reason="no sampler is behind the saved picture")
        # Several samplers in a row are passes over one picture: the first decides the composition.
        latents = self._behind(*self._linked(samplers[0]["inputs"].get("latent_image")))
        earlier = [node for node in latents if _is_sampler(node) and node is not samplers[0]]
        kinds = " ".join(map(_kind, saved))
        extras = tuple(name for part, name in _EXTRAS.items() if part in kinds)
        passes = (Notice("import_second_pass"),) if earlier else ()
        return self._settings((earlier or samplers[:1])[-1], extras, passes)

    def _ends(self) -> list[Node]:
        """Return the nodes that save a picture, else those that only show one."""
        nodes = [(_kind(node).casefold().replace(" ", ""), node) for node in self._nodes.values()]
        saving = [node for kind, node in nodes if "save" in kind and "image" in kind]
        showing = [node for kind, node in nodes if kind.startswith("previewimage")]
        return saving or showing or list(self._nodes.values())

    def _settings(
        self, sampler: Node, extras: tuple[str, ...], passes: tuple[Notice, ...]
    ) -> Found:
        inputs = sampler["inputs"]
        guider = next(iter(self._linked(inputs.get("guider"))), sampler)
        positive = self._words(guider, "positive") or self._words(guider, "conditioning")
        negative = self._words(guider, "negative")
        latents = self._behind(*self._linked(inputs.get("latent_image")))
        latent = next(filter(_decides_size, latents), None)
        size = [latent] if latent and "Encode" not in _kind(latent) else []
        sigmas = self._behind(*self._linked(inputs.get("sigmas"))) or [sampler]
        models = self._behind(*self._linked(guider["inputs"].get("model")))
        words = (guider["inputs"].get(name) for name in ("positive", "conditioning"))
        flux = [node for node in self._behind(*self._linked(*words)) if "Flux" in _kind(node)]
        return Found(
            tool=_TOOL,
            prompt=positive,
            negative_prompt=negative,
            seed=self._value([sampler, *self._linked(inputs.get("noise"))], "noise_seed", "seed"),
            width=self._value(size, "width", "empty_latent_width"),
            height=self._value(size, "height", "empty_latent_height"),
            steps=self._value(sigmas, "steps"),
            guidance=self._value(flux, "guidance") or self._value([guider], "cfg"),
            sampler=self._sampler(sampler),
            schedule=as_text(self._value(sigmas, "scheduler")) or _schedule_of(sigmas),
            model=next(filter(None, map(_model_of, models)), ""),
            is_cpu_noise=True,
            extras=extras,
            loras=tuple(name for node in models for name in _loras_of(node) if name != "None"),
            reasons=(*passes, *self._reasons(sampler, size, (positive, negative))),
        )

    def _sampler(self, sampler: Node) -> str:
        """Name the sampler; where it is a node of its own without a name, by its kind."""
        behind = self._linked(sampler["inputs"].get("sampler"))
        name = as_text(self._value([sampler, *behind], "sampler_name"))
        return (name or "".join(map(_kind, behind[:1]))).removeprefix("Sampler")

    def _reasons(
        self, sampler: Node, size: Sequence[Node], words: tuple[str, str]
    ) -> Iterator[Notice]:
        if not words[0].strip():
            yield Notice("import_words")
        if not size and "latent_image" in sampler["inputs"]:
            yield Notice("import_first_picture")
        count = self._value(size, "batch_size")
        if count not in (None, 1):
            yield Notice("import_batch", value=count)
        if _WEIGHT.search(" ".join(words)):
            yield Notice("import_weights", tool=_TOOL)

    def _linked(self, *values: object) -> list[Node]:
        """Return the nodes that values are links to; other values are passed over."""
        ids = [str(value[0]) for value in values if isinstance(value, list) and len(value) == 2]
        return [self._nodes[name] for name in ids if name in self._nodes]

    def _behind(self, *starts: Node) -> list[Node]:
        """Return these nodes and all that they depend on, the nearest first, each once."""
        seen = {id(node): node for node in starts}
        waiting = list(seen.values())
        for node in waiting:
            new = [n for n in self._linked(*node["inputs"].values()) if id(n) not in seen]
            seen |= {id(each): each for each in new}
            waiting += {id(each): each for each in new}.values()
        return waiting

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

    def _value(self, nodes: Sequence[Node], *names: str) -> object:
        """Return the first of these inputs, of the first node that has one; behind a link the next.

        Args:
            nodes: Where to look.
            names: Of the inputs.
        """
        own = (each["inputs"][name] for each in nodes for name in names if name in each["inputs"])
        value = next(own, None)
        if not isinstance(value, list):
            return None if isinstance(value, bool) else value
        known = (*names, *_NUMBERS, *_WORDS)
        behind = self._behind(*self._linked(value))
        found = (each["inputs"].get(name) for each in behind for name in known)
        return next((one for one in found if isinstance(one, int | float | str)), None)


def _kind(node: Node) -> str:
    return str(node["class_type"])[:_MAX_KIND]


def _schedule_of(sigmas: Sequence[Node]) -> str:
    """Name the noise levels; some nodes make just one kind, as `KarrasScheduler` does."""
    kinds = (kind for kind in map(_kind, sigmas) if kind.endswith("Scheduler"))
    return next(kinds, "").removesuffix("Scheduler")


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
