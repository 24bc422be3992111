"""Pictures from the pipeline, in batches, one fresh generator for each."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from diffusers import DiffusionPipeline
from numpy.typing import NDArray

BATCH = 8


class Sampler:
    """A pipeline with its settings."""

    def __init__(
        self, pipeline: DiffusionPipeline, num_inference_steps: int, guidance_scale: float
    ) -> None:
        self.pipeline = pipeline
        self.num_inference_steps = num_inference_steps
        self.guidance_scale = guidance_scale
        pipeline.set_progress_bar_config(disable=True)

    def pictures(self, prompts: list[str], seeds: list[int]) -> NDArray[np.uint8]:
        """One picture for each prompt and seed.

        Returns:
            Shape `(N, 256, 256, 3)`, uint8.
        """
        made = []
        for start in range(0, len(prompts), BATCH):
            part = slice(start, start + BATCH)
            generators = [torch.Generator().manual_seed(seed) for seed in seeds[part]]
            output = self.pipeline(
                prompts[part],
                generator=generators,
                num_inference_steps=self.num_inference_steps,
                guidance_scale=self.guidance_scale,
                output_type="np",
            )
            made.append(np.round(output.images * 255).astype(np.uint8))
        return np.concatenate(made)


def bundled_sampler(folder: Path) -> Sampler:
    """The exported model with the defaults that it ships with."""
    defaults = json.loads((folder / "seedgrid.json").read_text())["defaults"]
    pipeline = DiffusionPipeline.from_pretrained(str(folder))
    return Sampler(pipeline, defaults["num_inference_steps"], defaults["guidance_scale"])
