"""A head start: the untrained denoiser is made to read the numbers in the noise.

Each of the twelve numbers is the mean of 256 noisy values, a signal a sixteenth as strong as the
noise about it; left alone, the network takes tens of thousands of pictures to find them. The first
self-attention can average over all places, so its value and output matrices are set by least
squares to do just that, and everything behind it starts from there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import torch
from diffusers.models.attention import BasicTransformerBlock
from torch import nn

from tools.training.composition import NUM_NORMALS
from tools.training.coupling import FIRST_CHANNEL, read_normals
from tools.training.latents import LATENT_CHANNELS, LATENT_PX
from tools.training.networks import Denoiser, in_int8

NUM_SAMPLES = 4096
NUM_WATCHED = 256
STRENGTH = 2.0
RIDGE = 1e-8
ANCHOR = 10.0
"""How many times the spread of what is normed the constant offset before the norm is."""
CONSTANT = 1e-7
"""Below this share of the largest variance a direction is constant but for rounding."""
FINER = 128
"""How many times finer what int8 leaves out of a row is written in a second one."""


class _FarEnoughError(Exception):
    """Ends a forward pass that has shown what it was run for."""


def block_of(model: Denoiser) -> BasicTransformerBlock:
    """The transformer block whose self-attention reads the numbers."""
    block = model.unet.down_blocks[1].attentions[0].transformer_blocks[0]
    assert isinstance(block, BasicTransformerBlock)
    return block


@torch.no_grad()
def watch(
    model: Denoiser,
    module: nn.Module,
    noise: torch.Tensor,
    look: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """What `look` makes of the input and the output of a module, for each row of the noise."""
    seen: list[torch.Tensor] = []

    def watch(_module: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        seen.append(look(inputs[0], output))
        raise _FarEnoughError

    hook = module.register_forward_hook(watch)
    for part in noise.split(64):
        with contextlib.suppress(_FarEnoughError):
            ids = torch.zeros(len(part), 2, dtype=torch.long)
            model(part, torch.full((len(part),), 999), ids)
    hook.remove()
    return torch.cat(seen)


def mean_features(model: Denoiser, module: nn.Module, noise: torch.Tensor) -> torch.Tensor:
    """What comes out of a module, averaged over places: shape `(N, width)`."""
    return watch(model, module, noise, lambda _, output: output.mean(1))


def least_squares(features: torch.Tensor, wanted: torch.Tensor, ridge: float) -> torch.Tensor:
    """The matrix that takes features to what is wanted, both about their means."""
    centred = (features - features.mean(0)).double()
    products = centred.T @ centred
    ridges = ridge * products.diagonal().mean() * torch.eye(len(products))
    return torch.linalg.solve(products + ridges, centred.T @ wanted.double()).float()


@torch.no_grad()
def _separate(module: nn.Conv2d, kept_in: int, kept_out: int, generator: torch.Generator) -> None:
    """Let the last output channels see the last input channels and nothing else see them."""
    module.weight[kept_out:, :kept_in] = 0.0
    module.weight[:kept_out, kept_in:] = 0.0
    last = module.weight[kept_out:, kept_in:]
    last.copy_(torch.randn(last.shape, generator=generator) * (1.5 / last[0].numel() ** 0.5))
    module.bias[kept_out:] = 0.3 * torch.randn(module.bias[kept_out:].shape, generator=generator)


@torch.no_grad()
def teach_places(model: Denoiser, generator: torch.Generator) -> None:
    """Keep some channels of the first blocks for where a pixel is.

    A convolution knows no coordinates but for the zeros beyond the edge. Channels that start
    constant and pass through random convolutions of their own pick the edges up and carry them
    inwards: after five of them every place of the 8x8 map differs from every other.
    Source: R. Liu et al. 2018, "An intriguing failing of convolutional neural networks and the
    CoordConv solution", arXiv:1807.03247.
    """
    unet = model.unet
    outer, inner = unet.down_blocks[0], unet.down_blocks[1].resnets[0]
    wide, deep = outer.resnets[0].conv1.out_channels, inner.conv1.out_channels
    kept, kept_deep = wide - wide // 8, deep - deep // 8
    unet.conv_in.weight[kept:] = 0.0
    unet.conv_in.bias[kept:] = 1.0
    outer.resnets[0].norm1.bias[kept:] = 1.0  # all that a norm leaves of a constant
    for module in (outer.resnets[0].conv1, outer.resnets[0].conv2, outer.downsamplers[0].conv):
        _separate(module, kept, kept, generator)
    _separate(inner.conv1, kept, kept_deep, generator)
    _separate(inner.conv_shortcut, kept, kept_deep, generator)
    _separate(inner.conv2, kept_deep, kept_deep, generator)
    for resnet in (outer.resnets[0], inner):
        resnet.time_emb_proj.weight.zero_()
        resnet.time_emb_proj.bias.zero_()


@torch.no_grad()
def carry_numbers(model: Denoiser, outer: Sequence[int], inner: Sequence[int]) -> None:
    """Let the twelve latent channels that hold numbers reach the first self-attention untouched.

    A 3x3 convolution misses a row of pixels at each edge, which alone is a quarter of a number's
    spread; one tap in the middle, a sum of 2x2 and no branch beside it keep the means exact.

    Args:
        model: its first blocks are changed.
        outer: twelve channels at 16x16 that are given to this.
        inner: twelve channels at 8x8.
    """
    unet = model.unet
    resnet, downsampler = unet.down_blocks[0].resnets[0], unet.down_blocks[0].downsamplers[0].conv
    deep = unet.down_blocks[1].resnets[0]
    gain = unet.conv_in.in_channels**-0.5
    for number, (wide, narrow) in enumerate(zip(outer, inner, strict=True)):
        for module in (unet.conv_in, resnet.conv2, downsampler):
            module.weight[wide], module.bias[wide] = 0.0, 0.0
        for module in (deep.conv_shortcut, deep.conv2):
            module.weight[narrow], module.bias[narrow] = 0.0, 0.0
        unet.conv_in.weight[wide, FIRST_CHANNEL + number, 1, 1] = 2.8 * gain
        downsampler.weight[wide, wide, 1:, 1:] = 0.5
        deep.conv_shortcut.weight[narrow, wide] = 0.6


@torch.no_grad()
def teach_reading(model: Denoiser, generator: torch.Generator) -> None:
    """Set the first self-attention so that every place learns the twelve numbers."""
    block = model.unet.down_blocks[1].attentions[0].transformer_blocks[0]
    noise = torch.randn(NUM_SAMPLES, LATENT_CHANNELS, LATENT_PX, LATENT_PX, generator=generator)
    features = mean_features(model, block.norm1, noise)
    centre = features.mean(0)
    solution = least_squares(features, read_normals(noise), ridge=1e-4)  # (width, 12)
    attention, width = block.attn1, features.shape[1]
    attention.to_q.weight.mul_(0.1)
    attention.to_v.weight[:NUM_NORMALS] = solution.T
    directions = torch.linalg.qr(
        torch.randn(width, NUM_NORMALS, generator=generator)
    ).Q  # (width, 12)
    attention.to_out[0].weight[:, :NUM_NORMALS] = STRENGTH * directions
    attention.to_out[0].bias -= STRENGTH * directions @ (centre @ solution)


@torch.no_grad()
def sharpen_reading(model: Denoiser, generator: torch.Generator) -> None:
    """Let the first self-attention of a trained denoiser average evenly over all places.

    A layer norm divides every place by its own spread, and queries weigh the places: both differ
    by chance, so the mean that holds a number is taken with uneven weights, and a hundredth of its
    variance is lost (R2 0.988, which alone keeps pictures under 21 dB). A constant offset before
    the norm makes its divisor the same everywhere, queries of zero make the weights the same, and
    the output is fitted to what it was: what changes is that the chance is gone.
    """
    attention = block_of(model).attn1
    noise = torch.randn(NUM_SAMPLES, LATENT_CHANNELS, LATENT_PX, LATENT_PX, generator=generator)
    before = mean_features(model, attention, noise)
    attention.to_q.weight.zero_()
    features, offset = _even_out(model, noise)
    solution = least_squares(features, before, ridge=1e-7)  # (width, width)
    attention.to_v.weight.copy_(torch.eye(len(solution)))
    attention.to_out[0].weight.copy_(solution.T)
    attention.to_out[0].bias.copy_(before.mean(0) - features.mean(0) @ solution - offset)


@torch.no_grad()
def read_exactly(
    model: Denoiser, noise: torch.Tensor, writing: torch.Tensor, mean: torch.Tensor
) -> None:
    """Let the self-attention, which averages over all places, give a function of the numbers.

    A reading has large terms that cancel, which int8 would spoil: what int8 leaves out of it has
    rows of its own, and so has what int8 leaves out of the writing.

    Args:
        model: what stands before the self-attention stays as it is, but for an offset.
        noise: to fit with, shape `(N, 24, 16, 16)`.
        writing: what a number adds to each channel, shape `(128, 12)`.
        mean: what all numbers of the noise make on average, shape `(128,)`.
    """
    value, out = block_of(model).attn1.to_v.weight, block_of(model).attn1.to_out[0]
    features, offset = _even_out(model, noise)
    reading = least_squares(features, read_normals(noise), RIDGE).T  # (12, 128)
    read, written = in_int8(reading), in_int8(writing)
    fine = reading / FINER, FINER * (writing - written)
    value.zero_()
    out.weight.zero_()
    for part, (rows, columns) in enumerate(((read, written), (reading - read, written), fine)):
        own = slice(part * NUM_NORMALS, (part + 1) * NUM_NORMALS)
        value[own], out.weight[:, own] = rows, columns
    out.bias.copy_(mean - writing @ reading @ features.mean(0) - offset)


def _even_out(model: Denoiser, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Let a constant offset before the norm make its divisor, and let the norm take it off again.

    The offset lies along the direction in which places differ least: along any other, what a place
    has there would change its divisor.

    Returns:
        What the norm makes of the noise then, averaged over places, shape `(N, width)`, and what
        was added to each channel, shape `(width,)`, which is to be taken off behind the norm.
    """
    before, norm = model.unet.down_blocks[1].attentions[0].proj_in, block_of(model).norm1
    channels = watch(model, norm, noise[:NUM_WATCHED], lambda given, _: given).flatten(0, 1)
    own = channels - channels.mean(0)
    variances, directions = torch.linalg.eigh(torch.cov((own - own.mean(1, keepdim=True)).T))
    quietest = directions[:, int((variances > CONSTANT * variances[-1]).nonzero()[0])]
    wanted = ANCHOR * own.std(1).mean() * len(quietest) ** 0.5 * quietest
    kept = before.bias.clone()
    before.bias.copy_((kept + wanted - channels.mean(0)).half())
    offset = before.bias - kept
    norm.weight.mul_((channels + offset).std(1).mean() / channels.std(1).mean())
    # Almost no constant is left that int8 could change, and float16 takes none away.
    norm.bias.copy_((norm.bias - mean_features(model, norm, noise).mean(0)).half())
    return mean_features(model, norm, noise), offset


def is_sharpened(model: Denoiser) -> bool:
    """Has this been done to the model already."""
    first = model.unet.down_blocks[1].attentions[0]
    return not bool(first.transformer_blocks[0].attn1.to_q.weight.any())


def freeze_reading(model: Denoiser) -> None:
    """Keep everything up to and with the first self-attention as it is.

    Left free, it loses the numbers within the first hundred steps, while they look like mere noise.
    """
    unet = model.unet
    block = unet.down_blocks[1]
    first = block.attentions[0]
    attention = first.transformer_blocks[0]
    parts = (unet.conv_in, unet.down_blocks[0], block.resnets[0], first.norm, first.proj_in)
    for part in (*parts, attention.norm1, attention.attn1):
        part.requires_grad_(False)
