"""The loss of polishing: on what the sampler really makes, step by step.

Ordinary training shows the denoiser true pictures under noise; the sampler shows it its own. Here
the states are the sampler's: each step starts from what the step before has made of the picture,
and each is asked for the true one, so later steps learn to mend what earlier ones did not know. No
gradient runs from step to step, so a state costs what a picture costs in ordinary training.
Source: S. Ross et al. 2011, "A reduction of imitation learning and structured prediction to
no-regret online learning", arXiv:1011.0686 (learning on the states that one's own steps lead to).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from diffusers import DDIMScheduler

from training.networks import Denoiser

MAX_WEIGHT = 4.0


@dataclass(frozen=True, kw_only=True)
class SamplerStep:
    """One step of the sampler, by its noise levels."""

    time: int
    signal: float
    noise: float
    next_signal: float
    next_noise: float


def sampler_steps(scheduler: DDIMScheduler, times: list[int]) -> list[SamplerStep]:
    """The steps of the sampler that ships, through these times and to the picture."""
    kept = [float(scheduler.alphas_cumprod[time]) for time in times] + [1.0]
    return [
        SamplerStep(
            time=time,
            signal=kept[index] ** 0.5,
            noise=(1 - kept[index]) ** 0.5,
            next_signal=kept[index + 1] ** 0.5,
            next_noise=(1 - kept[index + 1]) ** 0.5,
        )
        for index, time in enumerate(times)
    ]


def learn_from_rollout(
    model: Denoiser,
    noise: torch.Tensor,
    latents: torch.Tensor,
    ids: torch.Tensor,
    steps: list[SamplerStep],
    channel_weights: torch.Tensor,
) -> torch.Tensor:
    """Sample along the steps and add the gradients of each.

    Args:
        model: its gradients are added to.
        noise: the start, shape `(N, 24, 16, 16)`.
        latents: the true pictures, shape `(N, 24, 16, 16)`.
        ids: shape `(N, 40)`.
        steps: the sampler's.
        channel_weights: how much an error in each latent channel matters, shape `(24,)`.

    Returns:
        The squared error of the clean latents after each step, shape `(steps, 24)`.
    """
    state, errors = noise, []
    for step in steps:
        times = torch.full((len(state),), step.time, device=state.device)
        with torch.autocast(state.device.type, torch.bfloat16):
            velocity = model(state.contiguous(memory_format=torch.channels_last), times, ids)
        velocity = velocity.float()
        clean = step.signal * state - step.noise * velocity
        error = (clean - latents).square().mean((0, 2, 3))  # (24,)
        weight = min(MAX_WEIGHT, step.noise**-2) / len(steps)
        (weight * (error * channel_weights).mean()).backward()
        with torch.no_grad():
            noise_left = step.noise * state + step.signal * velocity
            state = step.next_signal * clean + step.next_noise * noise_left
        errors.append(error.detach())
    return torch.stack(errors)
