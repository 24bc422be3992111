"""Settings as ComfyUI writes them: `prompt`, the graph of nodes that made the picture.

The settings are the inputs of the sampler upstream of the saved picture. An input is a value or
a link, which leads upstream to the first value. Computed values (joined texts, sums) are not read.

Source: https://github.com/comfyanonymous/ComfyUI, nodes.py and comfy_extras/nodes_custom_sampler.py
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from seedgrid.core.errors import Notice, PictureError
from seedgrid.formats.importers.foreign import ForeignSettings, as_dict, as_text, read_object

_MAX_NODES: Final = 1000  # nodes of a graph; published ones have some hundreds
_MAX_KIND: Final = 200
_NEAR: Final = 16  # how many nodes upstream of an input are searched for a value
_WORDS: Final = (
    *("populated_text", "text", "text_g", "text_l", "clip_l", "t5xxl"),
    *("prompt", "string", "value"),
)
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

Node = dict[str, Any]  # `class_type`, and `inputs`: each a value or `[id of a node, output]`


def read(texts: Mapping[str, str]) -> ForeignSettings | None:
    """Read settings, None if not ComfyUI's; raise `picture_foreign` without values or sampler."""
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
    return _Reader(nodes).settings()


class _Reader:
    """Reads one graph."""

    def __init__(self, nodes: dict[str, Node]) -> None:
        self._nodes = nodes

    def settings(self) -> ForeignSettings:
        saved = self._upstream(*self._output_nodes())
        samplers = [node for node in saved if _is_sampler(node)]
        if not samplers:
            raise PictureError("picture_foreign", reason="no sampler is behind the saved picture")
        # Several samplers in a row are passes over one picture: the first decides the composition.
        passes = [node for node in self._input(samplers[0], "latent_image") if _is_sampler(node)]
        sampler = (passes or samplers[:1])[-1]
        guider = (self._input(sampler, "guider") or [sampler])[0]
        sigmas = self._input(sampler, "sigmas") or [sampler]
        models = self._input(guider, "model")
        latent = next(filter(_decides_size, self._input(sampler, "latent_image")), None)
        size = [latent] if latent and "Encode" not in _kind(latent) else []
        words = self._words(guider, "positive") or self._words(guider, "conditioning")
        negative = self._words(guider, "negative")
        guided = self._input(guider, "conditioning") or self._input(guider, "positive")
        flux = [node for node in guided if "Flux" in _kind(node)]
        kinds = " ".join(map(_kind, saved))
        return ForeignSettings(
            tool="ComfyUI",
            prompt=words,
            negative_prompt=negative,
            seed=self._value([sampler, *self._input(sampler, "noise")[:1]], "noise_seed", "seed"),
            width=self._value(size, "width", "empty_latent_width"),
            height=self._value(size, "height", "empty_latent_height"),
            steps=self._value(sigmas, "steps"),
            guidance=self._value(flux, "guidance") or self._value([guider], "cfg"),
            sampler=self._sampler(sampler),
            schedule=as_text(self._value(sigmas, "scheduler")) or _schedule_of(sigmas),
            model=next(filter(None, map(_model_of, models)), ""),
            is_cpu_noise=True,
            extras=tuple(name for part, name in _EXTRAS.items() if part in kinds),
            loras=tuple(name for node in models for name in _loras_of(node) if name != "None"),
            has_other_weights=_WEIGHT.search(f"{words} {negative}") is not None,
            has_second_pass=sampler is not samplers[0],
            begins_from_picture=not size and "latent_image" in sampler["inputs"],
            reasons=tuple(self._reasons(size, words)),
        )

    def _output_nodes(self) -> list[Node]:
        """Return the nodes that save a picture, else those that only show one, else all."""
        nodes = [(_kind(node).casefold().replace(" ", ""), node) for node in self._nodes.values()]
        saving = [node for kind, node in nodes if "save" in kind and "image" in kind]
        showing = [node for kind, node in nodes if kind.startswith("previewimage")]
        return saving or showing or list(self._nodes.values())

    def _sampler(self, sampler: Node) -> str:
        """Return the sampler's name, or the kind of the node that is linked as the sampler."""
        linked = self._input(sampler, "sampler")[:1]
        name = as_text(self._value([sampler, *linked], "sampler_name"))
        return (name or "".join(map(_kind, linked))).removeprefix("Sampler")

    def _reasons(self, size: Sequence[Node], words: str) -> Iterator[Notice]:
        if not words.strip():
            yield Notice("import_words")
        count = self._value(size, "batch_size")
        if count not in (None, 1):
            yield Notice("import_batch", value=count)

    def _linked(self, *values: object) -> list[Node]:
        """Return the nodes that values are links to; other values are passed over."""
        ids = [str(value[0]) for value in values if isinstance(value, list) and len(value) == 2]
        return [self._nodes[name] for name in ids if name in self._nodes]

    def _upstream(self, *starts: Node, most: int = _MAX_NODES) -> list[Node]:
        """Return these nodes and what they depend on, the nearest first, each once."""
        seen = {id(node): node for node in starts}
        waiting = list(seen.values())
        for node in waiting:
            if len(waiting) >= most:
                break
            new = {id(each): each for each in self._linked(*node["inputs"].values())}
            waiting += [each for name, each in new.items() if name not in seen]
            seen |= new
        return waiting

    def _input(self, node: Node, name: str) -> list[Node]:
        """Return the nodes upstream of one input of a node, the nearest first."""
        return self._upstream(*self._linked(node["inputs"].get(name)))

    def _words(self, node: Node, role: str) -> str:
        """Return the prompt of an input such as `positive`: its text, or the nearest upstream."""
        value, passed = node["inputs"].get(role), set[int]()
        while linked := self._linked(value):  # Many nodes pass both prompts through.
            if role not in linked[0]["inputs"] or id(linked[0]) in passed:
                break
            passed.add(id(linked[0]))
            value = linked[0]["inputs"][role]
        for each in self._upstream(*self._linked(value), most=_NEAR)[:_NEAR]:
            if "ZeroOut" in _kind(each):
                return ""
            texts = (as_text(self._value([each], name)).strip() for name in _WORDS)
            if words := list(dict.fromkeys(filter(None, texts))):
                return ", ".join(words)
        return as_text(value).strip()

    def _value(self, nodes: Sequence[Node], *names: str) -> object:
        """Return the first of these inputs in the nodes; of a link, the first value upstream."""
        own = (each["inputs"][name] for each in nodes for name in names if name in each["inputs"])
        value = next(own, None)
        if not isinstance(value, list):
            return None if isinstance(value, bool) else value
        upstream = [each["inputs"] for each in self._upstream(*self._linked(value), most=_NEAR)]
        named = (inputs.get(name) for inputs in upstream for name in (*names, "value", *_WORDS))
        return next((one for one in named if isinstance(one, int | float | str)), None)


def _kind(node: Node) -> str:
    return str(node["class_type"])[:_MAX_KIND]


def _schedule_of(sigmas: Sequence[Node]) -> str:
    """Return the noise schedule in the name of a node's kind, such as `KarrasScheduler`."""
    kinds = (kind for kind in map(_kind, sigmas) if kind.endswith("Scheduler"))
    return next(kinds, "").removesuffix("Scheduler")


def _is_sampler(node: Node) -> bool:
    has_seed = any(name in node["inputs"] for name in ("seed", "noise_seed", "noise"))
    return "Sampler" in _kind(node) and has_seed


def _decides_size(node: Node) -> bool:
    """Tell whether a node makes an empty latent, or encodes a picture."""
    kind, inputs = _kind(node), node["inputs"]
    has_width = "width" in inputs or "empty_latent_width" in inputs
    return (has_width and "Upscale" not in kind) or "VAEEncode" in kind


def _model_of(node: Node) -> str:
    names = ("ckpt_name", "unet_name", "model_path", "model_name")
    return next(filter(None, (as_text(node["inputs"].get(name)) for name in names)), "")


def _loras_of(node: Node) -> Iterator[str]:
    """Yield the names of a loader's LoRAs; some loaders have many, each with a switch."""
    for name, value in node["inputs"].items():
        if isinstance(value, dict) and value.get("on") is True:
            yield as_text(value.get("lora"))
        elif re.fullmatch(r"lora(?:_name)?(?:_\d+)?", name) and as_text(value):
            yield as_text(value)
