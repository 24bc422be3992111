"""The guide's own figures: google/ddpm-cifar10-32 through DDIM, two steps, seed 0.

The guide on reproducible pipelines adds up the absolute values of what comes out, shape (1, 32, 32,
3): 1491.1711 on a CPU, 1491.1713 on a GPU with a CPU generator, 1389.8634 on a GPU with a generator
of its own. A machine that gives one of the first two draws and computes as the guide did.

    check_reference(find("google/ddpm-cifar10-32"), pick_device("auto"))

Source: https://huggingface.co/docs/diffusers/using-diffusers/reusing_seeds
"""

from dataclasses import dataclass
from typing import Any, Final

import torch

from seedgrid.diffusion.determinism import determinism
from seedgrid.diffusion.generators import fresh_generators
from seedgrid.diffusion.pipeline_cache import quiet_diffusers
from seedgrid.models.registry import Model

HUB_ID: Final = "google/ddpm-cifar10-32"
CPU_FIGURE: Final = 1491.1711
GPU_FIGURE: Final = 1491.1713
TOLERANCE: Final = 0.01
"""Thirty times what other threads and instructions change; another noise changes a hundred."""

NUM_STEPS: Final = 2


@dataclass(frozen=True, kw_only=True)
class ReferenceCheck:
    """What came out, beside what the guide got.

    Attributes:
        figure: The sum of the absolute values, here.
        expected: The guide's, for this kind of device.
    """

    device: str
    figure: float
    expected: float
    tolerance: float = TOLERANCE

    @property
    def holds(self) -> bool:
        """Whether this machine agrees with the guide."""
        return abs(self.figure - self.expected) <= self.tolerance


def check_reference(model: Model, device: torch.device) -> ReferenceCheck:
    """Repeat the guide's example.

    Raises:
        ModelError: The model is damaged.
    """
    import diffusers

    files = model.files
    with quiet_diffusers(), determinism("strict"):
        pipeline = diffusers.DDIMPipeline.from_pretrained(
            files.folder, use_safetensors=True, local_files_only=True
        )
        pipeline.set_progress_bar_config(disable=True)
        figure = sum_of_absolute_values(pipeline.to(device))
    expected = CPU_FIGURE if device.type == "cpu" else GPU_FIGURE
    return ReferenceCheck(device=str(device), figure=round(figure, 4), expected=expected)


def sum_of_absolute_values(pipeline: Any) -> float:
    """Paint one picture of seed 0 in two steps and add up what comes out, as the guide does.

    Args:
        pipeline: A `DDIMPipeline`.

    Returns:
        The sum over (1, height, width, 3) values in 0 … 1.
    """
    (generator,) = fresh_generators((0,))
    image = pipeline(num_inference_steps=NUM_STEPS, output_type="np", generator=generator).images
    return float(abs(image).sum())
