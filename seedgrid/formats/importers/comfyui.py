"""Settings as ComfyUI writes them: `prompt`, the graph of nodes that made the picture.

There is no list of settings, only nodes and links: from the node that saves the picture the links
lead back to its sampler, and from there to words, noise, size and model (comfyui_graph.py).

Source: https://github.com/comfyanonymous/ComfyUI, nodes.py and comfy_extras/nodes_custom_sampler.py
"""

import re
from collections.abc import Iterator, Mapping

from seedgrid.core.errors import Notice, PictureError
from seedgrid.formats.importers.comfyui_graph import Graph, Node, Role
from seedgrid.formats.importers.imported import Found
from seedgrid.formats.importers.json_texts import as_dict, as_text, read_object

_TOOL = "ComfyUI"
_IMAGE_INPUTS = ("images", "image", "samples", "latent", "latents", "latent_image", "pixels")
_WIDTHS = ("width", "empty_latent_width")
_HEIGHTS = ("height", "empty_latent_height")
_SIGMAS = ("sigmas", "sigmas_1", "sigmas1", "high_sigmas")
_MAX_ENDS = 50
_WEIGHT = re.compile(r"(?<!\\)\([^()]+(?<!\\)\)|embedding:")
_SAMPLER_NODES = {
    "SamplerEulerAncestral": "euler_ancestral",
    "SamplerDPMPP_2M_SDE": "dpmpp_2m_sde",
    "SamplerDPMPP_SDE": "dpmpp_sde",
    "SamplerLMS": "lms",
}
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
    """Read the settings, or return None when ComfyUI did not write this picture."""
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
    for end in _ends(graph) or graph.nodes[:_MAX_ENDS]:
        found = [node for node in graph.walk_back(end, _IMAGE_INPUTS) if _is_sampler(node)]
        if found:
            return found
    return [node for node in graph.nodes if _is_sampler(node)][:1]


def _ends(graph: Graph) -> list[Node]:
    """Return the nodes that save a picture, else those that only show one."""
    kinds = [(node.kind.casefold().replace(" ", ""), node) for node in graph.nodes]
    saving = [node for kind, node in kinds if "save" in kind and "image" in kind]
    showing = [node for kind, node in kinds if kind.startswith("previewimage")]
    return (saving or showing)[:_MAX_ENDS]


def _is_sampler(node: Node) -> bool:
    has_seed = any(name in node.inputs for name in ("seed", "noise_seed", "noise"))
    return "Sampler" in node.kind and has_seed


def _found(graph: Graph, sampler: Node, *, num_passes: int) -> Found:
    noise, guider, kind = (
        graph.behind(sampler, name) or sampler for name in ("noise", "guider", "sampler")
    )
    sigmas = _sigmas(graph, sampler)
    positive = _first_link(graph, guider, "positive", "conditioning", "cond1")
    negative = graph.behind(guider, "negative")
    latent = _first_latent(graph, sampler)
    used = graph.everything_behind(*(_ends(graph) or [sampler]))
    model, loras = _model(graph, guider)
    prompt = _words(graph, guider, positive, "positive")
    negative_prompt = _words(graph, guider, negative, "negative")
    return Found(
        tool=_TOOL,
        prompt=prompt,
        negative_prompt=negative_prompt,
        seed=graph.number(noise, "noise_seed", "seed"),
        width=graph.number(latent, *_WIDTHS) if latent else None,
        height=graph.number(latent, *_HEIGHTS) if latent else None,
        steps=graph.number(sigmas, "steps"),
        guidance=_distilled_guidance(graph, positive) or graph.number(guider, "cfg", "cfg_conds"),
        sampler=graph.text(kind, "sampler_name") or _SAMPLER_NODES.get(kind.kind, kind.kind),
        schedule=graph.text(sigmas, "scheduler") or _schedule_of(sigmas),
        model=model,
        is_cpu_noise=True,
        extras=tuple(
            name for part, name in _EXTRAS.items() if any(part in node.kind for node in used)
        ),
        loras=loras,
        reasons=_reasons(graph, sampler, latent, (prompt, negative_prompt), num_passes),
    )


def _first_link(graph: Graph, node: Node, *names: str) -> Node | None:
    links = (graph.behind(node, name) for name in names)
    return next((link for link in links if link is not None), None)


def _words(graph: Graph, guider: Node, behind: Node | None, role: Role) -> str:
    """Return the words of a role; some samplers hold them themselves."""
    return graph.words(behind, role) or as_text(guider.inputs.get(role))


def _sigmas(graph: Graph, sampler: Node) -> Node:
    """Return the node that says the steps; others may cut its noise levels in pieces."""
    start = graph.behind(sampler, "sigmas")
    chain = list(graph.walk_back(start, _SIGMAS)) if start else [sampler]
    return next((node for node in chain if "steps" in node.inputs), chain[-1])


def _schedule_of(sigmas: Node) -> str:
    """Name the noise levels of a node that makes just one kind: `KarrasScheduler`, for example."""
    kind, found, _ = sigmas.kind.partition("Scheduler")
    return kind.casefold() if found and kind not in ("Basic", "") else ""


def _first_latent(graph: Graph, sampler: Node) -> Node | None:
    """Return the node that says the size of the empty picture the sampler starts from."""
    start = graph.behind(sampler, "latent_image")
    for node in graph.walk_back(start, _IMAGE_INPUTS) if start else ():
        if "VAEEncode" in node.kind or "LoadImage" in node.kind:
            return None
        if "Empty" in node.kind and "Latent" in node.kind:
            return node
        has_size = any(name in node.inputs for name in _WIDTHS)
        if has_size and "Upscale" not in node.kind:
            return node
    return None


def _model(graph: Graph, guider: Node) -> tuple[str, tuple[str, ...]]:
    """Return the model's name and the names of the LoRAs between it and the sampler."""
    loras: list[str] = []
    model = ""
    start = graph.behind(guider, "model")
    for node in graph.walk_back(start, ("model", "MODEL", "model1")) if start else ():
        loras += _loras_of(graph, node)
        for name in ("ckpt_name", "unet_name", "model_path", "model_name"):
            model = model or graph.text(node, name)
    return model, tuple(name for name in loras if name not in ("", "None"))


def _loras_of(graph: Graph, node: Node) -> Iterator[str]:
    """Go through the LoRAs of a loader; some hold many, each with a switch of its own."""
    for name, value in node.inputs.items():
        if isinstance(value, dict) and value.get("on") is True:
            yield as_text(value.get("lora"))
        elif re.fullmatch(r"lora(?:_name)?(?:_\d+)?", name):
            inner = as_dict(value)
            yield as_text(inner.get("content")) or graph.text(node, name)


def _distilled_guidance(graph: Graph, positive: Node | None) -> object:
    """Return the guidance that Flux models get with the words; their `cfg` is always 1."""
    for node in graph.everything_behind(positive) if positive else ():
        if "Flux" in node.kind and "guidance" in node.inputs:
            return graph.number(node, "guidance")
    return None


def _reasons(
    graph: Graph, sampler: Node, latent: Node | None, words: tuple[str, str], num_passes: int
) -> tuple[Notice, ...]:
    reasons = []
    if not words[0].strip():
        reasons.append(Notice("import_words"))
    if num_passes > 1:
        reasons.append(Notice("import_second_pass"))
    if latent is None:
        if "latent_image" in sampler.inputs:
            reasons.append(Notice("import_first_picture"))
    elif graph.number(latent, "batch_size") not in (None, 1):
        reasons.append(Notice("import_batch", value=graph.number(latent, "batch_size")))
    if _WEIGHT.search(" ".join(words)):
        reasons.append(Notice("import_weights", tool=_TOOL))
    return tuple(reasons)
