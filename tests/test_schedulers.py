"""Schedulers by name: every name makes a working scheduler, and a new one each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seedgrid.models.families import FAMILIES
from seedgrid.models.schedulers import TABLE, make_scheduler, names_for, own_name

CONFIG: dict[str, Any] = {"num_train_timesteps": 1000, "prediction_type": "epsilon"}
SD = FAMILIES["StableDiffusionPipeline"]
FLUX = FAMILIES["FluxPipeline"]


@pytest.mark.parametrize("name", TABLE)
def test_every_name_makes_the_class_it_names(name: str) -> None:
    """The table's classes exist in this diffusers, and take what the table sets."""
    scheduler = make_scheduler(name, CONFIG)
    assert type(scheduler).__name__ == TABLE[name].scheduler_class
    for key, value in TABLE[name].changes.items():
        assert scheduler.config[key] == value


@pytest.mark.parametrize("name", TABLE)
def test_each_call_gets_a_scheduler_of_its_own(name: str) -> None:
    """Schedulers keep what the last steps gave, which must not reach the next call."""
    assert make_scheduler(name, CONFIG) is not make_scheduler(name, CONFIG)


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({"_class_name": "PNDMScheduler", "skip_prk_steps": True}, "PNDM"),
        ({"_class_name": "DPMSolverMultistepScheduler"}, "DPM++ 2M"),
        (
            {"_class_name": "DPMSolverMultistepScheduler", "use_karras_sigmas": True},
            "DPM++ 2M Karras",
        ),
        (
            {"_class_name": "DPMSolverMultistepScheduler", "algorithm_type": "sde-dpmsolver++"},
            "DPM++ 2M SDE",
        ),
        ({"_class_name": "EulerAncestralDiscreteScheduler"}, "Euler a"),
        ({"_class_name": "DPMSolverSDEScheduler"}, "DDIM"),
        ({}, "DDIM"),
    ],
)
def test_a_models_own_scheduler_is_recognised(config: dict[str, Any], name: str) -> None:
    """The one it was published with, or the plainest that fits if that is not on offer."""
    assert own_name(SD, config) == name


def test_a_flow_is_recognised() -> None:
    """One class serves two kinds of models; its configuration tells which."""
    config = {
        "_class_name": "DPMSolverMultistepScheduler",
        "use_flow_sigmas": True,
        "prediction_type": "flow_prediction",
    }
    assert own_name(FLUX, config) == "Flow DPM++ 2M"


def test_only_what_fits_a_family_is_offered() -> None:
    """A flow has no use for DDIM, nor Stable Diffusion for a flow's Euler."""
    assert "DDIM" in names_for("noise")
    assert "Flow Euler" not in names_for("noise")
    assert "DDIM" not in names_for("flow")
    assert names_for("consistency") == ("LCM",)


def test_schedulers_that_ignore_generators_are_not_offered() -> None:
    """Their noise would not be the picture's own."""
    assert "DPMSolverSDEScheduler" not in {entry.scheduler_class for entry in TABLE.values()}


def test_the_table_in_the_docs_is_of_this_table() -> None:
    """A scheduler that is added must be proven too: `python -m tools.prove` writes the page."""
    page = (Path(__file__).parents[1] / "docs" / "schedulers.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.split("\n") if line.startswith("| ")]
    assert [row[0] for row in rows[1:]] == list(TABLE)
    assert {cell for row in rows[1:] for cell in row[1:]} == {"4", "·"}
