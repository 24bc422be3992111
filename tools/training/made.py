"""What the denoiser makes of known words and noise, for the decoder's last lesson.

A picture is a function of its words and of the twelve numbers in the noise. So for all that the
denoiser makes, the wanted picture can be drawn, and the decoder can learn to make it of what the
denoiser really gives, mistakes included: it repairs edges that the latents have only nearly right.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from tools.training.coupling import write_normals
from tools.training.dataset import draw_many
from tools.training.declared import DEFAULTS
from tools.training.latents import LATENT_CHANNELS, LATENT_PX
from tools.training.networks import make_scheduler
from tools.training.polish import chosen_wording, load_networks
from tools.training.rollout import sampler_steps
from tools.training.tokenizer import to_ids, tokenizer
from tools.training.words import caption, plain_caption


class Maker:
    """The denoiser that would ship now, and its sampler."""

    def __init__(self, num_steps: int = DEFAULTS["num_inference_steps"]) -> None:
        self.model, self.words, scheduler = load_networks(), tokenizer(), make_scheduler()
        scheduler.set_timesteps(num_steps)
        self.steps = sampler_steps(scheduler, [int(time) for time in scheduler.timesteps])

    @torch.no_grad()
    def make(self, seed: list[int], count: int) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Drawings, and the latents that the denoiser makes of their words and numbers.

        Returns:
            Pictures `(count, 256, 256, 3)` and latents `(count, 24, 16, 16)`.
        """
        rng = np.random.default_rng([*seed, 1])
        pictures, normals, wordings = draw_many(seed, count, chosen_wording)
        said = [plain_caption(w) if rng.random() < 0.5 else caption(w, rng) for w in wordings]
        generator = torch.Generator().manual_seed(int(rng.integers(2**32)))
        shape = (count, LATENT_CHANNELS, LATENT_PX, LATENT_PX)
        noise = torch.randn(shape, generator=generator)
        return pictures, self.walk(write_normals(noise, torch.from_numpy(normals)), said).numpy()

    @torch.no_grad()
    def walk(self, state: torch.Tensor, captions: list[str]) -> torch.Tensor:
        """The latents that the sampler comes to from noise, both of shape `(N, 24, 16, 16)`."""
        ids = torch.tensor(to_ids(self.words, captions))
        for step in self.steps:
            velocity = self.model(state, torch.full((len(state),), step.time), ids)
            state = step.next_state(state, velocity)
        return state
