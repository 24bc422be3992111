"""Other tools' pictures become requests, with an honest sentence about what cannot come along."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from foreign_files import (
    COMFY,
    FOOOCUS,
    INVOKE,
    NOVELAI,
    SWARM,
    SWARM_PARAMS,
    codes,
    imported,
    node,
)
from hypothesis import given
from hypothesis import strategies as st

from seedgrid.core.errors import PictureError
from seedgrid.core.recipe import NoiseShare
from seedgrid.core.request import Request, resolve
from seedgrid.formats.importers.imported import Found, fit, to_imported
from seedgrid.formats.importers.samplers import OUR_NAMES
from seedgrid.formats.own_texts import parameters_text
from seedgrid.models.schedulers import TABLE
from seedgrid.testing.fake import FAKE_CARD

A1111 = """masterpiece, (best quality:1.2), a red fox <lora:foxes_v2:0.8>
in the snow
Negative prompt: lowres, bad anatomy,
blurry
Steps: 28, Sampler: DPM++ 2M, Schedule type: Karras, CFG scale: 7.5, Seed: 3141592653, \
Size: 512x768, Model hash: 6ce0161689, Model: v1-5-pruned-emaonly, Clip skip: 2, \
Lora hashes: "foxes_v2: 1a2b3c4d5e6f", Version: v1.10.1"""


def test_automatic1111() -> None:
    """Words, seed, size, steps, guidance and sampler come along; LoRA and clip skip are named."""
    found = imported(parameters=A1111)

    assert found.tool == "AUTOMATIC1111"
    assert found.request == Request(
        prompt="masterpiece, (best quality:1.2), a red fox \nin the snow",
        negative_prompt="lowres, bad anatomy,\nblurry",
        seeds=(3141592653,),
        width=512,
        height=768,
        num_inference_steps=28,
        guidance_scale=7.5,
        scheduler="DPM++ 2M Karras",
        weights=True,
    )
    assert codes(found) == {
        "import_loras",
        "import_extras",
        "import_model",
        "import_noise",
        "import_arithmetic",
    }


def test_the_sentence_is_one_sentence() -> None:
    """What cannot come along is said in one go, with the names that were found."""
    sentence = str(imported(parameters=A1111).notice)

    assert sentence.startswith("From AUTOMATIC1111")
    for part in ("foxes_v2", "Clip skip", "v1-5-pruned-emaonly", "noise is drawn elsewhere"):
        assert part in sentence
    assert sentence.count(". ") == 0
    assert sentence.endswith(".")


@pytest.mark.parametrize(
    ("settings", "scheduler"),
    [
        ("Sampler: Euler a", "Euler a"),
        ("Sampler: DPM++ 2M Karras", "DPM++ 2M Karras"),
        ("Sampler: DPM++ 2M, Schedule type: Automatic", "DPM++ 2M Karras"),
        ("Sampler: DPM++ 2M, Schedule type: Uniform", "DPM++ 2M"),
        ("Sampler: DPM++ 2M, Schedule type: SGM Uniform", "DPM++ 2M"),
        ("Sampler: Euler, Schedule type: Automatic", "Euler"),
        ("Sampler: PLMS", "PNDM"),
        ("Sampler: DDIM", "DDIM"),
        ("Sampler: UniPC", "UniPC"),
        ("Sampler: LCM", "LCM"),
        ("Sampler: Restart", None),
        ("Sampler: DPM adaptive", None),
    ],
)
def test_samplers_of_automatic1111(settings: str, scheduler: str | None) -> None:
    """Each name of a sampler becomes ours, or is honestly left to the model."""
    text = f"fox\nSteps: 20, {settings}, CFG scale: 7, Seed: 1, Size: 512x512"

    found = imported(parameters=text)

    assert found.request.scheduler == scheduler
    assert ("import_sampler" in codes(found)) == (scheduler is None)
    assert ("import_schedule" in codes(found)) == ("SGM" in settings)


def test_every_sampler_we_name_is_one_we_have() -> None:
    """The table of other tools' names leads only to schedulers of the backend."""
    assert set(OUR_NAMES.values()) <= set(TABLE)


def test_a_variation_seed_becomes_a_noise_mix() -> None:
    """A little of another seed is the same spherical mix here."""
    found = imported(
        parameters="fox\nSteps: 20, Sampler: Euler, CFG scale: 7, Seed: 1, Size: 512x512, "
        "Variation seed: 99, Variation seed strength: 0.15, RNG: CPU"
    )

    assert found.request.noise_mix == (NoiseShare(seed=99, weight=0.15),)
    assert "import_noise" not in codes(found)


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ("Denoising strength: 0.7, Hires upscale: 2, Hires upscaler: Latent", "import_second_pass"),
        ("Denoising strength: 0.7", "import_first_picture"),
        ('ControlNet 0: "Module: canny, Model: x [1]"', "import_extras"),
        ("Seed: -1", "import_seed_missing"),
        ("Seed: 4294967296", "import_seed"),
        ("Steps: 500", "import_number"),
        ("CFG scale: 99", "import_number"),
        ("Size: 8192x8192", "import_number"),
    ],
)
def test_what_cannot_come_along_is_named(settings: str, code: str) -> None:
    """Second passes, first pictures, networks and values out of range each have their words."""
    text = "fox\nSteps: 20, Sampler: Euler, CFG scale: 7, Seed: 1, Size: 512x512, " + settings

    assert code in codes(imported(parameters=text))


def test_a_seed_beyond_32_bits_draws_the_same_noise() -> None:
    """Torch uses the low 32 bits, so those are the seed here, and it is said."""
    found = imported(
        parameters="fox\nSteps: 20, Sampler: Euler, CFG scale: 7, Seed: 4294967303, Size: 64x64"
    )

    assert found.request.seeds == (7,)
    assert "import_seed" in codes(found)


def test_a_prompt_of_commas_and_colons_stays_whole() -> None:
    """Only the last line is settings, whatever the words look like."""
    words = "a fox, Steps: many, Seed: of a pine, Size: huge\nratio 16:9, NSFW: no"

    found = imported(
        parameters=f"{words}\nSteps: 20, Sampler: Euler, CFG scale: 7, Seed: 1, Size: 64x64"
    )

    assert found.request.prompt == words


def test_words_without_a_prompt() -> None:
    """An empty prompt, or a negative one alone, is read as such."""
    settings = "Steps: 20, Sampler: Euler, CFG scale: 7, Seed: 1, Size: 64x64"

    assert imported(parameters=settings).request.prompt == ""
    found = imported(parameters=f"Negative prompt: blurry\n{settings}").request
    assert (found.prompt, found.negative_prompt) == ("", "blurry")


@pytest.mark.parametrize(
    ("version", "tool"),
    [
        ("Version: v1.9.4", "AUTOMATIC1111"),
        ("Version: f2.0.1v1.10.1-previous-665-gae278f79", "Forge"),
        ("Version: neo-2.3", "Forge"),
        ("App: SD.Next, Version: 0eb4a98", "SD.Next"),
        ("Version: ComfyUI", "ComfyUI"),
        ("Version: Fooocus v2.5.5", "Fooocus"),
        ("", "AUTOMATIC1111"),
    ],
)
def test_the_tools_that_write_parameters_are_told_apart(version: str, tool: str) -> None:
    """The version names the tool."""
    settings = "Steps: 20, Sampler: Euler a, CFG scale: 7, Seed: 1, Size: 64x64"

    assert imported(parameters=f"fox\n{settings}, {version}").tool == tool


def test_sdnext() -> None:
    """SD.Next may leave the sampler out, and lists its networks by name."""
    found = imported(
        parameters="girl, line art <lora:outline:3.0>\nNegative prompt: low quality\n"
        "Steps: 20, Size: 1312x1408, Seed: 1561296656, CFG scale: 6, CFG rescale: 0.7, "
        "Model: hassakuXL, Model hash: 847403d47a, App: SD.Next, Version: 8b73cb6, "
        "Pipeline: StableDiffusionXLPipeline, Operations: txt2img, LoRA networks: outline"
    )

    assert (found.tool, found.request.prompt) == ("SD.Next", "girl, line art")
    assert (found.request.width, found.request.height) == (1312, 1408)
    assert found.request.scheduler is None
    assert "import_sampler" not in codes(found)
    assert str(found.notice).count("outline") == 1


def test_our_own_parameters_come_back() -> None:
    """A picture of ours that lost its recipe but kept `parameters` gives the same request."""
    (recipe,) = resolve(
        Request(prompt="a fox,\nrunning", negative_prompt="blur: yes", seeds=(11,)), FAKE_CARD
    )

    found = imported(parameters=parameters_text(recipe))

    assert found.tool == "SeedGrid"
    assert "import_noise" not in codes(found)
    (again,) = resolve(found.request, FAKE_CARD)
    assert again == recipe


@given(
    st.lists(
        st.builds(NoiseShare, seed=st.integers(0, 2**32 - 1), weight=st.floats(1e-9, 1)),
        max_size=5,
    )
)
def test_our_own_mixes_come_back_from_parameters(mix: list[NoiseShare]) -> None:
    """One mixed seed is written as AUTOMATIC1111 does, several in our own words."""
    request = Request(prompt="a fox", seeds=(11,), noise_mix=tuple(mix))
    (recipe,) = resolve(request, FAKE_CARD)

    found = imported(parameters=parameters_text(recipe))

    assert resolve(found.request, FAKE_CARD) == (recipe,)


def test_forge_paints_flux_with_its_distilled_guidance() -> None:
    """The guidance of Flux is the distilled one; the plain one beside it is 1."""
    settings = (
        "a fox\nSteps: 20, Sampler: Euler, Schedule type: Simple, CFG scale: 1, "
        "Distilled CFG Scale: 3.5, Seed: 12345, Size: 896x1152, Model hash: 275ef623d3, "
        "Model: flux1-dev-fp8, Beta schedule alpha: 0.6, Version: f2.0.1v1.10.1-previous-659"
    )

    found = imported(parameters=settings)

    assert found.tool == "Forge"
    assert found.request.guidance_scale == 3.5
    assert "distilled" not in str(found.notice)
    both = imported(parameters=settings.replace("CFG scale: 1,", "CFG scale: 2.5,"))
    assert "beside the distilled one" in str(both.notice)


def test_sdnext_with_a_variation_and_noise_levels() -> None:
    """SD.Next names the strength otherwise, and the noise levels `Sampler sigma`."""
    found = imported(
        parameters="fox\nSteps: 20, Seed: 7, Sampler: DPM++ 2M, CFG scale: 6, Size: 512x512, "
        "Parser: native, Model: x, Model hash: 6ce0161689, Backend: Diffusers, App: SD.Next, "
        "Version: 8b73cb6, Operations: txt2img, Pipeline: StableDiffusionPipeline, "
        "Variation seed: 99, Variation strength: 0.25, Sampler sigma: karras"
    )

    assert found.request.noise_mix == (NoiseShare(seed=99, weight=0.25),)
    assert found.request.scheduler == "DPM++ 2M Karras"


def test_the_size_of_a_first_pass_is_the_size() -> None:
    """Before version 1 of AUTOMATIC1111 `Size` was that of the second pass."""
    found = imported(
        parameters="fox\nSteps: 20, Sampler: Euler a, CFG scale: 7, Seed: 1, Size: 1024x1536, "
        "Model hash: 7460a6fa, Denoising strength: 0.7, First pass size: 512x768"
    )

    assert (found.request.width, found.request.height) == (512, 768)
    assert "import_second_pass" in codes(found)


@pytest.mark.parametrize(
    ("words", "are_weighted", "is_said"),
    [
        ("((eyeshadow)), a fox", True, False),
        ("a [blurry] fox", True, False),
        ("a (red:1.2) fox", True, False),
        ("a \\(red\\) fox", False, False),
        ("a fox AND a hare", False, True),
        ("a [fox:hare:0.5]", False, True),
        ("a fox and a hare", False, False),
    ],
)
def test_marks_of_weight_in_automatic1111(words: str, are_weighted: bool, is_said: bool) -> None:
    """Brackets weigh words here too; parts and words that change cannot come along."""
    found = imported(
        parameters=f"{words}\nSteps: 20, Sampler: Euler, CFG scale: 7, Seed: 1, Size: 64x64"
    )

    assert found.request.weights == are_weighted
    assert ("import_weights" in codes(found)) == is_said
    other = fit(found, replace(FAKE_CARD, has_weights=False))
    assert not other.request.weights
    assert ("import_weights" in codes(other)) == (are_weighted or is_said)


def test_invokeai() -> None:
    """InvokeAI draws the first noise on the CPU too; its model is named."""
    found = imported(invokeai_metadata=json.dumps(INVOKE))

    assert found.tool == "InvokeAI"
    assert found.request == Request(
        prompt="a red fox",
        negative_prompt="blurry",
        seeds=(1234567890,),
        width=768,
        height=512,
        num_inference_steps=30,
        guidance_scale=6.5,
        scheduler="DPM++ 2M Karras",
    )
    assert codes(found) == {"import_model", "import_arithmetic"}
    assert "Dreamshaper 8" in str(found.notice)


def test_invokeai_3_and_its_loras() -> None:
    """Version 3 names models otherwise, and a LoRA is named with what cannot come along."""
    data = INVOKE | {
        "model": {"model_name": "stable-diffusion-v1-5", "base_model": "sd-1"},
        "loras": [{"lora": {"model_name": "LowRA"}, "weight": 0.5}],
        "generation_mode": "img2img",
        "rand_device": "cuda",
    }

    found = imported(invokeai_metadata=json.dumps(data))

    assert {"import_loras", "import_first_picture", "import_noise"} <= codes(found)
    assert "LowRA" in str(found.notice)
    assert "stable-diffusion-v1-5" in str(found.notice)


def test_invokeai_2() -> None:
    """Version 2 had `sd-metadata`, with the negative words in brackets."""
    data = {
        "model": "stable diffusion",
        "model_weights": "stable-diffusion-1.5",
        "app_id": "invoke-ai/InvokeAI",
        "app_version": "2.3.5",
        "image": {
            "prompt": [{"prompt": "a red fox [blurry]", "weight": 1.0}],
            "steps": 50,
            "cfg_scale": 7.5,
            "height": 512,
            "width": 512,
            "seed": 42,
            "type": "txt2img",
            "sampler": "k_euler_a",
            "variations": [{"seed": 5, "weight": 0.2}],
        },
    }

    found = imported(sd__metadata=json.dumps(data)).request

    assert (found.prompt, found.negative_prompt) == ("a red fox", "blurry")
    assert (found.seeds, found.scheduler) == ((42,), "Euler a")
    assert found.noise_mix == (NoiseShare(seed=5, weight=0.2),)


def test_the_first_invokeai_wrote_its_command_line() -> None:
    """`Dream` holds the command: words in quotes, switches after them."""
    found = imported(Dream='"a \\"red\\" fox [blurry]" -s 50 -S 42 -W512 -H 640 -C7.5 -A k_euler_a')

    assert found.request == Request(
        prompt='a "red" fox',
        negative_prompt="blurry",
        seeds=(42,),
        width=512,
        height=640,
        num_inference_steps=50,
        guidance_scale=7.5,
        scheduler="Euler a",
    )


def test_invokeai_5_with_its_canvas() -> None:
    """Version 5 writes empty layers too: only those that hold something are named."""
    layers: dict[str, list[object]] = {
        "controlLayers": [],
        "inpaintMasks": [],
        "rasterLayers": [],
        "regionalGuidance": [],
    }
    data = INVOKE | {
        "generation_mode": "sdxl_txt2img",
        "scheduler": "euler_k",
        "ref_images": [],
        "regions": [],
        "canvas_v2_metadata": layers,
        "app_version": "5.9.0",
    }

    plain = imported(invokeai_metadata=json.dumps(data))
    filled = data | {"canvas_v2_metadata": layers | {"regionalGuidance": [{"id": "a"}]}}
    regional = imported(invokeai_metadata=json.dumps(filled))

    assert "import_extras" not in codes(plain)
    assert "regional guidance" in str(regional.notice)
    # Its Euler on the noise levels of Karras is not ours.
    assert plain.request.scheduler == "Euler"
    assert "import_schedule" in codes(plain)


def test_invokeai_flux() -> None:
    """Flux has a guidance of its own, and no negative words."""
    data = INVOKE | {"generation_mode": "flux_txt2img", "guidance": 4, "cfg_scale": 1}
    data = {key: value for key, value in data.items() if key not in ("negative_prompt", "seed")}

    found = imported(invokeai_metadata=json.dumps(data | {"seed": 2**32 - 1}))

    assert (found.request.guidance_scale, found.request.negative_prompt) == (4.0, "")
    assert found.request.seeds == (2**32 - 1,)


@pytest.mark.parametrize("metadata", [{}, {"invokeai_metadata": "null"}])
def test_an_invokeai_workflow_without_settings_says_so(metadata: dict[str, str]) -> None:
    """The workflow editor may save a picture without the values of its run."""
    with pytest.raises(PictureError, match="without the settings"):
        imported(invokeai_workflow="{}", **metadata)


def test_invokeai_2_mixes_several_seeds() -> None:
    """All of its variations are mixed in, in their order."""
    image = {
        "prompt": "a fox",
        "seed": 1,
        "perlin": 0.1,
        "variations": [{"seed": 5, "weight": 0.2}, {"seed": 6, "weight": 0.1}],
    }

    found = imported(sd__metadata=json.dumps({"image": image}))

    assert [share.seed for share in found.request.noise_mix] == [5, 6]
    assert "perlin" in str(found.notice)


def test_comfyui() -> None:
    """The links lead from the saved picture to sampler, words, size, model and LoRA."""
    found = imported(prompt=json.dumps(COMFY), workflow="{}")

    assert found.tool == "ComfyUI"
    assert found.request == Request(
        prompt="a red fox",
        negative_prompt="text, watermark",
        seeds=(156680208700286 % 2**32,),
        width=512,
        height=640,
        num_inference_steps=20,
        guidance_scale=8.0,
        scheduler="DPM++ 2M Karras",
    )
    assert codes(found) == {"import_seed", "import_loras", "import_model", "import_arithmetic"}


def test_comfyui_with_custom_sampling() -> None:
    """Flux and SD3 workflows spread the settings over nodes of their own."""
    graph = {
        "1": node("UNETLoader", unet_name="flux1-dev.safetensors", weight_dtype="default"),
        "2": node("CLIPTextEncodeFlux", clip_l="a fox", t5xxl="a fox", guidance=3.5, clip=["9", 0]),
        "3": node("BasicGuider", model=["1", 0], conditioning=["2", 0]),
        "4": node("RandomNoise", noise_seed=7),
        "5": node("KSamplerSelect", sampler_name="euler"),
        "6": node("BasicScheduler", scheduler="simple", steps=20, denoise=1.0, model=["1", 0]),
        "7": node("EmptySD3LatentImage", width=["11", 0], height=1024, batch_size=4),
        "8": node(
            "SamplerCustomAdvanced",
            noise=["4", 0],
            guider=["3", 0],
            sampler=["5", 0],
            sigmas=["6", 0],
            latent_image=["7", 0],
        ),
        "10": node("VAEDecode", samples=["8", 0], vae=["12", 0]),
        "11": node("PrimitiveInt", value=768),
        "13": node("SaveImage", images=["10", 0]),
    }

    found = imported(prompt=json.dumps(graph))

    assert found.request == Request(
        prompt="a fox",
        seeds=(7,),
        width=768,
        height=1024,
        num_inference_steps=20,
        guidance_scale=3.5,
        scheduler="Euler",
    )
    assert {"import_batch", "import_schedule"} <= codes(found)


def test_comfyui_follows_the_first_of_two_passes() -> None:
    """In a hires workflow the first sampler decides the composition, and the second is named."""
    graph = COMFY | {
        "20": node("LatentUpscale", samples=["3", 0], width=1024, height=1280),
        "21": node(
            "KSampler",
            seed=5,
            steps=10,
            cfg=4.0,
            sampler_name="euler",
            scheduler="normal",
            denoise=0.5,
            model=["4", 0],
            positive=["6", 0],
            negative=["7", 0],
            latent_image=["20", 0],
        ),
        "8": node("VAEDecode", samples=["21", 0], vae=["4", 2]),
    }

    found = imported(prompt=json.dumps(graph))

    assert (found.request.num_inference_steps, found.request.width) == (20, 512)
    assert {"import_second_pass", "import_extras"} <= codes(found)


def test_comfyui_words_behind_other_nodes() -> None:
    """Combined conditionings, and words that come out of text nodes, are found."""
    graph = COMFY | {
        "6": node("ConditioningCombine", conditioning_1=["30", 0], conditioning_2=["31", 0]),
        "30": node("CLIPTextEncode", text=["32", 0], clip=["4", 1]),
        "31": node("CLIPTextEncodeSDXL", text_g="oil painting", text_l="oil painting"),
        "32": node("StringConcatenate", string_a="a red", string_b=["33", 0], delimiter=" "),
        "33": node("PrimitiveString", value="fox"),
    }

    assert imported(prompt=json.dumps(graph)).request.prompt == "a red fox, oil painting"


def test_comfyui_keeps_both_sides_apart() -> None:
    """Nodes that hand on both conditionings, and loaders that hold both texts, are not mixed up."""
    control = COMFY | {
        "3": node(
            "KSampler",
            **(COMFY["3"]["inputs"] | {"positive": ["50", 0], "negative": ["50", 1]}),
        ),
        "50": node("ControlNetApplyAdvanced", positive=["6", 0], negative=["7", 0], strength=1.0),
    }
    loader = {
        "1": node(
            "Efficient Loader",
            ckpt_name="sd15.safetensors",
            positive="a red fox",
            negative="blur",
            empty_latent_width=640,
            empty_latent_height=512,
            batch_size=1,
        ),
        "2": node(
            "KSampler (Efficient)",
            seed=3,
            steps=20,
            cfg=7.0,
            sampler_name="euler",
            scheduler="normal",
            positive=["1", 1],
            negative=["1", 2],
            latent_image=["1", 3],
            model=["1", 0],
        ),
        "3": node("SaveImage", images=["2", 5]),
    }

    first = imported(prompt=json.dumps(control))
    second = imported(prompt=json.dumps(loader))

    request = first.request
    assert (request.prompt, request.negative_prompt) == ("a red fox", "text, watermark")
    assert "ControlNet" in str(first.notice)
    request = second.request
    assert (request.prompt, request.negative_prompt) == ("a red fox", "blur")
    assert (request.width, request.height, request.seeds) == (640, 512, (3,))


def test_comfyui_says_when_it_finds_no_words() -> None:
    """A graph of unknown nodes is read as far as it goes, and says what is missing."""
    graph = COMFY | {"6": node("SomebodysOwnEncoder", magic=5)}

    found = imported(prompt=json.dumps(graph))

    assert found.request.prompt == ""
    assert found.request.num_inference_steps == 20
    assert "import_words" in codes(found)


def test_lines_after_the_settings_are_passed_over() -> None:
    """Some extensions write lines of their own below the settings."""
    settings = "Steps: 20, Sampler: Euler, CFG scale: 7, Seed: 5, Size: 512x512"

    found = imported(parameters=f"a fox\nNegative prompt: blur\n{settings}\nTemplate: a {{x}}")

    assert (found.request.prompt, found.request.negative_prompt) == ("a fox", "blur")
    assert found.request.seeds == (5,)


def test_comfyui_from_a_picture() -> None:
    """Without an empty latent the picture was made from another one."""
    graph = COMFY | {
        "5": node("VAEEncode", pixels=["40", 0], vae=["4", 2]),
        "40": node("LoadImage", image="fox.png"),
    }

    assert "import_first_picture" in codes(imported(prompt=json.dumps(graph)))


def test_swarmui() -> None:
    """SwarmUI writes JSON under A1111's key; its variation seed is a noise mix."""
    found = imported(parameters=json.dumps(SWARM, indent=2))

    assert found.tool == "SwarmUI"
    assert found.request == Request(
        prompt="a red fox",
        negative_prompt="blurry",
        seeds=(1812281846,),
        width=1024,
        height=1024,
        num_inference_steps=20,
        guidance_scale=7.0,
        scheduler="Euler a",
        noise_mix=(NoiseShare(seed=3, weight=0.25),),
    )
    assert codes(found) == {"import_loras", "import_model", "import_arithmetic"}


def test_swarmui_with_comfyui_names_and_flux() -> None:
    """Its sampler may be ComfyUI's, and Flux has a guidance of its own."""
    changed = SWARM_PARAMS | {"fluxguidancescale": 3.5, "cfgscale": 1}
    changed = {key: value for key, value in changed.items() if key not in ("sampler", "scheduler")}
    changed |= {"comfyuisampler": "dpmpp_2m", "comfyuischeduler": "karras"}

    found = imported(parameters=json.dumps({"sui_image_params": changed})).request

    assert (found.guidance_scale, found.scheduler) == (3.5, "DPM++ 2M Karras")


def test_fooocus() -> None:
    """Fooocus's own scheme; its styles and its prompt expansion are named."""
    found = imported(parameters=json.dumps(FOOOCUS), fooocus_scheme="fooocus")

    assert found.tool == "Fooocus"
    assert found.request == Request(
        prompt="a red fox",
        negative_prompt="blurry",
        seeds=(7427598543437316352 % 2**32,),
        width=1152,
        height=896,
        num_inference_steps=30,
        guidance_scale=4.0,
        scheduler="DPM++ 2M SDE Karras",
    )
    assert {"import_seed", "import_loras", "import_extras"} <= codes(found)
    assert "styles" in str(found.notice)


def test_fooocus_in_the_scheme_of_automatic1111() -> None:
    """Its other scheme has the styles written out in the words."""
    found = imported(
        fooocus_scheme="a1111",
        parameters="cinematic still a red fox . emotional, harmonious\n"
        "Negative prompt: anime, cartoon\n"
        "Steps: 30, Sampler: DPM++ 2M SDE Karras, Seed: 6431463018164675, Size: 1152x896, "
        'CFG scale: 4.0, Sharpness: 2.0, ADM Guidance: "(1.5, 0.8, 0.3)", '
        "Model: juggernautXL_v8Rundiffusion, Model hash: aeb7e9e689, Performance: Speed, "
        "Scheduler: karras, VAE: Default (model), Raw prompt: a red fox, "
        'Raw negative prompt: , Lora hashes: "sd_xl_offset_example-lora_1.0: 4852686128", '
        'Lora weights: "sd_xl_offset_example-lora_1.0: 0.1", Version: Fooocus v2.5.5',
    )

    assert found.tool == "Fooocus"
    assert found.request.prompt == "cinematic still a red fox . emotional, harmonious"
    assert found.request.seeds == (6431463018164675 % 2**32,)
    assert (found.request.width, found.request.height) == (1152, 896)
    assert found.request.scheduler == "DPM++ 2M SDE Karras"
    assert "offset_example" in str(found.notice)


def test_fooocus_2_4_writes_whether_a_lora_is_on() -> None:
    """Its name is the second of three parts then."""
    data = FOOOCUS | {"lora_combined_1": "True : foxes : 0.5"}

    assert "foxes" in str(imported(parameters=json.dumps(data)).notice)


def test_novelai() -> None:
    """NovelAI keeps its settings in `Comment`; its model runs nowhere else, and it says so."""
    found = imported(
        Title="NovelAI generated image",
        Software="NovelAI",
        Source="NovelAI Diffusion V3 C1E1DE52",
        Description=NOVELAI["prompt"],
        Comment=json.dumps(NOVELAI),
    )

    assert found.tool == "NovelAI"
    assert found.request == Request(
        prompt="{masterpiece}, 1girl, red fox",
        negative_prompt="lowres",
        seeds=(3509481094,),
        width=832,
        height=1216,
        num_inference_steps=28,
        guidance_scale=5.0,
        scheduler="DPM++ 2M Karras",
    )
    assert codes(found) == {"import_weights", "import_model", "import_noise", "import_arithmetic"}


def test_novelai_4_and_its_characters() -> None:
    """Version 4's characters follow the words."""
    caption = {"base_caption": "a forest", "char_captions": [{"char_caption": "fox"}]}
    comment = NOVELAI | {"v4_prompt": {"caption": caption}}

    found = imported(Software="NovelAI", Comment=json.dumps(comment))

    assert found.request.prompt == "a forest, fox"


def test_novelai_4_5_with_negative_characters() -> None:
    """Both captions have characters; empty ones leave no comma behind."""
    girl = {"char_caption": "girl", "centers": [{"x": 0.5, "y": 0.5}]}
    words = {"base_caption": "winter, 1.2::snow::", "char_captions": [girl, {"char_caption": ""}]}
    child = {"char_caption": "child", "centers": []}
    comment = NOVELAI | {
        "prompt": "winter, 1.2::snow::",
        "sampler": "k_euler_ancestral",
        "noise_schedule": "karras",
        "v4_prompt": {"caption": words, "use_coords": False, "use_order": True},
        "v4_negative_prompt": {"caption": {"base_caption": "bad", "char_captions": [child]}},
        "sm": None,
        "skip_cfg_above_sigma": 58.0,
    }

    found = imported(
        Software="NovelAI",
        Source="NovelAI Diffusion V4.5 4BDE2A90",
        Comment=json.dumps(comment),
    )

    assert found.request.prompt == "winter, 1.2::snow::, girl"
    assert found.request.negative_prompt == "bad, child"
    assert {"import_weights", "import_schedule", "import_extras"} <= codes(found)


def test_the_first_novelai_wrote_a_strength_without_a_picture() -> None:
    """Its default stood in every comment, so it says nothing of a first picture."""
    comment = {"steps": 28, "sampler": "k_euler_ancestral", "seed": 7, "strength": 0.69}
    comment |= {"noise": 0.667, "scale": 12.0, "uc": "lowres"}

    found = imported(Software="NovelAI", Description="a fox", Comment=json.dumps(comment))

    assert found.request.prompt == "a fox"
    assert "import_first_picture" not in codes(found)
    again = comment | {"request_type": "Img2ImgRequest"}
    drawn = imported(Software="NovelAI", Description="a fox", Comment=json.dumps(again))
    assert "import_first_picture" in codes(drawn)


def test_swarmui_may_write_numbers_as_texts() -> None:
    """Its format promises no types: texts with decimals are numbers too."""
    changed = {key: str(value) for key, value in SWARM_PARAMS.items()}
    changed |= {"steps": "20.0", "loras": "fox_style,more/hares", "seed": "1812281846"}

    found = imported(parameters=json.dumps({"sui_image_params": changed}))

    assert found.request.num_inference_steps == 20
    assert found.request.seeds == (1812281846,)
    assert found.request.noise_mix == (NoiseShare(seed=3, weight=0.25),)
    assert "more/hares" in str(found.notice)


def test_a_picture_that_says_nothing_has_no_recipe() -> None:
    """A photograph, or words that are no settings, are no import."""
    for texts in ({}, {"parameters": "just words"}, {"Software": "GIMP"}, {"Comment": "hello"}):
        with pytest.raises(PictureError) as caught:
            imported(**texts)
        assert caught.value.code == "picture_without_recipe"


def test_a_workflow_without_its_values_says_so() -> None:
    """ComfyUI's picture of the graph alone does not hold what was run."""
    with pytest.raises(PictureError, match="without the values"):
        imported(workflow="{}")


def test_a_model_gets_only_what_it_can_paint() -> None:
    """Size, sampler and steps are fitted to the model, and each change is said."""
    found = to_imported(
        Found(tool="X", prompt="fox", seed=1, width=511, height=30, steps=99, sampler="heun")
    )
    card = FAKE_CARD

    fitted = fit(found, card)

    assert (fitted.request.width, fitted.request.height) == (512, 32)
    assert fitted.request.scheduler is None
    assert {"import_size", "import_sampler"} <= codes(fitted)
    assert resolve(fitted.request, card)


def test_text_that_a_prompt_cannot_hold_is_left_out() -> None:
    """A NUL or 6,000 letters become what a prompt can hold, and it is said."""
    found = to_imported(Found(tool="X", prompt="a\0b" + "c" * 6000))

    assert found.request.prompt == "ab" + "c" * 4998
    assert "import_text" in codes(found)
