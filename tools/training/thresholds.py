"""Let a number that chooses by its sign choose at once.

Three of the twelve numbers have a threshold at nought: which way the subject faces, on which side
the hills (or a window) are, and the layout. A trained denoiser turns such a threshold into a slope:
where the number is within 0.05 of nought, both choices are painted at once. Behind the first
self-attention the number is therefore pushed away from nought:

- Three pairs of channels are made equal, the pairs whose difference matters least, and the
  self-attention writes a number into the difference of each. A layer norm keeps the sign of that.
- Four hidden units of the feed-forward block add the push to what the self-attention says of the
  number: nothing beyond `REACH`, `PUSH` at nought, changing its sign within `RAMP`.

    python -m tools.training choose  # once, after steady; then: python -m tools.training polish
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from diffusers.models.attention import BasicTransformerBlock

from tools.training.coupling import read_normals
from tools.training.latents import LATENT_CHANNELS, LATENT_PX
from tools.training.networks import Denoiser
from tools.training.reading import (
    NUM_SAMPLES,
    RIDGE,
    block_of,
    least_squares,
    mean_features,
    read_exactly,
)

CHOOSING = (3, 8, 9)
"""Which numbers have a threshold: facing, hills, layout."""

PUSH = 0.1
REACH = 0.25
RAMP = 0.004
"""The chance that is left in the reading of a number near nought is 0.002."""

STEEPNESS = 3.0
"""What a gate is given at the end of the ramp: from there on GELU is a straight line."""
BATCH = 12

Pairs = list[tuple[int, int]]
"""For each of `CHOOSING` two channels of the width of 128."""


class _Watched(NamedTuple):
    """What a number of pictures had behind the self-attention, of a width of 128 channels."""

    states: torch.Tensor
    """Shape `(N, 64, 128)`."""
    matters: torch.Tensor
    """How much a picture would change without the difference of two channels, `(128, 128)`."""
    hidden: torch.Tensor
    """The feed-forward block's hidden units, shape `(N, 64, 512)`."""


def has_thresholds(model: Denoiser) -> bool:
    """Has this been done already: some channels in front of the self-attention are equal."""
    rows = model.unet.down_blocks[1].attentions[0].proj_in.weight.flatten(1)
    return len(rows.unique(dim=0)) < len(rows)


def freeze_thresholds(model: Denoiser) -> None:
    """Keep a training from changing what the thresholds need; the rest learns to use them."""
    block = block_of(model)
    for part in (block.attn2.to_out, block.norm3, block.ff):
        part.requires_grad_(False)


def sharpen_thresholds(model: Denoiser, captions: torch.Tensor, generator: torch.Generator) -> None:
    """Push the numbers that choose away from nought.

    Args:
        model: trained, its reading sharpened and steadied. Its pictures change a little: a few
            thousand pictures of polishing give that back.
        captions: token ids to find what matters least with, shape `(N, 40)`.
        generator: of the noise.
    """
    size = (NUM_SAMPLES, LATENT_CHANNELS, LATENT_PX, LATENT_PX)
    noise = torch.randn(size, generator=generator)
    watched = _watch(model, noise, captions, generator)
    pairs = _quietest_pairs(watched.matters)
    spread = float(watched.states.std(-1).mean())
    effects = _write_numbers(model, noise, pairs, spread)
    _keep_means(model, watched.states.mean((0, 1)), pairs, spread)
    _add_push(block_of(model), watched.hidden, pairs, effects)


def _watch(
    model: Denoiser, noise: torch.Tensor, captions: torch.Tensor, generator: torch.Generator
) -> _Watched:
    """Follow pictures of some captions, and what they would change by, to first order."""
    block, states, hidden = block_of(model), [], []
    matters = torch.zeros(())

    def keep(_module: object, given: tuple[torch.Tensor, ...]) -> None:
        states.append(given[0].requires_grad_())

    hooks = (
        block.norm3.register_forward_pre_hook(keep),
        block.ff.net[2].register_forward_pre_hook(lambda _, given: hidden.append(given[0])),
    )
    for ids, given in zip(captions.split(BATCH), noise.split(BATCH), strict=False):
        made = model(given, torch.full((len(given),), 999), ids)
        weights = torch.randn(made.shape, generator=generator)
        (slopes,) = torch.autograd.grad((made * weights).sum(), states[-1])
        states[-1], hidden[-1] = states[-1].detach(), hidden[-1].detach()
        about = states[-1] - states[-1].mean((0, 1))
        moved = torch.einsum("npi,npj->nij", slopes, about)
        own = moved.diagonal(dim1=1, dim2=2)
        change = own[:, :, None] + own[:, None, :] - moved - moved.mT
        matters = matters + change.square().sum(0)
    for hook in hooks:
        hook.remove()
    return _Watched(torch.cat(states), matters, torch.cat(hidden))


def _quietest_pairs(matters: torch.Tensor) -> Pairs:
    """The pairs of channels whose difference matters least, no channel twice."""
    left, pairs = matters.clone().fill_diagonal_(torch.inf), []
    for _ in CHOOSING:
        up, down = divmod(int(left.argmin()), len(left))
        pairs.append((up, down))
        left[[up, down]] = torch.inf
        left[:, [up, down]] = torch.inf
    return pairs


@torch.no_grad()
def _write_numbers(
    model: Denoiser, noise: torch.Tensor, pairs: Pairs, spread: float
) -> torch.Tensor:
    """Make the pairs equal and let the self-attention write the numbers into their differences.

    Returns:
        What a number changes in each channel by this attention, shape `(128, 12)`.
    """
    block, numbers = block_of(model), read_normals(noise)
    made = mean_features(model, block.attn1, noise)
    effects, mean = least_squares(numbers, made, RIDGE).T.contiguous(), made.mean(0)
    for part in (model.unet.down_blocks[1].attentions[0].proj_in, block.attn2.to_out[0]):
        _level(part.weight, pairs)
        _level(part.bias, pairs)
    _level(effects, pairs)
    _level(mean, pairs)
    written = torch.zeros_like(effects)
    for number, (up, down) in zip(CHOOSING, pairs, strict=True):
        written[up, number], written[down, number] = spread / 2, -spread / 2
    read_exactly(model, noise, effects + written, mean + written @ numbers.mean(0))
    return effects


def _level(rows: torch.Tensor, pairs: Pairs) -> None:
    for pair in pairs:
        rows[list(pair)] = rows[list(pair)].mean(0, keepdim=True)


@torch.no_grad()
def _keep_means(model: Denoiser, means: torch.Tensor, pairs: Pairs, spread: float) -> None:
    """Give what reads the channels the differences that their means had."""
    first, block = model.unet.down_blocks[1].attentions[0], block_of(model)
    lost = torch.zeros_like(means)
    for up, down in pairs:
        lost[up] = (means[up] - means[down]) / 2
        lost[down] = -lost[up]
    first.proj_out.bias.add_(first.proj_out.weight[:, :, 0, 0] @ lost)
    hidden = block.ff.net[0].proj
    hidden.bias.add_(hidden.weight @ (block.norm3.weight * lost / spread))


@torch.no_grad()
def _add_push(
    block: BasicTransformerBlock, hidden: torch.Tensor, pairs: Pairs, effects: torch.Tensor
) -> None:
    """Give the hidden units that do least to the push of each number."""
    inner, outer, norm = block.ff.net[0].proj, block.ff.net[2], block.norm3
    does = hidden.std((0, 1)) * outer.weight.norm(dim=0)
    idle = does.argsort()[: len(_knots()) * len(pairs)].tolist()
    outer.bias.add_(outer.weight[:, idle] @ hidden.mean((0, 1))[idle])
    units, steepness = iter(idle), STEEPNESS / RAMP
    for number, (up, down) in zip(CHOOSING, pairs, strict=True):
        gain = float(norm.weight[[up, down]].abs().max())
        for channel in (up, down):
            ratio = gain / float(norm.weight[channel])
            inner.weight[:, channel] /= ratio
            norm.bias[channel] *= ratio
            norm.weight[channel] = gain
        nought = float(norm.bias[up] - norm.bias[down]) / gain
        for (knot, bend), unit in zip(_knots(), units, strict=False):
            gate = unit + outer.in_features
            inner.weight[[unit, gate]], inner.bias[unit] = 0.0, bend / steepness
            inner.weight[gate, up], inner.weight[gate, down] = steepness / gain, -steepness / gain
            inner.bias[gate] = -steepness * (nought + knot)
            outer.weight[:, unit] = effects[:, number]


def _knots() -> Sequence[tuple[float, float]]:
    """Where the push bends, and by how much: it is a line from each of these to the next."""
    fall, rise = -PUSH / (REACH - RAMP), PUSH / RAMP
    bends = (fall, rise - fall, fall - rise, -fall)
    return list(zip((-REACH, -RAMP, RAMP, REACH), bends, strict=True))
