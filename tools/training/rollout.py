"""The loss of polishing: on what the sampler really makes, step by step.

Ordinary training shows the denoiser true pictures under noise; the sampler shows it its own. Here
the states are the sampler's: each step starts from what the step before has made of the picture,
and each is asked for the true one, so later steps learn to mend what earlier ones did not know. The
loss is what is measured in the end: the mean of the pictures' PSNR, here at half size, and that of
their fine parts, which the eye looks at first. No gradient runs from step to step, so a state costs
what a picture costs in ordinary training.
Source: S. Ross et al. 2011, "A reduction of imitation learning and structured prediction to
no-regret online learning", arXiv:1011.0686 (learning on the states that one's own steps lead to).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from diffusers import DDIMScheduler

FLOOR = 1e-4
"""A squared error of pixels in -1..1, 46 dB: a picture that is this near teaches no more."""
FINE_WEIGHT = 2.0
"""Of the fine parts' decibels beside those of the picture, of which they are a fiftieth: a squared
error of the whole hardly tells an eye from none."""

Velocity = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""What a denoiser makes of states `(N, 24, 16, 16)`, times `(N,)` and token ids `(N, 40)`."""


@dataclass(frozen=True, kw_only=True)
class SamplerStep:
    """One step of the sampler, by its noise levels."""

    time: int
    signal: float
    noise: float
    next_signal: float
    next_noise: float

    def clean(self, state: torch.Tensor, velocity: torch.Tensor) -> torch.Tensor:
        """The picture's latents as a velocity tells them of a state, shape `(N, 24, 16, 16)`."""
        return self.signal * state - self.noise * velocity

    def next_state(self, state: torch.Tensor, velocity: torch.Tensor) -> torch.Tensor:
        """Where the next step starts, shape `(N, 24, 16, 16)`."""
        noise_left = self.noise * state + self.signal * velocity
        return self.next_signal * self.clean(state, velocity) + self.next_noise * noise_left


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


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """A batch: what the denoiser starts from, and what it shall make of it."""

    noise: torch.Tensor
    """Shape `(N, 24, 16, 16)`."""
    latents: torch.Tensor
    """The true pictures, shape `(N, 24, 16, 16)`."""
    ids: torch.Tensor
    """Shape `(N, 40)`."""
    has_words: torch.Tensor
    """Shape `(N,)`, bool."""
    fine: torch.Tensor
    """How much of each value of `to_pixels` lies on eyes, whiskers and the like, 0..1, shape
    `(N, 16, 16, 192)`."""


def learn_from_rollout(
    model: Velocity,
    teacher: Velocity,
    lesson: Lesson,
    steps: list[SamplerStep],
    to_pixels: torch.Tensor,
) -> torch.Tensor:
    """Sample along the steps and add the gradients of each.

    Args:
        model: its gradients are added to.
        teacher: the model as it was. An empty caption asks for what this makes of it: it says
            nothing of a picture, and guidance goes away from it, so it has to stay.
        lesson: the batch.
        steps: the sampler's.
        to_pixels: takes latents to pixels of the picture at half size, shape `(192, 24)`.

    Returns:
        The squared error of the pixels after each step, of the captions with words, shape
        `(steps,)`.
    """
    state, errors = lesson.noise, []
    for step in steps:
        velocity = _velocity(model, state, step, lesson.ids)
        clean = step.clean(state, velocity)
        wanted = _wanted(teacher, state, step, lesson)
        error = (clean - wanted).permute(0, 2, 3, 1) @ to_pixels.T  # (N, 16, 16, 192)
        decibels = (error.square().mean((1, 2, 3)) + FLOOR).log()  # (N,), but for a factor
        decibels = decibels + FINE_WEIGHT * _fine_decibels(error, lesson.fine)
        (decibels.mean() / len(steps)).backward()
        state = step.next_state(state, velocity.detach())
        errors.append(error.detach()[lesson.has_words].square().mean())
    return torch.stack(errors)


def _fine_decibels(error: torch.Tensor, fine: torch.Tensor) -> torch.Tensor:
    """The same of the fine parts alone, shape `(N,)`; nought where a picture has none."""
    area = fine.sum((1, 2, 3))
    mean = (error.square() * fine).sum((1, 2, 3)) / area.clamp(min=1)
    return torch.where(area > 0, (mean + FLOOR).log(), 0)


@torch.no_grad()
def _wanted(
    teacher: Velocity, state: torch.Tensor, step: SamplerStep, lesson: Lesson
) -> torch.Tensor:
    empty = ~lesson.has_words
    if not empty.any():
        return lesson.latents
    velocity = _velocity(teacher, state[empty], step, lesson.ids[empty])
    wanted = lesson.latents.clone()
    wanted[empty] = step.clean(state[empty], velocity)
    return wanted


def _velocity(
    model: Velocity, state: torch.Tensor, step: SamplerStep, ids: torch.Tensor
) -> torch.Tensor:
    # In float32, as the model ships: a leg in bfloat16 learns that format's rounding (diary.md).
    times = torch.full((len(state),), step.time, device=state.device)
    return model(state.contiguous(memory_format=torch.channels_last), times, ids)
