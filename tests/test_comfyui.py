"""ComfyUI's graphs: the sampler behind the saved picture, and what its inputs lead to."""

from __future__ import annotations

import json
from typing import Any

import pytest
from foreign_files import COMFY, asked, codes, imported, node
from refusing import refused

from seedgrid.core.errors import PictureError
from seedgrid.formats.importers.imported import Imported

Graph = dict[str, dict[str, Any]]


def read(graph: Graph) -> Imported:
    return imported(prompt=json.dumps(graph), workflow="{}")


def sampler(**changes: object) -> dict[str, Any]:
    return node("KSampler", **(COMFY["3"]["inputs"] | changes))


def test_the_plain_graph() -> None:
    """The links lead from the saved picture to sampler, words, size, model and LoRA."""
    found = read(COMFY)
    assert found.tool == "ComfyUI"
    assert found.request == asked(
        "a red fox",
        "text, watermark",
        156680208700286 % 2**32,
        "512x640",
        20,
        8.0,
        scheduler="DPM++ 2M Karras",
    )
    assert codes(found) == {"import_seed", "import_loras", "import_model", "import_arithmetic"}


ADVANCED: Graph = COMFY | {
    "3": node(
        "SamplerCustomAdvanced",
        noise=["11", 0],
        guider=["12", 0],
        sampler=["13", 0],
        sigmas=["14", 0],
        latent_image=["5", 0],
    ),
    "11": node("RandomNoise", noise_seed=7),
    "12": node("CFGGuider", cfg=4.5, model=["4", 0], positive=["6", 0], negative=["7", 0]),
    "13": node("KSamplerSelect", sampler_name="dpmpp_2m"),
    "14": node("BasicScheduler", scheduler="karras", steps=28, denoise=1.0, model=["4", 0]),
}


@pytest.mark.parametrize(
    ("changes", "scheduler", "steps"),
    [
        ({}, "DPM++ 2M Karras", 28),
        (
            {
                "14": node("SplitSigmas", sigmas=["15", 0], step=20),
                "15": node("KarrasScheduler", steps=30, sigma_max=14.6),
            },
            *("DPM++ 2M Karras", 30),
        ),
        ({"13": node("SamplerDPMPP_2M_SDE", eta=1.0)}, "DPM++ 2M SDE Karras", 28),
        ({"13": node("SamplerER_SDE", eta=1.0)}, None, 28),
    ],
)
def test_the_sampler_of_parts(changes: Graph, scheduler: str | None, steps: int) -> None:
    """Noise, guidance, sampler and steps each come from a node of their own, or from its name."""
    found = read(ADVANCED | changes)
    request = found.request
    assert (request.seeds, request.guidance_scale) == ((7,), 4.5)
    assert (request.scheduler, request.num_inference_steps) == (scheduler, steps)
    assert (request.prompt, request.negative_prompt) == ("a red fox", "text, watermark")
    assert ("import_sampler" in codes(found)) == (scheduler is None)


def test_flux() -> None:
    """Its guidance comes with the words, and its size may come from another node."""
    graph = ADVANCED | {
        "2": node("CLIPTextEncodeFlux", clip_l="a fox", t5xxl="a fox", guidance=3.5, clip=["9", 0]),
        "12": node("BasicGuider", model=["1", 0], conditioning=["2", 0]),
        "5": node("EmptySD3LatentImage", width=["21", 0], height=1024, batch_size=4),
        "21": node("PrimitiveInt", value=768),
        "13": node("KSamplerSelect", sampler_name="euler"),
        "14": node("BasicScheduler", scheduler="simple", steps=20, denoise=1.0),
    }
    found = read(graph)
    assert found.request == asked("a fox", "", 7, "768x1024", 20, 3.5, scheduler="Euler")
    assert {"import_batch", "import_schedule"} <= codes(found)
    guided = {"26": node("FluxGuidance", guidance=3.5, conditioning=["6", 0])}
    found = read(COMFY | guided | {"3": sampler(cfg=1.0, positive=["26", 0])})
    assert (found.request.prompt, found.request.guidance_scale) == ("a red fox", 3.5)


@pytest.mark.parametrize(
    "second",
    [
        {"20": node("LatentUpscale", samples=["2", 0], width=1024, height=1280)},
        {"20": node("Reroute", **{"": ["2", 0]})},
    ],
    ids=["hires", "refiner"],
)
def test_of_two_passes_the_first_counts(second: Graph) -> None:
    """It decides the composition, and the second is named."""
    last = sampler(seed=5, steps=10, cfg=4.0, denoise=0.5, latent_image=["20", 0])
    found = read(COMFY | second | {"2": COMFY["3"], "3": last})
    assert (found.request.num_inference_steps, found.request.width) == (20, 512)
    assert found.request.seeds == (156680208700286 % 2**32,)
    assert "import_second_pass" in codes(found)


def test_lines_that_are_led_around_and_values_of_other_nodes() -> None:
    """Reroutes change nothing; seed, steps, guidance, size and sampler may be nodes of a value."""
    found = read(
        COMFY
        | {
            "3": sampler(
                positive=["30", 0],
                latent_image=["31", 0],
                seed=["40", 0],
                steps=["41", 0],
                cfg=["42", 0],
                sampler_name=["43", 0],
            ),
            "30": node("Reroute", **{"": ["32", 0]}),
            "32": node("Reroute (rgthree)", **{"": ["6", 0]}),
            "31": node("Reroute", **{"": ["5", 0]}),
            "5": node("EmptyLatentImage", width=["44", 0], height=["44", 1], batch_size=1),
            "6": node("CLIPTextEncode", text=["33", 0], clip=["4", 1]),
            "33": node("PrimitiveStringMultiline", value="a hare"),
            "40": node("Seed (rgthree)", seed=77),
            "41": node("INTConstant", value=33),
            "42": node("PrimitiveFloat", value=6.5),
            "43": node("Sampler Selector", sampler_name="dpmpp_2m"),
            "44": node("CR Aspect Ratio", width=832, height=1216, aspect_ratio="custom"),
        }
    )
    assert found.request == asked(
        "a hare", "text, watermark", 77, "832x1216", 33, 6.5, scheduler="DPM++ 2M Karras"
    )
    assert "import_first_picture" not in codes(found)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ({"6": node("Concat", string_a="a red fox", string_b=["1", 0])}, "oil"),
        ({"6": node("ImpactWildcard", wildcard_text="a {x|y}", populated_text="a y")}, "a y"),
        ({"6": node("ConditioningCombine", cond1=["1", 0], cond2=["2", 0])}, "oil"),
        ({"6": node("ControlNetApply", positive=["1", 0], negative=["2", 0])}, "oil"),
        ({"6": node("ConditioningZeroOut", conditioning=["1", 0])}, ""),
        ({"6": node("SomebodysOwnEncoder", magic=5)}, ""),
    ],
)
def test_words_from_nodes_of_many_kinds(nodes: Graph, words: str) -> None:
    """Filled in, combined, handed on with the other role: the first that are found."""
    others = {"1": node("PrimitiveString", value="oil"), "2": node("Text", text="a hare")}
    found = read(COMFY | others | nodes)
    assert found.request.prompt == words
    assert found.request.negative_prompt == "text, watermark"
    assert ("import_words" in codes(found)) == (not words)


def test_a_loader_that_holds_both_texts_and_the_size() -> None:
    """And a sampler that is saved without a decoder between."""
    loader = node(
        "Efficient Loader",
        ckpt_name="sd15.safetensors",
        positive="a red fox",
        negative="blur",
        empty_latent_width=640,
        empty_latent_height=512,
    )
    links = {"positive": ["1", 1], "negative": ["1", 2], "latent_image": ["1", 3]}
    made = node("KSampler (Efficient)", **(sampler(seed=3)["inputs"] | links))
    request = read({"1": loader, "2": made, "3": node("SaveImage", images=["2", 5])}).request
    assert (request.prompt, request.negative_prompt) == ("a red fox", "blur")
    assert (request.width, request.height, request.seeds) == (640, 512, (3,))


def test_loras_of_loaders_that_hold_many() -> None:
    """Those that are switched off, and empty places, are left out."""
    graph = COMFY | {
        "3": sampler(model=["60", 0]),
        "60": node(
            "Power Lora Loader (rgthree)",
            lora_1={"on": True, "lora": "foxes.safetensors", "strength": 1},
            lora_2={"on": False, "lora": "hares.safetensors", "strength": 1},
            model=["61", 0],
        ),
        "61": node("LoraLoaderModelOnly", lora_name="snow.safetensors", model=["62", 0]),
        "62": node("Efficient Loader", lora_name="None", ckpt_name="sd15.safetensors"),
    }
    assert read(graph).loras == ("foxes.safetensors", "snow.safetensors")


def test_a_first_picture_is_named_however_it_is_scaled() -> None:
    """The size of a node that scales a loaded picture is no empty canvas."""
    graph = COMFY | {
        "5": node("VAEEncode", pixels=["70", 0], vae=["4", 2]),
        "70": node("ImageScale", image=["71", 0], width=768, height=768, crop="center"),
        "71": node("LoadImage", image="fox.png"),
    }
    assert "import_first_picture" in codes(read(graph))
    assert read(graph).request.width is None


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ({"prompt": "{}"}, "no sampler"),
        ({"prompt": "[]"}, "not a JSON object"),
        ({"prompt": "[" * 100_000}, "not JSON"),
        ({"prompt": json.dumps({"1": node("SaveImage", images=["1", 0])})}, "no sampler"),
        ({"prompt": json.dumps({"1": {"class_type": 5, "inputs": {}}})}, "no sampler"),
        ({"workflow": "{}"}, "without the values"),
    ],
)
def test_what_is_no_graph_is_one_sentence(texts: dict[str, str], sentence: str) -> None:
    """No sampler, no graph, endless links: one kind of error, which says why."""
    with refused(PictureError, "picture_foreign", match=sentence):
        imported(**texts)


def test_endless_links_end() -> None:
    """Nodes that are linked in a circle, or in more ways than anybody can walk, are no loop."""
    ways = {
        f"c{number}": node("Combine", cond1=[f"c{number + 1}", 0], cond2=[f"c{number + 1}", 0])
        for number in range(60)
    }
    graph = {
        "1": sampler(seed=["1", 0], positive=["2", 0], negative=["c0", 0], model=["3", 0]),
        "2": node("ConditioningCombine", conditioning_1=["2", 0], conditioning_2=["3", 0]),
        "3": node("LatentUpscale", samples=["1", 0], text=["3", 0], model=["3", 0]),
    }
    found = read(graph | ways | {"c60": node("Text", text="fox " * 20_000)})
    assert len(found.request.negative_prompt) <= 5000
    assert "import_seed_missing" in codes(found)
