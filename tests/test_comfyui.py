"""ComfyUI's graphs as people build them: every kind of sampler, words from anywhere."""

from __future__ import annotations

import json
from typing import Any

import pytest
from foreign_files import codes, imported, node

from seedgrid.core.errors import PictureError
from seedgrid.formats.importers.imported import Imported

Graph = dict[str, dict[str, Any]]

SAVED: Graph = {
    "8": node("VAEDecode", samples=["3", 0], vae=["4", 2]),
    "9": node("SaveImage", filename_prefix="ComfyUI", images=["8", 0]),
}
PLAIN: Graph = SAVED | {
    "3": node(
        "KSampler",
        seed=5,
        steps=20,
        cfg=8.0,
        sampler_name="euler",
        scheduler="normal",
        denoise=1.0,
        model=["4", 0],
        positive=["6", 0],
        negative=["7", 0],
        latent_image=["5", 0],
    ),
    "4": node("CheckpointLoaderSimple", ckpt_name="sd15.safetensors"),
    "5": node("EmptyLatentImage", width=512, height=640, batch_size=1),
    "6": node("CLIPTextEncode", text="a red fox", clip=["4", 1]),
    "7": node("CLIPTextEncode", text="blur", clip=["4", 1]),
}


def read(graph: Graph) -> Imported:
    return imported(prompt=json.dumps(graph), workflow="{}")


def with_words(*nodes: tuple[str, dict[str, Any]]) -> str:
    """Read the words of the plain graph, its text linked to node 20."""
    graph = PLAIN | {"6": node("CLIPTextEncode", text=["20", 0], clip=["4", 1])} | dict(nodes)
    return read(graph).request.prompt


def test_both_samplers_of_sdxl() -> None:
    """Base and refiner are two passes; the first one says seed, words and steps."""
    base = node(
        "KSamplerAdvanced",
        add_noise="enable",
        noise_seed=2**63 + 7,
        steps=25,
        cfg=8.0,
        sampler_name="dpmpp_2m_sde_gpu",
        scheduler="karras",
        start_at_step=0,
        end_at_step=20,
        return_with_leftover_noise="enable",
        model=["4", 0],
        positive=["6", 0],
        negative=["7", 0],
        latent_image=["5", 0],
    )
    second = {
        "add_noise": "disable",
        "noise_seed": 0,
        "latent_image": ["2", 0],
        "start_at_step": 20,
    }
    refiner = node("KSamplerAdvanced", **(base["inputs"] | second))
    encoder = node(
        "CLIPTextEncodeSDXL",
        width=4096,
        height=4096,
        crop_w=0,
        target_width=4096,
        text_g="a red fox",
        text_l="oil painting",
        clip=["4", 1],
    )

    found = read(PLAIN | {"2": base, "3": refiner, "6": encoder})

    assert found.request.prompt == "a red fox, oil painting"
    assert found.request.seeds == (7,)
    assert (found.request.width, found.request.num_inference_steps) == (512, 25)
    assert found.request.scheduler == "DPM++ 2M SDE Karras"
    assert {"import_seed", "import_second_pass"} <= codes(found)


def advanced(**changes: dict[str, Any]) -> Graph:
    """Return a graph with the sampler that takes everything from other nodes."""
    graph = PLAIN | {
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
    return graph | {name.removeprefix("n"): part for name, part in changes.items()}


def test_the_advanced_sampler_with_guidance() -> None:
    """Noise, guidance, sampler and steps each come from a node of their own."""
    request = read(advanced()).request

    assert (request.seeds, request.guidance_scale) == ((7,), 4.5)
    assert (request.scheduler, request.num_inference_steps) == ("DPM++ 2M Karras", 28)
    assert (request.prompt, request.negative_prompt) == ("a red fox", "blur")


def test_noise_levels_may_be_cut_and_made_by_other_nodes() -> None:
    """The node that says the steps may stand behind others, and name its kind by itself."""
    request = read(
        advanced(
            n14=node("SplitSigmas", sigmas=["15", 0], step=20),
            n15=node("KarrasScheduler", steps=30, sigma_max=14.6, sigma_min=0.03, rho=7.0),
        )
    ).request

    assert (request.scheduler, request.num_inference_steps) == ("DPM++ 2M Karras", 30)


@pytest.mark.parametrize(
    ("kind", "scheduler"), [("SamplerDPMPP_2M_SDE", "DPM++ 2M SDE Karras"), ("SamplerER_SDE", None)]
)
def test_a_sampler_that_is_a_node_of_its_own(kind: str, scheduler: str | None) -> None:
    """It is known by its kind, or named as one that is not offered here."""
    found = read(advanced(n13=node(kind, solver_type="midpoint", eta=1.0, s_noise=1.0)))

    assert found.request.scheduler == scheduler
    assert ("import_sampler" in codes(found)) == (scheduler is None)


def test_a_plain_sampler_of_parts() -> None:
    """`SamplerCustom` holds the seed and the guidance itself."""
    sampler = node(
        "SamplerCustom",
        add_noise=True,
        noise_seed=9,
        cfg=1.0,
        model=["4", 0],
        positive=["6", 0],
        negative=["7", 0],
        sampler=["13", 0],
        sigmas=["14", 0],
        latent_image=["5", 0],
    )
    request = read(
        advanced(n3=sampler, n14=node("SDTurboScheduler", steps=1, denoise=1.0, model=["4", 0]))
    ).request

    assert (request.seeds, request.guidance_scale, request.num_inference_steps) == ((9,), 1.0, 1)


def test_lines_that_are_led_around() -> None:
    """Reroutes stand in every line without changing what comes through."""
    graph = PLAIN | {
        "3": node(
            "KSampler",
            **(PLAIN["3"]["inputs"] | {"positive": ["30", 0], "latent_image": ["31", 0]}),
        ),
        "30": node("Reroute", **{"": ["32", 0]}),
        "32": node("Reroute (rgthree)", **{"": ["6", 0]}),
        "31": node("Reroute", **{"": ["5", 0]}),
        "6": node("CLIPTextEncode", text=["33", 0], clip=["4", 1]),
        "33": node("ReroutePrimitive|pysssss", value=["34", 0]),
        "34": node("PrimitiveStringMultiline", value="a red fox"),
    }

    found = read(graph)

    assert found.request.prompt == "a red fox"
    assert (found.request.width, found.request.height) == (512, 640)
    assert "import_first_picture" not in codes(found)


def test_widgets_that_became_inputs() -> None:
    """Seed, steps, guidance, size and sampler may come from nodes that hold one value."""
    sampler = PLAIN["3"]["inputs"] | {
        "seed": ["40", 0],
        "steps": ["41", 0],
        "cfg": ["42", 0],
        "sampler_name": ["43", 0],
    }
    graph = PLAIN | {
        "3": node("KSampler", **sampler),
        "5": node("EmptyLatentImage", width=["44", 0], height=["44", 1], batch_size=1),
        "40": node("Seed (rgthree)", seed=77),
        "41": node("INTConstant", value=33),
        "42": node("PrimitiveFloat", value=6.5),
        "43": node("Sampler Selector", sampler_name="heun"),
        "44": node("CR Aspect Ratio", width=832, height=1216, aspect_ratio="custom"),
    }

    request = read(graph).request

    assert (request.seeds, request.num_inference_steps) == ((77,), 33)
    assert (request.guidance_scale, request.scheduler) == (6.5, "Heun")
    assert (request.width, request.height) == (832, 1216)


def test_texts_that_are_joined_of_joined_ones() -> None:
    """Whatever stands between them is what the node puts there."""
    words = with_words(
        ("20", node("StringConcatenate", string_a=["21", 0], string_b=["22", 0], delimiter=", ")),
        ("21", node("StringConcatenate", string_a="a red", string_b=["23", 0], delimiter=" ")),
        ("22", node("JoinStrings", string1="oil", string2=["24", 0], delimiter=" ")),
        ("23", node("PrimitiveString", value="fox")),
        ("24", node("Text Multiline", text="painting")),
    )

    assert words == "a red fox, oil painting"


@pytest.mark.parametrize(
    "source",
    [
        node("PrimitiveString", value="a red fox"),
        node("String Literal", string="a red fox"),
        node("Text Multiline", text="a red fox"),
        node("ShowText|pysssss", text=["99", 0], text_0="a red fox"),
        node(
            "ImpactWildcardProcessor", wildcard_text="a {red|blue} fox", populated_text="a red fox"
        ),
        node(
            "Text Concatenate", delimiter=" ", clean_whitespace="true", text_a="a red", text_b="fox"
        ),
        node("ConcatStringSingle", string_a="a red", string_b=" fox"),
    ],
)
def test_words_from_nodes_of_many_kinds(source: dict[str, Any]) -> None:
    """Literals, wildcards already filled in, joined texts."""
    assert with_words(("20", source)) == "a red fox"


def test_the_words_of_a_filled_in_wildcard_are_those_that_were_used() -> None:
    """An encoder that holds both the pattern and what was drawn from it says the latter."""
    encoder = node(
        "ImpactWildcardEncode",
        wildcard_text="a {red|blue} fox",
        populated_text="a blue fox",
        mode=True,
        model=["4", 0],
        clip=["4", 1],
    )

    assert read(PLAIN | {"6": encoder}).request.prompt == "a blue fox"


def test_conditionings_through_nodes_nobody_knows() -> None:
    """What a node does to one thing, it does to that thing's words."""
    graph = PLAIN | {
        "3": node("KSampler", **(PLAIN["3"]["inputs"] | {"positive": ["50", 0]})),
        "50": node("SomebodysRebalancing", amount=0.3, c=["6", 0]),
    }

    assert read(graph).request.prompt == "a red fox"


def test_loras_of_loaders_that_hold_many() -> None:
    """Those that are switched off, and empty places, are left out."""
    graph = PLAIN | {
        "3": node("KSampler", **(PLAIN["3"]["inputs"] | {"model": ["60", 0]})),
        "60": node(
            "Power Lora Loader (rgthree)",
            lora_1={"on": True, "lora": "foxes.safetensors", "strength": 1},
            lora_2={"on": False, "lora": "hares.safetensors", "strength": 1},
            model=["61", 0],
        ),
        "61": node("LoraLoaderModelOnly", lora_name="snow.safetensors", model=["62", 0]),
        "62": node("Efficient Loader", lora_name="None", ckpt_name="sd15.safetensors"),
    }

    sentence = str(read(graph).notice)

    assert "foxes.safetensors, snow.safetensors" in sentence
    assert "hares" not in sentence
    assert "None" not in sentence


def test_a_scaled_first_picture_is_still_a_first_picture() -> None:
    """The size of a node that scales a loaded picture is no empty canvas."""
    graph = PLAIN | {
        "5": node("VAEEncode", pixels=["70", 0], vae=["4", 2]),
        "70": node("ImageScale", image=["71", 0], width=768, height=768, crop="center"),
        "71": node("LoadImage", image="fox.png"),
    }

    assert "import_first_picture" in codes(read(graph))


def test_the_saved_picture_counts_before_one_that_was_only_shown() -> None:
    """A preview of another sampler stands in the same graph."""
    graph = {
        "1": node("PreviewImage", images=["2", 0]),
        "2": node("VAEDecode", samples=["10", 0]),
        "10": node("KSampler", **(PLAIN["3"]["inputs"] | {"seed": 1})),
    }

    assert read(graph | PLAIN).request.seeds == (5,)


def chain(length: int) -> Graph:
    """Return a graph whose words stand behind many nodes, each of which has two ways on."""
    graph = dict(PLAIN)
    for number in range(length):
        following = [f"c{number + 1}", 0]
        graph[f"c{number}"] = node(
            "ConditioningCombine", conditioning_1=following, conditioning_2=following
        )
        graph[f"t{number}"] = node(
            "Concat", string_a=[f"t{number + 1}", 0], string_b=[f"t{number + 1}", 0]
        )
    graph[f"c{length}"] = node("CLIPTextEncode", text=["t0", 0])
    graph[f"t{length}"] = node("PrimitiveString", value="fox " * 100_000)
    graph["3"] = node(
        "KSampler", **(PLAIN["3"]["inputs"] | {"positive": ["c0", 0], "seed": ["t0", 0]})
    )
    return graph


@pytest.mark.parametrize("length", [10, 60, 2000])
def test_a_graph_that_grows_without_bound_ends(length: int) -> None:
    """Two ways on at every node are 2 to the 60 ways: the walk has a budget, and no deep call."""
    found = read(chain(length))

    assert len(found.request.prompt) <= 5000


def test_a_graph_of_endless_saving_nodes_ends() -> None:
    """Thousands of ends, each with a long line behind it, are not all walked."""
    graph = {str(n): node("SaveImage", images=[str(n + 1), 0]) for n in range(4999)}

    with pytest.raises(PictureError, match="no sampler"):
        read(graph)
