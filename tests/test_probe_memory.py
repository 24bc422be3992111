"""What is remembered of a probe, under what, and what is said of a picture then."""

from __future__ import annotations

import pytest
from pictures import make_recipe
from reports import report_for

from seedgrid.core.recipe import Lora, NoiseShare, Passport, Upscaler
from seedgrid.diffusion.probe_results import (
    advised_width,
    keep_report,
    lock_notice,
    newest_report,
    recall_report,
    record_width,
)

PASSPORT = Passport(seedgrid="0.1.0", torch="2.13.0", device="cpu", threads=2)
RECIPE = make_recipe()
OTHER = RECIPE.model.model_copy(update={"weights_sha256": "c" * 64})
LORA = Lora(id="fox", weights_sha256="a" * 64, scale=0.5)

pytestmark = pytest.mark.usefixtures("forgetful")


@pytest.mark.parametrize(
    "changes",
    [
        {"model": OTHER},
        {"dtype": "bfloat16"},
        {"width": 72},
        {"height": 56},
        {"scheduler": "Euler"},
        {"lock_width": 2},
        {"determinism": "seeded"},
        {"guidance_scale": 1.0},
        {"weights": True},
        {"start": "b" * 64, "strength": 0.5},
        {"loras": (LORA,)},
        {"loras": (LORA.model_copy(update={"weights_sha256": "b" * 64}),)},
        {"loras": (LORA, LORA.model_copy(update={"id": "other", "weights_sha256": "d" * 64}))},
    ],
    ids=lambda changes: " ".join(changes),
)
def test_whatever_changes_shapes_or_code_is_a_test_of_its_own(changes: dict[str, object]) -> None:
    """The model, its LoRAs, the size, the width, the format, the scheduler, guidance on or off."""
    keep_report(RECIPE, PASSPORT, report_for(RECIPE, tested=4))
    assert recall_report(RECIPE.replace(**changes), PASSPORT) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt": "two foxes", "negative_prompt": "blurry"},
        {"seed": 99, "noise_mix": (NoiseShare(seed=3, weight=0.1),)},
        {"guidance_scale": 3.0},
        {"num_inference_steps": 9},
    ],
    ids=lambda changes: " ".join(changes),
)
def test_words_seeds_steps_and_scales_need_no_test_of_their_own(changes: dict[str, object]) -> None:
    """They change neither the shapes nor the code."""
    keep_report(RECIPE, PASSPORT, report_for(RECIPE, tested=4))
    found = recall_report(RECIPE.replace(**changes), PASSPORT)
    assert found is not None
    assert (found.remembered, found.tested_width) == (True, 4)


def test_the_newest_report_of_a_model_is_of_its_batches() -> None:
    """By when it was tested; one of a batch of one tells nothing, nor does another model's."""
    assert newest_report(RECIPE.model.weights_sha256) is None
    for scheduler, day, width in (
        ("DDIM", 20, 4),
        ("Euler", 23, 2),
        ("Heun", 21, 4),
        ("PNDM", 24, 1),
    ):
        recipe = RECIPE.replace(scheduler=scheduler, lock_width=width)
        report = report_for(recipe, tested=width)
        at = {"tested_at": f"2026-11-{day}T12:00:00+00:00"}
        keep_report(recipe, PASSPORT, report.model_copy(update=at))
    newest = newest_report(RECIPE.model.weights_sha256)
    assert newest is not None
    assert newest.scheduler == "Euler"
    assert newest_report("e" * 64) is None


@pytest.mark.parametrize(
    ("tested", "code"), [(None, "lock_untested"), (0, "lock_never"), (2, "lock_leaks"), (4, None)]
)
def test_what_is_said_of_a_picture_is_what_was_found(tested: int | None, code: str | None) -> None:
    """Nothing where no leak was found."""
    if tested is not None:
        keep_report(RECIPE, PASSPORT, report_for(RECIPE, tested=tested))
    notice = lock_notice(RECIPE, PASSPORT)
    assert (notice and notice.code) == code


def test_a_large_final_and_a_portable_picture_have_no_lock_to_test() -> None:
    """The one is made alone, the batch of the other cannot show."""
    large = RECIPE.replace(upscaler=Upscaler(id="up", weights_sha256="a" * 64), start="b" * 64)
    assert lock_notice(large, PASSPORT) is None
    assert lock_notice(RECIPE.replace(arithmetic="portable-1"), PASSPORT) is None


def test_a_narrower_width_is_offered_after_a_no_and_never_a_wider_one() -> None:
    """For that model in that number format; what does not even repeat is computed alone."""
    digest = RECIPE.model.weights_sha256
    record_width(RECIPE, report_for(RECIPE, tested=4))
    assert advised_width(digest, "float32", 4) == 4
    for tested, offered in ((2, 2), (3, 2), (1, 1)):
        record_width(RECIPE, report_for(RECIPE, tested=tested))
        assert advised_width(digest, "float32", 4) == offered
    assert advised_width(digest, "bfloat16", 4) == 4
    assert advised_width("e" * 64, "float32", 4) == 4
    never = RECIPE.replace(dtype="bfloat16")
    record_width(never, report_for(never, tested=0))
    assert advised_width(digest, "bfloat16", 4) == 1
