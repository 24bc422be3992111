"""The autoencoder that ships: an exact linear encoder, written in by hand, and a learned decoder.

The encoder of `AutoencoderKL` is a stack of convolutions; with its residual branches at zero, its
strided convolutions as an average pool and two space-to-depth steps, and pairs of channels +a, -a
about its last activation (silu(a) - silu(-a) = a), it computes exactly the map of `latents.py`.
"""

from __future__ import annotations

import torch
from diffusers import AutoencoderKL
from torch import nn

from tools.training.latents import LATENT_CHANNELS, LatentMap

WIDTHS = (16, 32, 64, 96, 64)
NORM_ANCHOR = 1000.0
"""A constant pair of channels this large makes the last group norm a fixed scale."""


def build_autoencoder(latent_map: LatentMap, generator: torch.Generator) -> AutoencoderKL:
    """An autoencoder whose encoder is the linear map and whose decoder is yet untrained."""
    levels = len(WIDTHS)
    model = AutoencoderKL(
        in_channels=3,
        out_channels=3,
        latent_channels=LATENT_CHANNELS,
        block_out_channels=WIDTHS,
        down_block_types=("DownEncoderBlock2D",) * levels,
        up_block_types=("UpDecoderBlock2D",) * levels,
        layers_per_block=1,
        norm_num_groups=1,
        mid_block_add_attention=False,
        sample_size=256,
        scaling_factor=1.0,
    )
    for module in model.decoder.modules():
        if isinstance(module, nn.Conv2d):
            fan_in = module.weight[0].numel()
            nn.init.uniform_(
                module.weight, -((2 / fan_in) ** 0.5), (2 / fan_in) ** 0.5, generator=generator
            )
            nn.init.zeros_(module.bias)
    with torch.no_grad():
        write_encoder(model, latent_map)
        model.post_quant_conv.weight.copy_(torch.eye(LATENT_CHANNELS)[:, :, None, None])
        model.post_quant_conv.bias.zero_()
    return model


def write_encoder(model: AutoencoderKL, latent_map: LatentMap) -> None:
    """Write the linear map into the encoder's weights."""
    for parameter in model.encoder.parameters():
        parameter.zero_()
    for name, module in model.encoder.named_modules():
        if isinstance(module, nn.GroupNorm):
            module.weight.fill_(1.0)
        if name.endswith("conv_shortcut"):
            _copy_channels(module, min(module.weight.shape[:2]))
    _copy_channels(model.encoder.conv_in, 3)
    downs = [block.downsamplers[0].conv for block in model.encoder.down_blocks[:-1]]
    for channel in range(3):  # 256 -> 128: the mean of four pixels
        downs[0].weight[channel, channel, :2, :2] = 0.25
    _space_to_depth(downs[1], 3)
    _space_to_depth(downs[2], 12)
    _project(downs[3], latent_map)
    anchor = 2 * LATENT_CHANNELS
    downs[3].bias[anchor], downs[3].bias[anchor + 1] = NORM_ANCHOR, -NORM_ANCHOR
    scale = NORM_ANCHOR * (2 / WIDTHS[-1]) ** 0.5  # what the last norm divides by
    model.encoder.conv_norm_out.weight.fill_(scale)
    for k in range(LATENT_CHANNELS):
        model.encoder.conv_out.weight[k, 2 * k, 1, 1] = 1.0
        model.encoder.conv_out.weight[k, 2 * k + 1, 1, 1] = -1.0
    model.encoder.conv_out.bias[LATENT_CHANNELS:] = -20.0  # log variance: as good as none
    model.quant_conv.weight.copy_(torch.eye(2 * LATENT_CHANNELS)[:, :, None, None])
    model.quant_conv.bias.zero_()


def _copy_channels(convolution: nn.Conv2d, count: int) -> None:
    middle = convolution.kernel_size[0] // 2
    for channel in range(count):
        convolution.weight[channel, channel, middle, middle] = 1.0


def _space_to_depth(convolution: nn.Conv2d, channels: int) -> None:
    """Output channel (row, column, c) takes pixel (row, column) of each 2x2 block."""
    for row in range(2):
        for column in range(2):
            for channel in range(channels):
                convolution.weight[
                    (row * 2 + column) * channels + channel, channel, row, column
                ] = 1.0


def _project(convolution: nn.Conv2d, latent_map: LatentMap) -> None:
    """The last space-to-depth step and the projection in one, into pairs of channels +a, -a.

    A patch's pixel row is three bits: the last step's, the second's and the first's, as the first
    strided convolution takes the finest bit.
    """
    basis = torch.from_numpy(latent_map.basis / latent_map.scale)  # (192, 24)
    mean = torch.from_numpy(latent_map.mean)
    weights = basis.reshape(
        2, 2, 2, 2, 2, 2, 3, -1
    )  # row bits 4, 2, 1; column bits 4, 2, 1; colour
    weights = weights.permute(0, 3, 1, 4, 2, 5, 6, 7)  # row4 col4 row2 col2 row1 col1 colour latent
    weights = weights.reshape(2, 2, 48, -1)
    offset = mean @ basis
    for k in range(LATENT_CHANNELS):
        for sign, channel in ((1.0, 2 * k), (-1.0, 2 * k + 1)):
            convolution.weight[channel, :48, :2, :2] = sign * weights[:, :, :, k].permute(2, 0, 1)
            convolution.bias[channel] = -sign * offset[k]


def read_encoder(model: AutoencoderKL) -> LatentMap:
    """The linear map that `write_encoder` wrote, out of the weights again."""
    convolution = model.encoder.down_blocks[3].downsamplers[0].conv
    even = convolution.weight[: 2 * LATENT_CHANNELS : 2, :48, :2, :2].detach().double()
    weights = even.permute(2, 3, 1, 0).reshape(2, 2, 2, 2, 2, 2, 3, -1)
    weights = weights.permute(0, 2, 4, 1, 3, 5, 6, 7).reshape(192, -1)  # basis / scale
    scale = 1 / weights.norm(dim=0)
    basis = weights * scale
    offset = -convolution.bias[: 2 * LATENT_CHANNELS : 2].detach().double()  # mean @ basis / scale
    mean = basis @ (offset * scale)  # the part of the mean that the basis can see
    return LatentMap(
        mean=mean.float().numpy(), basis=basis.float().numpy(), scale=scale.float().numpy()
    )
