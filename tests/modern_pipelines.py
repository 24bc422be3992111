"""Small real pipelines of the families of 2025 and 2026, with random weights; see pipelines.py.

Their text encoders are language models whose tokenizers spell bytes, with the chat template of the
kind, so that every word has its length.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import diffusers
import sentencepiece
import tokenizers
import transformers
from diffusers.pipelines.kolors.text_encoder import ChatGLMConfig, ChatGLMModel
from diffusers.pipelines.kolors.tokenizer import ChatGLMTokenizer
from pipeline_parts import (
    BETAS,
    OF_SDXL,
    SMALL,
    SMALL_DOUBLE,
    clip_text,
    clip_tokenizer,
    flow_euler,
    seeded,
    t5_encoder,
    t5_tokenizer,
    text_unet,
    vae,
)

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{m.role}}\n{{m.content}}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant\n"
)

OF_BYTES = {"vocab_size": 300, "max_position_embeddings": 4096}
WIDE = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
NARROW = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
}


def byte_tokenizer(**changes: Any) -> Any:
    """Make a tokenizer that spells bytes, as Qwen's and Llama's are built."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {word: number for number, word in enumerate([*alphabet, *SPECIAL])}
    model = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    model.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = tokenizers.decoders.ByteLevel()
    model.add_special_tokens([tokenizers.AddedToken(word, special=True) for word in SPECIAL])
    settings = {"pad_token": SPECIAL[0], "eos_token": SPECIAL[2], "model_max_length": 2048}
    made = transformers.PreTrainedTokenizerFast(tokenizer_object=model, **(settings | changes))
    made.chat_template = TEMPLATE
    return made


def language_model(config: str, model: str, seed: int, **changes: Any) -> Any:
    """Make a small language model of a class of transformers."""
    settings = OF_BYTES | WIDE | {"num_hidden_layers": 3, "head_dim": 16, "pad_token_id": 256}
    made = getattr(transformers, config)(**(settings | changes))
    return seeded(getattr(transformers, model)(made), seed)


def vision_language_model(seed: int) -> Any:
    """Make a small Qwen 2.5 VL."""
    rope = {"mrope_section": [2, 3, 3], "rope_type": "default", "type": "default"}
    reader = {"num_hidden_layers": 2, "rope_theta": 1e6, "rope_scaling": rope}
    eyes = {"depth": 1, "hidden_size": 32, "intermediate_size": 64, "num_heads": 2}
    config = transformers.Qwen2_5_VLConfig(
        text_config=OF_BYTES | WIDE | reader, vision_config=eyes | {"out_hidden_size": 64}
    )
    return seeded(transformers.Qwen2_5_VLForConditionalGeneration(config), seed)


def qwen_vae(seed: int) -> Any:
    """Make Qwen-Image's autoencoder, which is a video's; one of its latents is 4 pixels wide."""
    return seeded(
        diffusers.AutoencoderKLQwenImage(
            base_dim=8,
            dim_mult=[1, 2, 4],
            num_res_blocks=1,
            temperal_downsample=[False, True],
            latents_mean=[0.0] * 16,
            latents_std=[1.0] * 16,
        ),
        seed,
    )


def z_image() -> Any:
    """Build Z-Image's shape: lists of pictures and words in one row of tokens."""
    transformer = diffusers.ZImageTransformer2DModel(
        dim=96,
        n_layers=2,
        n_refiner_layers=1,
        n_heads=3,
        n_kv_heads=3,
        cap_feat_dim=64,
        axes_dims=[8, 12, 12],
        axes_lens=[1024, 256, 256],
    )
    return diffusers.ZImagePipeline(
        scheduler=flow_euler(),
        vae=vae(101, channels=16, shift=0.1),
        text_encoder=language_model("Qwen3Config", "Qwen3Model", 102),
        tokenizer=byte_tokenizer(),
        transformer=seeded(transformer, 103),
    )


def qwen_image() -> Any:
    """Build Qwen-Image's shape: words and picture side by side, a video's autoencoder."""
    transformer = diffusers.QwenImageTransformer2DModel(
        num_layers=2,
        attention_head_dim=32,
        num_attention_heads=3,
        joint_attention_dim=64,
        axes_dims_rope=(8, 12, 12),
    )
    return diffusers.QwenImagePipeline(
        scheduler=flow_euler(use_dynamic_shifting=True),
        vae=qwen_vae(104),
        text_encoder=vision_language_model(105),
        tokenizer=byte_tokenizer(),
        transformer=seeded(transformer, 106),
    )


def flux2_vae(seed: int) -> Any:
    """Make FLUX.2's autoencoder, whose latents are normalised by what a batch norm remembers."""
    return vae(seed, kind="AutoencoderKLFlux2", layers_per_block=1)


def flux2_transformer(seed: int, words: int, **changes: Any) -> Any:
    """Make FLUX.2's transformer for words of that width."""
    return seeded(
        diffusers.Flux2Transformer2DModel(
            in_channels=16,
            **SMALL_DOUBLE,
            joint_attention_dim=words,
            timestep_guidance_channels=32,
            axes_dims_rope=(4, 4, 4, 4),
            **changes,
        ),
        seed,
    )


def mistral3(seed: int, model: str, num_hidden_layers: int) -> Any:
    """Make a small Mistral 3 of a class of transformers, with the eyes that nobody opens."""
    reader = OF_BYTES | NARROW | {"num_hidden_layers": num_hidden_layers}
    config = transformers.Mistral3Config(
        text_config=reader | {"model_type": "mistral"},
        vision_config={
            "model_type": "pixtral",
            "hidden_size": 16,
            "intermediate_size": 32,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "image_size": 28,
            "patch_size": 14,
        },
    )
    return seeded(getattr(transformers, model)(config), seed)


def flux2() -> Any:
    """Build FLUX.2's shape: a large language model's layers side by side, packed latents."""
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = TEMPLATE.replace("m.content", "m.content[0].text")
    return diffusers.Flux2Pipeline(
        scheduler=flow_euler(use_dynamic_shifting=True),
        vae=flux2_vae(107),
        text_encoder=mistral3(108, "Mistral3ForConditionalGeneration", 31),
        tokenizer=tokenizer,
        transformer=flux2_transformer(109, 48),
    )


def flux2_klein() -> Any:
    """Build FLUX.2 klein's shape, distilled: no guidance."""
    encoder = language_model("Qwen3Config", "Qwen3ForCausalLM", 111, **NARROW, num_hidden_layers=28)
    return diffusers.Flux2KleinPipeline(
        scheduler=flow_euler(use_dynamic_shifting=True),
        vae=flux2_vae(110),
        text_encoder=encoder,
        tokenizer=byte_tokenizer(),
        transformer=flux2_transformer(112, 48, guidance_embeds=False),
        is_distilled=True,
    )


def chroma() -> Any:
    """Build Chroma's shape: Flux with T5 alone, and a network in place of the guidance."""
    transformer = diffusers.ChromaTransformer2DModel(
        in_channels=16,
        **SMALL_DOUBLE,
        joint_attention_dim=32,
        axes_dims_rope=(4, 4, 8),
        approximator_num_channels=8,
        approximator_hidden_dim=32,
        approximator_layers=1,
    )
    return diffusers.ChromaPipeline(
        scheduler=flow_euler(use_dynamic_shifting=True),
        vae=vae(113, channels=4, shift=0.1),
        text_encoder=t5_encoder(114),
        tokenizer=t5_tokenizer(),
        transformer=seeded(transformer, 115),
    )


def gemma2(seed: int) -> Any:
    """Make a small Gemma 2."""
    return language_model(
        *("Gemma2Config", "Gemma2Model", seed),
        query_pre_attn_scalar=16,
        hidden_size=32,
        bos_token_id=0,
        eos_token_id=1,
    )


def lumina2() -> Any:
    """Build Lumina 2's shape: a language model's words and the picture in one row of tokens."""
    transformer = diffusers.Lumina2Transformer2DModel(
        sample_size=16,
        in_channels=4,
        hidden_size=24,
        num_layers=1,
        num_refiner_layers=1,
        num_attention_heads=2,
        num_kv_heads=1,
        multiple_of=16,
        axes_dim_rope=(4, 4, 4),
        axes_lens=(600, 64, 64),
        cap_feat_dim=32,
    )
    return diffusers.Lumina2Pipeline(
        transformer=seeded(transformer, 116),
        scheduler=flow_euler(use_dynamic_shifting=True),
        vae=vae(117, shift=0.1, widths=(8, 8, 16, 16)),  # A size eight times smaller.
        text_encoder=gemma2(118),
        tokenizer=byte_tokenizer(),
    )


def aura_flow() -> Any:
    """Build AuraFlow's shape."""
    transformer = diffusers.AuraFlowTransformer2DModel(
        sample_size=32,
        num_mmdit_layers=1,
        num_single_dit_layers=1,
        attention_head_dim=8,
        num_attention_heads=4,
        joint_attention_dim=32,
        caption_projection_dim=32,
    )
    return diffusers.AuraFlowPipeline(
        tokenizer=t5_tokenizer(),
        text_encoder=t5_encoder(119, kind="UMT5"),
        vae=vae(120),
        transformer=seeded(transformer, 121),
        scheduler=flow_euler(),
    )


def glm_tokenizer() -> Any:
    """Make a tokenizer that pads before the words and, as GLM's, never gives none."""
    tokenizer = byte_tokenizer(padding_side="left")
    tokenizer._tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", 257)]
    )
    return tokenizer


def cogview4() -> Any:
    """Build CogView4's shape: words of a language model, no mask."""
    transformer = diffusers.CogView4Transformer2DModel(
        in_channels=4,
        out_channels=4,
        **SMALL,
        text_embed_dim=64,
        time_embed_dim=8,
        condition_dim=4,
        sample_size=16,
        rope_axes_dim=(64, 64),
    )
    return diffusers.CogView4Pipeline(
        tokenizer=glm_tokenizer(),
        text_encoder=language_model("GlmConfig", "GlmModel", 122),
        vae=vae(123),
        transformer=seeded(transformer, 124),
        scheduler=flow_euler(
            base_shift=0.25,
            max_shift=0.75,
            base_image_seq_len=256,
            use_dynamic_shifting=True,
            time_shift_type="linear",
        ),
    )


def sana_sprint() -> Any:
    """Build Sana-Sprint's shape: Sana with a guidance embedding, and SCM's scheduler."""
    from pipelines import sana, sana_transformer  # That file lists this one's.

    own = sana_transformer(125, guidance_embeds=True, qk_norm="rms_norm_across_heads")
    changed = {"transformer": own, "scheduler": diffusers.SCMScheduler()}
    return diffusers.SanaSprintPipeline(**(sana().components | changed))


def krea2() -> Any:
    """Build Krea 2's shape: several layers of a language model that can see."""
    config = transformers.Qwen3VLConfig(
        text_config={
            **OF_BYTES,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "rope_scaling": {"mrope_section": [2, 1, 1], "rope_type": "default"},
        },
        vision_config={
            "depth": 1,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "out_hidden_size": 32,
            "deepstack_visual_indexes": [],
        },
    )
    transformer = diffusers.Krea2Transformer2DModel(
        **SMALL,
        num_key_value_heads=1,
        intermediate_size=64,
        timestep_embed_dim=32,
        text_hidden_dim=32,
        num_text_layers=2,
        text_num_attention_heads=2,
        text_num_key_value_heads=1,
        text_intermediate_size=64,
        num_layerwise_text_blocks=1,
        num_refiner_text_blocks=1,
        axes_dims_rope=(4, 6, 6),
    )
    return diffusers.Krea2Pipeline(
        scheduler=flow_euler(use_dynamic_shifting=True),
        vae=qwen_vae(126),
        text_encoder=seeded(transformers.Qwen3VLModel(config), 127),
        tokenizer=byte_tokenizer(),
        transformer=seeded(transformer, 128),
        text_encoder_select_layers=(1, 2),
    )


def ernie_image() -> Any:
    """Build ERNIE-Image's shape: a list of words, FLUX.2's autoencoder."""
    transformer = diffusers.ErnieImageTransformer2DModel(
        hidden_size=32,
        num_attention_heads=2,
        num_layers=1,
        ffn_hidden_size=64,
        in_channels=16,
        out_channels=16,
        text_in_dim=16,
        rope_axes_dim=(4, 6, 6),
    )
    return diffusers.ErnieImagePipeline(
        transformer=seeded(transformer, 129),
        vae=flux2_vae(130),
        text_encoder=mistral3(131, "Mistral3Model", 3),
        tokenizer=byte_tokenizer(),
        scheduler=flow_euler(),
    )


def hunyuan_image() -> Any:
    """Build HunyuanImage's shape, distilled: two readers, an autoencoder of its own."""
    transformer = diffusers.HunyuanImageTransformer2DModel(
        in_channels=4,
        out_channels=4,
        **SMALL_DOUBLE,
        num_refiner_layers=1,
        guidance_embeds=True,
        text_embed_dim=64,
        text_embed_2_dim=32,
        rope_axes_dim=(8, 8),
    )
    autoencoder = diffusers.AutoencoderKLHunyuanImage(
        in_channels=3,
        out_channels=3,
        latent_channels=4,
        block_out_channels=(32, 32),
        layers_per_block=1,
        spatial_compression_ratio=2,
        sample_size=64,
        scaling_factor=0.5,
    )
    return diffusers.HunyuanImagePipeline(
        scheduler=flow_euler(),
        vae=seeded(autoencoder, 132),
        text_encoder=vision_language_model(133),
        tokenizer=byte_tokenizer(),
        text_encoder_2=t5_encoder(134, vocab_size=400, num_layers=1),
        tokenizer_2=transformers.ByT5Tokenizer(),
        transformer=seeded(transformer, 135),
    )


def hidream() -> Any:
    """Build HiDream's shape: CLIP twice, T5, Llama, and experts."""
    transformer = diffusers.HiDreamImageTransformer2DModel(
        patch_size=2,
        in_channels=4,
        out_channels=4,
        **SMALL_DOUBLE,
        caption_channels=[32, 64],
        text_emb_dim=64,
        num_routed_experts=2,
        num_activated_experts=1,
        axes_dims_rope=(8, 4, 4),
        max_resolution=(32, 32),
        llama_layers=[0, 1],
        force_inference_output=True,
    )
    llama = language_model(
        *("LlamaConfig", "LlamaForCausalLM", 136), bos_token_id=0, eos_token_id=258
    )
    return diffusers.HiDreamImagePipeline(
        scheduler=flow_euler(),
        vae=vae(137, shift=0.1),
        text_encoder=clip_text(138, projection=True, max_tokens=248),
        tokenizer=clip_tokenizer(),
        text_encoder_2=clip_text(139, projection=True, max_tokens=248),
        tokenizer_2=clip_tokenizer(),
        text_encoder_3=t5_encoder(140),
        tokenizer_3=t5_tokenizer(),
        text_encoder_4=llama,
        tokenizer_4=byte_tokenizer(model_max_length=128),
        transformer=seeded(transformer, 141),
    )


def chatglm_tokenizer() -> Any:
    """Make a tokenizer of Kolors' class: pieces of a few sentences, and bytes for what is new."""
    words = ["a red fox in the snow at night", "two foxes, artsy blue"]
    model = Path(tempfile.mkdtemp()) / "tokenizer"  # It is copied from there when it is saved.
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(words),
        model_prefix=str(model),
        vocab_size=290,
        byte_fallback=True,
        character_coverage=1.0,
        model_type="bpe",
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return ChatGLMTokenizer(str(model.with_suffix(".model")))


def kolors() -> Any:
    """Build Kolors' shape: ChatGLM's words in SDXL's network."""
    reader = ChatGLMConfig(
        num_layers=2,
        padded_vocab_size=400,
        hidden_size=64,
        ffn_hidden_size=64,
        kv_channels=16,
        num_attention_heads=4,
        seq_length=256,
        multi_query_attention=True,
        multi_query_group_num=2,
        add_qkv_bias=True,
        original_rope=True,
    )
    sizes = {"projection_class_embeddings_input_dim": 112, "encoder_hid_dim": 64}
    return diffusers.KolorsPipeline(
        vae=vae(144),
        text_encoder=seeded(ChatGLMModel(reader), 142),
        tokenizer=chatglm_tokenizer(),
        unet=text_unet(143, **OF_SDXL, **sizes, encoder_hid_dim_type="text_proj"),
        scheduler=diffusers.EulerDiscreteScheduler(
            **(BETAS | {"beta_end": 0.014}),
            num_train_timesteps=1100,
            steps_offset=1,
            timestep_spacing="leading",
        ),
    )


MODERN: dict[str, Callable[[], Any]] = {
    "z-image": z_image,
    "qwen-image": qwen_image,
    "flux2": flux2,
    "flux2-klein": flux2_klein,
    "chroma": chroma,
    "lumina2": lumina2,
    "aura-flow": aura_flow,
    "cogview4": cogview4,
    "sana-sprint": sana_sprint,
    "krea2": krea2,
    "hunyuan-image": hunyuan_image,
    "hidream": hidream,
    "ernie-image": ernie_image,
    "kolors": kolors,
}
