"""Small real pipelines, built from configurations with seeded random weights. No download.

Every weight comes from a `torch.Generator`, in the order of the names, so a pipeline is the same on
every run. Sizes are chosen so that a batch of four paints in well under a second on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import diffusers
import transformers
from modern_pipelines import MODERN
from pipeline_parts import (
    BETAS,
    OF_SDXL,
    SMALL,
    SMALL_DOUBLE,
    VOCABULARY,
    clip_text,
    clip_tokenizer,
    flow_euler,
    seeded,
    t5_encoder,
    t5_tokenizer,
    text_unet,
    vae,
)

UNCHECKED: dict[str, Any] = {
    "safety_checker": None,
    "feature_extractor": None,
    "requires_safety_checker": False,
}


def build(name: str) -> Any:
    """Build one of `BUILDERS` by name; weights are seeded, the pipeline is on the CPU."""
    return BUILDERS[name]()


def save(name: str, folder: Path) -> Path:
    """Build a pipeline and write it as safetensors in the diffusers layout."""
    pipeline = build(name)
    pipeline.save_pretrained(folder, safe_serialization=True)
    return folder


def pixel_unet(seed: int) -> Any:
    """Make an unconditional UNet for 32x32 pictures."""
    return seeded(
        diffusers.UNet2DModel(
            block_out_channels=(16, 32),
            layers_per_block=1,
            norm_num_groups=8,
            sample_size=32,
            down_block_types=("DownBlock2D", "AttnDownBlock2D"),
            up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        ),
        seed,
    )


def ddim_scheduler(**changes: Any) -> Any:
    """Make the scheduler of Stable Diffusion's kind of schedule."""
    config = {"clip_sample": False, "set_alpha_to_one": False, "steps_offset": 1}
    return diffusers.DDIMScheduler(**BETAS, **config, **changes)


def stable_diffusion(**scheduler: Any) -> Any:
    """Build Stable Diffusion 1.5's shape."""
    return diffusers.StableDiffusionPipeline(
        vae=vae(1),
        text_encoder=clip_text(2),
        tokenizer=clip_tokenizer(),
        unet=text_unet(3),
        scheduler=ddim_scheduler(**scheduler),
        **UNCHECKED,
    )


def stable_diffusion_xl() -> Any:
    """Build Stable Diffusion XL's shape: two text encoders, sizes as an input."""
    sizes = {"projection_class_embeddings_input_dim": 80, "cross_attention_dim": 64}
    return diffusers.StableDiffusionXLPipeline(
        vae=vae(6),
        text_encoder=clip_text(7),
        text_encoder_2=clip_text(8, projection=True),
        tokenizer=clip_tokenizer(),
        tokenizer_2=clip_tokenizer(),
        unet=text_unet(5, **OF_SDXL, **sizes),
        scheduler=diffusers.EulerDiscreteScheduler(
            **BETAS, steps_offset=1, timestep_spacing="leading"
        ),
        add_watermarker=False,
    )


def stable_diffusion_3() -> Any:
    """Build Stable Diffusion 3's shape: two CLIP encoders, T5, a transformer, a flow."""
    transformer = diffusers.SD3Transformer2DModel(
        sample_size=32,
        in_channels=8,
        num_layers=2,
        attention_head_dim=8,
        num_attention_heads=4,
        caption_projection_dim=32,
        joint_attention_dim=64,
        pooled_projection_dim=64,
        out_channels=8,
    )
    return diffusers.StableDiffusion3Pipeline(
        transformer=seeded(transformer, 9),
        scheduler=flow_euler(),
        vae=vae(10, channels=8, shift=0.06),
        text_encoder=clip_text(11, projection=True),
        tokenizer=clip_tokenizer(),
        text_encoder_2=clip_text(12, projection=True),
        tokenizer_2=clip_tokenizer(),
        text_encoder_3=t5_encoder(13, width=64),
        tokenizer_3=t5_tokenizer(),
    )


def flux() -> Any:
    """Build Flux's shape: CLIP and T5, packed latents, guidance as an input."""
    transformer = diffusers.FluxTransformer2DModel(
        in_channels=16,
        **SMALL_DOUBLE,
        joint_attention_dim=32,
        pooled_projection_dim=32,
        axes_dims_rope=(4, 4, 8),
        guidance_embeds=True,
    )
    return diffusers.FluxPipeline(
        transformer=seeded(transformer, 14),
        scheduler=flow_euler(use_dynamic_shifting=True),
        vae=vae(15, channels=4, shift=0.1),
        text_encoder=clip_text(16),
        tokenizer=clip_tokenizer(),
        text_encoder_2=t5_encoder(17),
        tokenizer_2=t5_tokenizer(),
    )


def pixart() -> Any:
    """Build PixArt's shape: T5, a transformer that also predicts a variance."""
    transformer = diffusers.PixArtTransformer2DModel(
        sample_size=16,
        num_layers=2,
        attention_head_dim=8,
        num_attention_heads=4,
        caption_channels=32,
        cross_attention_dim=32,
        use_additional_conditions=False,
    )
    return diffusers.PixArtAlphaPipeline(
        transformer=seeded(transformer, 18),
        scheduler=diffusers.DPMSolverMultistepScheduler(),
        vae=vae(19),
        text_encoder=t5_encoder(20),
        tokenizer=t5_tokenizer(),
    )


def pixart_sigma() -> Any:
    """Build PixArt Sigma's shape: PixArt with another table of sizes."""
    return diffusers.PixArtSigmaPipeline(**pixart().components)


def sana_transformer(seed: int, **changes: Any) -> Any:
    """Make Sana's transformer."""
    return seeded(
        diffusers.SanaTransformer2DModel(
            in_channels=4,
            out_channels=4,
            **SMALL,
            num_cross_attention_heads=2,
            cross_attention_head_dim=16,
            cross_attention_dim=32,
            caption_channels=32,
            sample_size=8,
            **changes,
        ),
        seed,
    )


def sana() -> Any:
    """Build Sana's shape: a language model reads the prompt, linear attention, 32x latents."""
    words = ["<pad>", "<eos>", "<bos>", "<unk>", "▁", *VOCABULARY.strip()]
    tokenizer = transformers.GemmaTokenizer(
        vocab={word: number for number, word in enumerate(words)}, merges=[]
    )
    config = transformers.Gemma2Config(
        head_dim=16,
        hidden_size=32,
        intermediate_size=64,
        max_position_embeddings=600,
        num_attention_heads=2,
        num_hidden_layers=1,
        num_key_value_heads=2,
        vocab_size=len(words),
        query_pre_attn_scalar=16,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=2,
    )
    autoencoder = diffusers.AutoencoderDC(
        latent_channels=4,
        attention_head_dim=2,
        encoder_block_types=("ResBlock", "EfficientViTBlock"),
        decoder_block_types=("ResBlock", "EfficientViTBlock"),
        encoder_block_out_channels=(8, 8),
        decoder_block_out_channels=(8, 8),
        encoder_qkv_multiscales=((), (5,)),
        decoder_qkv_multiscales=((), (5,)),
        encoder_layers_per_block=(1, 1),
        decoder_layers_per_block=(1, 1),
        downsample_block_type="conv",
        upsample_block_type="interpolate",
    )
    return diffusers.SanaPipeline(
        transformer=sana_transformer(26),
        scheduler=flow_euler(shift=7.0),
        vae=seeded(autoencoder, 27),
        text_encoder=seeded(transformers.Gemma2Model(config), 28),
        tokenizer=tokenizer,
    )


def stable_unclip() -> Any:
    """Build Stable unCLIP's shape: a prior imagines an embedding, a second model paints it."""
    from diffusers.pipelines.stable_diffusion.stable_unclip_image_normalizer import (
        StableUnCLIPImageNormalizer,
    )

    prior = diffusers.PriorTransformer(
        num_attention_heads=2, attention_head_dim=16, embedding_dim=32, num_layers=1
    )
    unet = text_unet(
        31,
        attention_head_dim=(2, 4),
        class_embed_type="projection",
        projection_class_embeddings_input_dim=64,
        use_linear_projection=True,
    )
    return diffusers.StableUnCLIPPipeline(
        prior_tokenizer=clip_tokenizer(),
        prior_text_encoder=clip_text(29, projection=True),
        prior=seeded(prior, 30),
        prior_scheduler=diffusers.DDPMScheduler(
            variance_type="fixed_small_log",
            prediction_type="sample",
            clip_sample=True,
            clip_sample_range=5.0,
            beta_schedule="squaredcos_cap_v2",
        ),
        image_normalizer=seeded(StableUnCLIPImageNormalizer(embedding_dim=32), 32),
        image_noising_scheduler=diffusers.DDPMScheduler(beta_schedule="squaredcos_cap_v2"),
        tokenizer=clip_tokenizer(),
        text_encoder=clip_text(33),
        unet=unet,
        scheduler=ddim_scheduler(prediction_type="v_prediction"),
        vae=vae(34),
    )


def latent_consistency() -> Any:
    """Build a latent consistency model's shape: guidance as an embedding, LCM's scheduler."""
    return diffusers.LatentConsistencyModelPipeline(
        vae=vae(21),
        text_encoder=clip_text(22),
        tokenizer=clip_tokenizer(),
        unet=text_unet(23, time_cond_proj_dim=32),
        scheduler=diffusers.LCMScheduler(**BETAS),
        **UNCHECKED,
    )


def ddpm() -> Any:
    """Build an unconditional pixel-space pipeline with DDPM's scheduler."""
    return diffusers.DDPMPipeline(unet=pixel_unet(24), scheduler=diffusers.DDPMScheduler())


def ddim() -> Any:
    """Build an unconditional pixel-space pipeline with DDIM's scheduler."""
    return diffusers.DDIMPipeline(unet=pixel_unet(25), scheduler=diffusers.DDIMScheduler())


def ddpm_cifar10() -> Any:
    """Build exactly the architecture of google/ddpm-cifar10-32, which is the guide's example."""
    unet = diffusers.UNet2DModel(
        block_out_channels=(128, 256, 256, 256),
        down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "UpBlock2D", "AttnUpBlock2D", "UpBlock2D"),
        downsample_padding=0,
        attention_head_dim=None,
        flip_sin_to_cos=False,
        freq_shift=1,
        layers_per_block=2,
        norm_eps=1e-6,
        sample_size=32,
    )
    scheduler = diffusers.DDPMScheduler(beta_start=0.0001, beta_end=0.02, clip_sample=True)
    return diffusers.DDPMPipeline(unet=seeded(unet, 0), scheduler=scheduler)


BUILDERS: dict[str, Callable[[], Any]] = {
    "sd": stable_diffusion,
    "sd-v": partial(stable_diffusion, prediction_type="v_prediction"),
    "sdxl": stable_diffusion_xl,
    "sd3": stable_diffusion_3,
    "flux": flux,
    "pixart": pixart,
    "pixart-sigma": pixart_sigma,
    "sana": sana,
    "stable-unclip": stable_unclip,
    "lcm": latent_consistency,
    "ddpm": ddpm,
    "ddim": ddim,
    "ddpm-cifar10": ddpm_cifar10,
    **MODERN,
}
