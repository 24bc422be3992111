"""Settings as ComfyUI writes them: `prompt`, the graph of nodes that made the picture.

There is no list of settings, only nodes and links: from the node that saves the picture the links
lead back to its sampler, and from there to words, noise, size and model (comfyui_graph.py).

Source: https://github.com/comfyanonymous/ComfyUI, nodes.py and comfy_extras/nodes_custom_sampler.py
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from seedgrid.errors import PictureError
from seedgrid.importing.comfyui_graph import Graph, Node
from seedgrid.importing.imported import Found
from seedgrid.importing.json_texts import read_object
from seedgrid.notices import Notice

_TOOL = "ComfyUI"
_IMAGE_INPUTS = ("images", "image", "samples", "latent", "latents", "latent_image", "pixels")
_WIDTHS = ("width", "empty_latent_width")
_HEIGHTS = ("height", "empty_latent_height")
_EXTRAS = {
    "ControlNet": "ControlNet",
    "IPAdapter": "IP-Adapter",
    "Upscale": "upscaling",
    "CLIPSetLastLayer": "CLIP skip",
    "FreeU": "FreeU",
    "PatchModelAddDownscale": "Deep Shrink",
    "FaceDetailer": "FaceDetailer",
    "ConditioningSetArea": "areas",
    "ConditioningSetMask": "masks",
    "ModelSampling": "model sampling",
    "RescaleCFG": "guidance rescale",
    "unCLIP": "unCLIP",
    "StyleModel": "style model",
}


def read(texts: Mapping[str, str]) -> Found | None:
    """Read the settings, or return None when ComfyUI did not write this picture.

    Raises:
        PictureError: `picture_foreign` when the graph is damaged or has no sampler.
    """
    if not texts.get("prompt", "").lstrip().startswith(("{", "[")):
        if "workflow" in texts:
            reason = "the picture holds ComfyUI's workflow without the values of its run"
            raise PictureError("picture_foreign", reason=reason)
        return None
    graph = Graph(read_object(texts["prompt"]))
    samplers = _samplers(graph)
    if not samplers:
        raise PictureError("picture_foreign", reason="no sampler is in the graph")
    # Several samplers in a row are passes over one picture: the first decides the composition.
    return _found(graph, samplers[-1], num_passes=len(samplers))


def _samplers(graph: Graph) -> list[Node]:
    """Return the samplers of the saved picture, the last pass first."""
    for end in _ends(graph) or graph.nodes:
        found = _samplers_behind(graph, end)
        if found:
            return found
    return [node for node in graph.nodes if _is_sampler(node)][:1]


def _ends(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.kind.startswith(("SaveImage", "PreviewImage"))]


def _samplers_behind(graph: Graph, end: Node) -> list[Node]:
    return [node for node in graph.walk_back(end, _IMAGE_INPUTS) if _is_sampler(node)]


def _is_sampler(node: Node) -> bool:
    has_seed = any(name in node.inputs for name in ("seed", "noise_seed", "noise"))
    return "Sampler" in node.kind and has_seed and "latent_image" in node.inputs


def _found(graph: Graph, sampler: Node, *, num_passes: int) -> Found:
    noise, guider, kind, sigmas = (
        graph.behind(sampler, name) or sampler for name in ("noise", "guider", "sampler", "sigmas")
    )
    positive = graph.behind(guider, "positive") or graph.behind(guider, "conditioning")
    negative = graph.behind(guider, "negative")
    latent = _first_latent(graph, sampler)
    used = {node for end in _ends(graph) or [sampler] for node in graph.everything_behind(end)}
    model, loras = _model(graph, guider)
    words = (graph.words(positive, "positive"), graph.words(negative, "negative"))
    return Found(
        tool=_TOOL,
        prompt=words[0],
        negative_prompt=words[1],
        seed=graph.number(noise, "noise_seed", "seed"),
        width=graph.number(latent, *_WIDTHS) if latent else None,
        height=graph.number(latent, *_HEIGHTS) if latent else None,
        steps=graph.number(sigmas, "steps"),
        guidance=_distilled_guidance(graph, positive) or graph.number(guider, "cfg", "cfg_conds"),
        sampler=graph.text(kind, "sampler_name"),
        schedule=graph.text(sigmas, "scheduler"),
        model=model,
        is_cpu_noise=True,
        extras=tuple(
            name for part, name in _EXTRAS.items() if any(part in node.kind for node in used)
        ),
        loras=loras,
        reasons=_reasons(graph, latent, words, num_passes),
    )


def _first_latent(graph: Graph, sampler: Node) -> Node | None:
    """Return the node that says the size of the empty picture the sampler starts from."""
    start = graph.behind(sampler, "latent_image")
    for node in graph.walk_back(start, _IMAGE_INPUTS) if start else ():
        if "Empty" in node.kind and "Latent" in node.kind:
            return node
        has_size = any(name in node.inputs for name in _WIDTHS)
        if has_size and "Upscale" not in node.kind:
            return node
    return None


def _model(graph: Graph, guider: Node) -> tuple[str, tuple[str, ...]]:
    """Return the model's name and the names of the LoRAs between it and the sampler."""
    loras = []
    model = ""
    start = graph.behind(guider, "model")
    for node in graph.walk_back(start, ("model", "MODEL", "model1")) if start else ():
        if "lora_name" in node.inputs:
            loras.append(graph.text(node, "lora_name"))
        for name in ("ckpt_name", "unet_name", "model_path", "model_name"):
            model = model or graph.text(node, name)
    return model, tuple(filter(None, loras))


def _distilled_guidance(graph: Graph, positive: Node | None) -> object:
    """Return the guidance that Flux models get with the words; their `cfg` is always 1."""
    for node in graph.everything_behind(positive) if positive else ():
        if "Flux" in node.kind and "guidance" in node.inputs:
            return graph.number(node, "guidance")
    return None


def _reasons(
    graph: Graph, latent: Node | None, words: tuple[str, str], num_passes: int
) -> tuple[Notice, ...]:
    reasons = []
    if not words[0].strip():
        reasons.append(Notice("import_words"))
    if num_passes > 1:
        reasons.append(Notice("import_second_pass"))
    if latent is None:
        reasons.append(Notice("import_first_picture"))
    elif graph.number(latent, "batch_size") not in (None, 1):
        reasons.append(Notice("import_batch", value=graph.number(latent, "batch_size")))
    if re.search(r"\([^()]+:\s*\d*\.?\d+\)|embedding:", " ".join(words)):
        reasons.append(Notice("import_weights", tool=_TOOL))
    return tuple(reasons)
