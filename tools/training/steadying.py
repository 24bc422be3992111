"""Take the chance out of the reading of a trained denoiser: the group norm in front of it.

The residual stream holds the twelve numbers exactly, each as the mean of a channel of its own. The
group norm before the first self-attention then takes off the mean of each group and divides by its
spread, and both differ from noise to noise: of a number's variance a four-hundredth is lost (R2
0.9977), which costs 0.8 dB of a picture at half size. Three changes to the weights keep it:

- In each group with numbers one direction of the other channels is made constant, so what the mean
  takes off can be put back by a linear reading. The direction is the one that matters least.
- A constant offset along another direction of these channels makes most of the spread, so the
  divisor is nearly the same for every noise; behind the block the offset is taken off again.
- The self-attention's output becomes the linear function of the twelve numbers that it was but for
  chance.

    python -m tools.training steady  # once, then: python -m tools.training polish
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from tools.training.coupling import read_normals
from tools.training.latents import LATENT_CHANNELS, LATENT_PX
from tools.training.networks import Denoiser
from tools.training.reading import (
    NUM_SAMPLES,
    RIDGE,
    least_squares,
    mean_features,
    read_exactly,
    watch,
)

OFFSET = 4.0
"""How long the offset is; a channel's own spread is about 0.3."""
LEAST_SHARE = 0.5
"""The least sum of a direction's entries, for a length of 1: the mean has to be seen by it."""
CONSTANT = 0.01
"""Below this share of the largest singular value a direction is constant but for rounding."""
NUM_STEPS = 110
BATCH = 12
LEARNING_RATE = 0.03


@dataclass(frozen=True, kw_only=True)
class Groups:
    """The channels of the groups that hold numbers, without those that hold them."""

    free: torch.Tensor
    """Shape `(groups, channels)`, 1 for a channel that holds no number."""
    width: int
    """Channels of one group."""

    @classmethod
    def of(cls, model: Denoiser) -> Groups:
        """Read off the weights: a number's channel has nothing from the block's branch."""
        block = model.unet.down_blocks[1]
        holds = ~block.resnets[0].conv2.weight.flatten(1).any(1)
        width = len(holds) // block.attentions[0].norm.num_groups
        rows = []
        for group in holds.unflatten(0, (-1, width)).any(1).nonzero().flatten().tolist():
            row = torch.zeros(len(holds))
            own = slice(group * width, (group + 1) * width)
            row[own] = (~holds[own]).float()
            rows.append(row)
        return cls(free=torch.stack(rows), width=width)


@dataclass(frozen=True, kw_only=True)
class Projection:
    """Makes `along @ channels` constant by moving the channels along `by`, one row each a group."""

    along: torch.Tensor
    by: torch.Tensor
    mean: torch.Tensor
    """Of the channels, shape `(channels,)`."""

    def matrix(self) -> torch.Tensor:
        """What is taken off, shape `(channels, channels)`, of channels about their mean."""
        return (self.by / (self.along * self.by).sum(1, keepdim=True)).T @ self.along

    def __call__(self, channels: torch.Tensor) -> torch.Tensor:
        """Channels `(N, channels, 8, 8)` without the directions."""
        return channels - torch.einsum(
            "ab,nbhw->nahw", self.matrix(), channels - self.mean[:, None, None]
        )


def is_steadied(model: Denoiser) -> bool:
    """Has this been done already: the first group's channels have a direction that is constant."""
    rows = model.unet.down_blocks[1].resnets[0].conv2.weight.flatten(1).detach()
    spreads = torch.linalg.svdvals(rows[Groups.of(model).free[0].bool()])
    return bool(spreads[-1] < CONSTANT * spreads[0])


def steady_reading(model: Denoiser, captions: torch.Tensor, generator: torch.Generator) -> None:
    """Let the first self-attention of a trained, sharpened denoiser read its numbers exactly.

    Args:
        model: its weights are changed, its pictures a little too: a few thousand pictures of
            polishing give that back.
        captions: token ids to find what matters least with, shape `(N, 40)`.
        generator: of the noise.
    """
    block = model.unet.down_blocks[1]
    resnet, first = block.resnets[0], block.attentions[0]
    attention = first.transformer_blocks[0].attn1
    noise = torch.randn(NUM_SAMPLES, LATENT_CHANNELS, LATENT_PX, LATENT_PX, generator=generator)
    groups, before = Groups.of(model), mean_features(model, attention, noise)
    divisors = _divisors(model, first.norm, noise)
    _fold(resnet, least_directions(model, resnet, groups, captions, generator))
    offset = _quiet_offset(watch(model, resnet, noise, lambda _, o: o.mean((2, 3))), resnet, groups)
    with torch.no_grad():
        resnet.conv2.bias.add_(offset)
        first.proj_out.bias.sub_(offset)
        now = _divisors(model, first.norm, noise).repeat_interleave(groups.width)
        first.norm.weight.mul_(now / divisors.repeat_interleave(groups.width))
        first.norm.bias.sub_(first.norm.weight * offset / now)
    effects = least_squares(read_normals(noise), before, RIDGE).T
    read_exactly(model, noise, effects, before.mean(0))


def least_directions(
    model: Denoiser,
    resnet: nn.Module,
    groups: Groups,
    captions: torch.Tensor,
    generator: torch.Generator,
) -> Projection:
    """One direction of each group without which the pictures differ least."""
    size = (256, LATENT_CHANNELS, LATENT_PX, LATENT_PX)
    channels = watch(model, resnet, torch.randn(size, generator=generator), lambda _, o: o)
    values = channels.transpose(0, 1).flatten(1)
    along = _of_least_variance(torch.cov(values), groups).requires_grad_()
    by = along.detach().clone().requires_grad_()
    optimizer = torch.optim.Adam([along, by])
    for step in range(NUM_STEPS):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - step / NUM_STEPS)
        projection = Projection(along=along * groups.free, by=by * groups.free, mean=values.mean(1))
        chosen = torch.randint(len(captions), (BATCH,), generator=generator)
        noise = torch.randn((BATCH, *size[1:]), generator=generator)
        given = noise, torch.full((BATCH,), 999), captions[chosen]
        with torch.no_grad():
            wanted = model(*given)
        hook = resnet.register_forward_hook(lambda _, __, made, moved=projection: moved(made))
        error = (model(*given) - wanted).square().mean()
        hook.remove()
        shares = projection.along.sum(1) / projection.along.norm(dim=1)
        loss = error / wanted.square().mean() + (LEAST_SHARE - shares).clamp(min=0).square().sum()
        for each, slope in zip((along, by), torch.autograd.grad(loss, (along, by)), strict=True):
            each.grad = slope
        optimizer.step()
    return Projection(
        along=(along * groups.free).detach(), by=(by * groups.free).detach(), mean=values.mean(1)
    )


def _of_least_variance(covariance: torch.Tensor, groups: Groups) -> torch.Tensor:
    """Of each group's free channels the direction of least variance that the mean is seen by."""
    rows = torch.zeros_like(groups.free)
    for row, free in zip(rows, groups.free.bool(), strict=True):
        directions = torch.linalg.eigh(covariance[free][:, free]).eigenvectors.T
        sums = directions.sum(1, keepdim=True)
        row[free] = (directions * sums.sign())[(sums.abs() > LEAST_SHARE).flatten()][0]
    return rows


@torch.no_grad()
def _fold(resnet: nn.Module, projection: Projection) -> None:
    """Write a projection of a block's output into its last weights."""
    taken = projection.matrix()
    for module in (resnet.conv_shortcut, resnet.conv2):
        module.weight.sub_(torch.einsum("ab,bcij->acij", taken, module.weight))
        module.bias.sub_(taken @ module.bias)
    resnet.conv2.bias.add_(taken @ projection.mean)


def _quiet_offset(means: torch.Tensor, resnet: nn.Module, groups: Groups) -> torch.Tensor:
    """In each group the direction whose mean differs least from noise to noise.

    It stands upright on the group's mean and on what was made constant, so it hides neither.
    """
    covariance, offset = torch.cov(means.T), torch.zeros(means.shape[1])
    rows = torch.cat([resnet.conv2.weight.flatten(1), resnet.conv_shortcut.weight.flatten(1)], 1)
    for free in groups.free.bool():
        constant = torch.linalg.svd(rows[free].detach()).U[:, -1]
        others = torch.linalg.svd(torch.stack([constant, torch.ones_like(constant)])).Vh[2:]
        within = others @ covariance[free][:, free] @ others.T
        offset[free] = OFFSET * torch.linalg.eigh(within).eigenvectors[:, 0] @ others
    return offset


def _divisors(model: Denoiser, norm: nn.GroupNorm, noise: torch.Tensor) -> torch.Tensor:
    """What a norm divides each group by, the harmonic mean over noises, shape `(groups,)`."""

    def spreads(given: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        grouped = given.reshape(len(given), norm.num_groups, -1)
        return grouped.var(-1, unbiased=False).add(norm.eps).rsqrt()

    return 1 / watch(model, norm, noise, spreads).mean(0)
