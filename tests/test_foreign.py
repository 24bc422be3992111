"""Other tools' pictures become requests, with an honest sentence about what cannot come along."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from foreign_files import FOOOCUS, INVOKE, NOVELAI, SWARM, SWARM_PARAMS, asked, codes, imported
from hypothesis import given
from hypothesis import strategies as st
from refusing import refused

from seedgrid.core.errors import PictureError
from seedgrid.core.recipe import NoiseShare
from seedgrid.core.request import Request, resolve
from seedgrid.formats.importers.foreign import ForeignSettings
from seedgrid.formats.importers.imported import OUR_NAMES, fit, to_imported
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

SETTINGS = "Steps: 20, Sampler: Euler, CFG scale: 7, Seed: 1, Size: 512x512"


@pytest.mark.parametrize(
    ("prompt", "painted", "hold"),
    [
        ("[a fox:a fox at night:0.4]", "a fox", "0.4"),
        ("[a fox:a fox at night:8]", "a fox", "0.4"),
        ("[a fox:a fox at night:0.99]", None, None),
        ("[a [red:blue:2] fox:a fox at night:0.4]", None, None),
        ("in snow, [a fox:a fox at night:0.4]", None, None),
    ],
)
def test_words_that_change_are_held(prompt: str, painted: str | None, hold: str | None) -> None:
    """Around a whole prompt, one level: the first words are painted, and the rest is told."""
    found = imported(parameters=f"{prompt}\n{SETTINGS}")
    assert found.request.prompt == (painted or prompt)
    reasons = [each for each in found.reasons if each.code == "import_hold"]
    told = [(each.data["words"], each.data["hold"]) for each in reasons]
    assert told == ([("a fox at night", hold)] if hold else [])
    assert ("import_weights" in codes(found)) == (hold is None)


def test_automatic1111() -> None:
    """All that has an equal comes along; what has none is said in one sentence, by its name."""
    found = imported(parameters=A1111)
    assert found.tool == "AUTOMATIC1111"
    assert found.request == asked(
        "masterpiece, (best quality:1.2), a red fox \nin the snow",
        "lowres, bad anatomy,\nblurry",
        3141592653,
        "512x768",
        28,
        7.5,
        scheduler="DPM++ 2M Karras",
        weights=True,
    )
    lost = {"import_loras", "import_extras", "import_model", "import_noise", "import_arithmetic"}
    assert codes(found) == lost
    sentence = str(found.notice)
    assert sentence.startswith("From AUTOMATIC1111")
    assert sentence.count(". ") == 0
    for part in ("foxes_v2", "Clip skip", "v1-5-pruned-emaonly", "noise is drawn elsewhere"):
        assert part in sentence


@pytest.mark.parametrize(
    ("settings", "scheduler"),
    [
        ("Sampler: DPM++ 2M Karras", "DPM++ 2M Karras"),
        ("Sampler: DPM++ 2M, Schedule type: Automatic", "DPM++ 2M Karras"),
        ("Sampler: DPM++ 2M, Schedule type: SGM Uniform", "DPM++ 2M"),
        ("Sampler: PLMS", "PNDM"),
        ("Sampler: Restart", None),
    ],
)
def test_samplers_of_automatic1111(settings: str, scheduler: str | None) -> None:
    """Each name of a sampler becomes ours, or is honestly left to the model."""
    found = imported(parameters=f"fox\nSteps: 20, {settings}, Seed: 1, Size: 512x512")
    assert found.request.scheduler == scheduler
    assert ("import_sampler" in codes(found)) == (scheduler is None)
    assert ("import_schedule" in codes(found)) == ("SGM" in settings)


def test_every_sampler_we_name_is_one_we_have() -> None:
    """The table of other tools' names leads only to schedulers of the backend."""
    assert set(OUR_NAMES.values()) <= set(TABLE)


SD_NEXT = "App: SD.Next, Version: 8b73cb6, Operations: txt2img"
FORGE = "Version: f2.0.1v1.10.1-previous-659"
FOOOCUS_WORDS = (
    "cinematic still a red fox\nNegative prompt: anime\n"
    "Steps: 30, Sampler: DPM++ 2M SDE Karras, Seed: 6431463018164675, Size: 1152x896, "
    'CFG scale: 4.0, Sharpness: 2.0, ADM Guidance: "(1.5, 0.8, 0.3)", Scheduler: karras, '
    'Lora hashes: "offset_example: 4852686128", Version: Fooocus v2.5.5'
)


@pytest.mark.parametrize(
    ("text", "tool", "expected", "said"),
    [
        (
            f"fox\n{SETTINGS}, Variation seed: 99, Variation seed strength: 0.15, RNG: CPU",
            "AUTOMATIC1111",
            {"noise_mix": (NoiseShare(seed=99, weight=0.15),)},
            "",
        ),
        (
            "a fox, Steps: many, Seed: of a pine\nratio 16:9\n" + SETTINGS,
            "AUTOMATIC1111",
            {"prompt": "a fox, Steps: many, Seed: of a pine\nratio 16:9", "seeds": (1,)},
            "",
        ),
        (
            "fox\nSteps: 20, Seed: 1, Size: 1024x1536, Model hash: 7460a6fa, "
            "Denoising strength: 0.7, First pass size: 512x768",
            "AUTOMATIC1111",
            {"width": 512, "height": 768},
            "second pass",
        ),
        (
            f"fox\n{SETTINGS.replace('CFG scale: 7', 'CFG scale: 2.5')}, "
            f"Distilled CFG Scale: 3.5, {FORGE}",
            "Forge",
            {"guidance_scale": 3.5},
            "beside the distilled one",
        ),
        (
            "girl <lora:outline:3.0>\nNegative prompt: low quality\nSteps: 20, Size: 1312x1408, "
            f"Seed: 1561296656, CFG scale: 6, {SD_NEXT}, LoRA networks: outline",
            "SD.Next",
            {"prompt": "girl", "width": 1312, "scheduler": None},
            "outline",
        ),
        (
            "fox\nSteps: 20, Seed: 7, Sampler: DPM++ 2M, CFG scale: 6, Size: 512x512, "
            f"{SD_NEXT}, Variation seed: 99, Variation strength: 0.25, Sampler sigma: karras",
            "SD.Next",
            {"noise_mix": (NoiseShare(seed=99, weight=0.25),), "scheduler": "DPM++ 2M Karras"},
            "",
        ),
        (f"fox\n{SETTINGS}, Version: ComfyUI", "ComfyUI", {}, ""),
        (
            FOOOCUS_WORDS,
            "Fooocus",
            {"seeds": (6431463018164675 % 2**32,), "scheduler": "DPM++ 2M SDE Karras"},
            "offset_example",
        ),
    ],
)
def test_who_else_writes_parameters(
    text: str, tool: str, expected: dict[str, Any], said: str
) -> None:
    """Forge, SD.Next, Fooocus and older releases: each in its own spelling."""
    found = imported(parameters=text)
    assert found.tool == tool
    assert {name: getattr(found.request, name) for name in expected} == expected
    assert said in str(found.notice)


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ("Denoising strength: 0.7, Hires upscale: 2, Hires upscaler: Latent", "import_second_pass"),
        ("Denoising strength: 0.7", "import_first_picture"),
        ('ControlNet 0: "Module: canny, Model: x [1]"', "import_extras"),
        ("Seed: -1", "import_seed_missing"),
        ("Seed: 4294967303", "import_seed"),
        ("Steps: 500", "import_number"),
    ],
)
def test_what_cannot_come_along_is_named(settings: str, code: str) -> None:
    """Second passes, first pictures, networks and values out of range each have their words."""
    found = imported(parameters=f"fox\n{SETTINGS}, {settings}")
    assert code in codes(found)
    if code == "import_seed":  # Torch draws from the low 32 bits.
        assert found.request.seeds == (7,)


@pytest.mark.parametrize(
    ("words", "are_weighted", "is_said"),
    [
        ("((eyeshadow)), a fox", True, False),
        ("a \\(red\\) fox", False, False),
        ("a fox AND a hare", False, True),
        ("a [fox:hare:0.5]", False, True),
        ("a cat :(\nNegative prompt: ugly :)", False, False),
    ],
)
def test_marks_of_weight_in_automatic1111(words: str, are_weighted: bool, is_said: bool) -> None:
    """Brackets weigh words here too; parts and words that change cannot come along."""
    found = imported(parameters=f"{words}\n{SETTINGS}")
    assert found.request.weights == are_weighted
    assert ("import_weights" in codes(found)) == is_said
    other = fit(found, replace(FAKE_CARD, has_weights=False))
    assert not other.request.weights
    assert ("import_weights" in codes(other)) == (are_weighted or is_said)


@given(
    st.lists(
        st.builds(NoiseShare, seed=st.integers(0, 2**32 - 1), weight=st.floats(1e-9, 1)), max_size=5
    )
)
def test_our_own_parameters_come_back(mix: list[NoiseShare]) -> None:
    """A picture of ours that lost its recipe but kept `parameters` gives the same request."""
    words = {"prompt": "a fox,\nrunning", "negative_prompt": "blur: yes"}
    (recipe,) = resolve(Request(**words, seeds=(11,), noise_mix=tuple(mix)), FAKE_CARD)
    found = imported(parameters=parameters_text(recipe))
    assert found.tool == "SeedGrid"
    assert "import_noise" not in codes(found)
    assert resolve(found.request, FAKE_CARD) == (recipe,)


def test_invokeai() -> None:
    """InvokeAI draws the first noise on the CPU too; its model is named."""
    found = imported(invokeai_metadata=json.dumps(INVOKE))
    assert found.tool == "InvokeAI"
    assert found.request == asked(
        "a red fox", "blurry", 1234567890, "768x512", 30, 6.5, scheduler="DPM++ 2M Karras"
    )
    assert codes(found) == {"import_model", "import_arithmetic"}
    assert "Dreamshaper 8" in str(found.notice)


LAYERS = {"controlLayers": [], "inpaintMasks": [], "regionalGuidance": [{"id": "a"}]}


@pytest.mark.parametrize(
    ("changes", "expected", "said"),
    [
        (
            {
                "model": {"model_name": "stable-diffusion-v1-5"},
                "loras": [{"lora": {"model_name": "LowRA"}, "weight": 0.5}],
            },
            {},
            ("LowRA", "stable-diffusion-v1-5"),
        ),
        (
            {"generation_mode": "img2img", "rand_device": "cuda"},
            {},
            ("made from another picture", "noise is drawn elsewhere"),
        ),
        (
            {"scheduler": "euler_k", "canvas_v2_metadata": LAYERS},
            {"scheduler": "Euler"},
            ("regional guidance", "noise levels"),  # Its Euler on Karras' levels is not ours.
        ),
        (
            {"guidance": 4, "cfg_scale": 1, "negative_prompt": None, "seed": 2**32 - 1},
            {"guidance_scale": 4.0, "negative_prompt": "", "seeds": (2**32 - 1,)},
            (),
        ),
    ],
    ids=["version 3", "from a picture", "version 5", "Flux"],
)
def test_invokeai_of_other_versions(
    changes: dict[str, Any], expected: dict[str, Any], said: tuple[str, ...]
) -> None:
    """LoRAs, canvases and other models' guidance, as each version names them."""
    found = imported(invokeai_metadata=json.dumps(INVOKE | changes))
    assert {name: getattr(found.request, name) for name in expected} == expected
    assert all(words in str(found.notice) for words in said)


@pytest.mark.parametrize("metadata", [{}, {"invokeai_metadata": "null"}])
def test_an_invokeai_workflow_without_settings_says_so(metadata: dict[str, str]) -> None:
    """The workflow editor may save a picture without the values of its run."""
    with pytest.raises(PictureError, match="without the settings"):
        imported(invokeai_workflow="{}", **metadata)


def test_swarmui() -> None:
    """SwarmUI writes JSON under A1111's key; its variation seed is a noise mix."""
    found = imported(parameters=json.dumps(SWARM, indent=2))
    assert found.tool == "SwarmUI"
    expected = asked(
        "a red fox",
        "blurry",
        1812281846,
        "1024x1024",
        20,
        7.0,
        scheduler="Euler a",
        noise_mix=(NoiseShare(seed=3, weight=0.25),),
    )
    assert found.request == expected
    assert codes(found) == {"import_loras", "import_model", "import_arithmetic"}
    # Its format promises no types: texts with decimals are numbers too.
    texts = {key: str(value) for key, value in SWARM_PARAMS.items()}
    texts |= {"steps": "20.0", "loras": "fox_style,more/hares"}
    again = imported(parameters=json.dumps({"sui_image_params": texts}))
    assert again.request == expected
    assert "more/hares" in str(again.notice)


def test_swarmui_with_comfyui_names_and_flux() -> None:
    """Its sampler may be ComfyUI's, and Flux has a guidance of its own."""
    changed = SWARM_PARAMS | {"fluxguidancescale": 3.5, "cfgscale": 1}
    changed |= {"sampler": "", "scheduler": ""}
    changed |= {"comfyuisampler": "dpmpp_2m", "comfyuischeduler": "karras"}
    found = imported(parameters=json.dumps({"sui_image_params": changed})).request
    assert (found.guidance_scale, found.scheduler) == (3.5, "DPM++ 2M Karras")


def test_fooocus() -> None:
    """Fooocus's own scheme; its styles, its prompt expansion and its LoRAs are named."""
    data = FOOOCUS | {"lora_combined_2": "True : foxes : 0.5"}  # As version 2.4 writes them.
    found = imported(parameters=json.dumps(data), fooocus_scheme="fooocus")
    assert found.tool == "Fooocus"
    assert found.request == asked(
        "a red fox",
        "blurry",
        7427598543437316352 % 2**32,
        "1152x896",
        30,
        4.0,
        scheduler="DPM++ 2M SDE Karras",
    )
    assert {"import_seed", "import_loras", "import_extras"} <= codes(found)
    assert "styles" in str(found.notice)
    assert found.loras == ("sd_xl_offset_example-lora_1.0.safetensors", "foxes")


def test_novelai() -> None:
    """NovelAI keeps its settings in `Comment`; its model runs nowhere else, and it says so."""
    found = imported(
        Software="NovelAI",
        Source="NovelAI Diffusion V3 C1E1DE52",
        Description=NOVELAI["prompt"],
        Comment=json.dumps(NOVELAI),
    )
    assert found.tool == "NovelAI"
    assert found.request == asked(
        "{masterpiece}, 1girl, red fox",
        "lowres",
        3509481094,
        "832x1216",
        28,
        5.0,
        scheduler="DPM++ 2M Karras",
    )
    assert codes(found) == {"import_weights", "import_model", "import_noise", "import_arithmetic"}


def test_novelai_4_and_its_characters() -> None:
    """Both captions have characters; empty ones leave no comma behind."""
    girl = {"char_caption": "girl", "centers": [{"x": 0.5, "y": 0.5}]}
    words = {"base_caption": "winter, 1.2::snow::", "char_captions": [girl, {"char_caption": ""}]}
    child = {"char_caption": "child", "centers": []}
    comment = NOVELAI | {
        "sampler": "k_euler_ancestral",
        "v4_prompt": {"caption": words},
        "v4_negative_prompt": {"caption": {"base_caption": "bad", "char_captions": [child]}},
        "skip_cfg_above_sigma": 58.0,
    }
    found = imported(Software="NovelAI", Comment=json.dumps(comment))
    assert found.request.prompt == "winter, 1.2::snow::, girl"
    assert found.request.negative_prompt == "bad, child"
    assert {"import_weights", "import_schedule", "import_extras"} <= codes(found)


def test_a_picture_that_says_nothing_has_no_recipe() -> None:
    """A photograph, or words that are no settings, are no import."""
    for texts in ({}, {"parameters": "just words"}, {"Software": "GIMP"}, {"Comment": "hello"}):
        with refused(PictureError, "picture_without_recipe"):
            imported(**texts)


def test_settings_beyond_256_kb_are_refused_and_other_texts_left_alone() -> None:
    """The sentence names the text; a long workflow, or a comment, hinders nobody."""
    with pytest.raises(PictureError, match="parameters"):
        imported(parameters=f"{'fox ' * 70_000}\n{SETTINGS}")
    found = imported(workflow="x" * 300_000, parameters=f"fox\n{SETTINGS}")
    assert found.request.prompt == "fox"


def test_a_model_gets_only_what_it_can_paint() -> None:
    """Size, sampler and steps are fitted to the model, and each change is said."""
    found = to_imported(
        ForeignSettings(
            tool="X", prompt="fox", seed=1, width=511, height=30, steps=99, sampler="heun"
        )
    )
    fitted = fit(found, FAKE_CARD)
    assert (fitted.request.width, fitted.request.height) == (512, 32)
    assert fitted.request.scheduler is None
    assert {"import_size", "import_sampler"} <= codes(fitted)
    assert resolve(fitted.request, FAKE_CARD)
