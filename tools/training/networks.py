"""The networks that ship: denoiser and text encoder. The autoencoder is in `autoencoder.py`."""

from __future__ import annotations

import torch
from diffusers import DDIMScheduler, UNet2DConditionModel
from diffusers.models.resnet import ResnetBlock2D
from torch import nn
from transformers import CLIPTextConfig, CLIPTextModel

from tools.training.latents import LATENT_CHANNELS, LATENT_PX
from tools.training.tokenizer import MAX_TOKENS

TEXT_WIDTH = 128


class Denoiser(nn.Module):
    """The text encoder and the UNet, trained as one."""

    def __init__(self, vocab_size: int, end_id: int, start_id: int) -> None:
        super().__init__()
        self.text_encoder = CLIPTextModel(
            CLIPTextConfig(
                vocab_size=vocab_size,
                hidden_size=TEXT_WIDTH,
                intermediate_size=4 * TEXT_WIDTH,
                projection_dim=TEXT_WIDTH,
                num_hidden_layers=2,
                num_attention_heads=4,
                max_position_embeddings=MAX_TOKENS,
                bos_token_id=start_id,
                eos_token_id=end_id,
                pad_token_id=end_id,
            )
        )
        self.unet = UNet2DConditionModel(
            sample_size=LATENT_PX,
            in_channels=LATENT_CHANNELS,
            out_channels=LATENT_CHANNELS,
            block_out_channels=(96, 128, 144),
            layers_per_block=2,  # One number: diffusers scales no LoRA of a UNet with several.
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
            mid_block_type="UNetMidBlock2DCrossAttn",
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
            cross_attention_dim=TEXT_WIDTH,
            attention_head_dim=4,
            norm_num_groups=16,
            resnet_time_scale_shift="scale_shift",
            time_embedding_dim=256,
            addition_embed_type="text",
            addition_embed_type_num_heads=4,
        )

    def forward(
        self, noisy: torch.Tensor, timesteps: torch.Tensor, ids: torch.Tensor
    ) -> torch.Tensor:
        """Predict the velocity.

        Args:
            noisy: shape `(N, 24, 16, 16)`.
            timesteps: shape `(N,)`.
            ids: shape `(N, 40)`.

        Returns:
            Shape `(N, 24, 16, 16)`.
        """
        states = self.text_encoder(input_ids=ids).last_hidden_state  # (N, 40, 128)
        return self.unet(noisy, timesteps, encoder_hidden_states=states).sample


def in_int8(weight: torch.Tensor) -> torch.Tensor:
    """A linear layer's weight as int8 has it: rounded row by row, as SDNQ does."""
    scale = weight.abs().amax(dim=1, keepdim=True).clamp(min=1e-9) / 127
    return (weight / scale).round() * scale


def make_scheduler() -> DDIMScheduler:
    """The noise schedule of training, and the sampler that ships."""
    return DDIMScheduler(
        num_train_timesteps=1000,
        beta_start=0.00085,
        beta_end=0.012,
        beta_schedule="scaled_linear",
        prediction_type="v_prediction",
        rescale_betas_zero_snr=True,
        timestep_spacing="trailing",
        clip_sample=False,
        set_alpha_to_one=True,
        steps_offset=1,
    )


def initialise(model: nn.Module, generator: torch.Generator) -> None:
    """Draw every weight matrix anew from one generator, in the manner of torch's own start.

    Torch's modules start from the global generator; this makes the start a function of the seed.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            fan_in = module.weight[0].numel()
            nn.init.uniform_(module.weight, -(fan_in**-0.5), fan_in**-0.5, generator=generator)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.02, generator=generator)
    for module in model.modules():
        if isinstance(module, UNet2DConditionModel):
            nn.init.zeros_(module.conv_out.weight)
            for block in module.down_blocks[:-1]:
                _average_pool(block.downsamplers[0].conv)
        elif isinstance(module, ResnetBlock2D):
            with torch.no_grad():
                module.conv2.weight.mul_(0.1)


@torch.no_grad()
def _average_pool(convolution: nn.Conv2d) -> None:
    """Start a strided convolution near an average pool, so that no pixel is passed over."""
    convolution.weight.mul_(0.3)
    for channel in range(convolution.out_channels):
        convolution.weight[channel, channel, 1:, 1:] += 0.5
