"""Pictures as other tools save them, for tests."""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Sequence
from typing import Any

from PIL import Image, PngImagePlugin

from seedgrid.core.request import Request
from seedgrid.formats import png_chunks
from seedgrid.formats.importers.imported import Imported, read_foreign
from seedgrid.formats.png_chunks import Chunk


def file_with(**texts: str) -> bytes:
    """Write a PNG as the other tools do: with Pillow."""
    info = PngImagePlugin.PngInfo()
    for key, text in texts.items():
        info.add_text(key, text)
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "PNG", pnginfo=info)
    return buffer.getvalue()


def blank_png(width: int, height: int, *, colour: int, more: Sequence[Chunk] = ()) -> bytes:
    """Write a black PNG of 8 bits without ever holding its pixels.

    Args:
        width: In pixels.
        height: In pixels.
        colour: As PNG numbers them: 0 grey, 2 RGB, 6 with transparency.
        more: Chunks before the pixels.
    """
    row = bytes(1 + width * {0: 1, 2: 3, 6: 4}[colour])
    packer = zlib.compressobj(1)
    packed = b"".join([*(packer.compress(row) for _ in range(height)), packer.flush()])
    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    chunks = [
        Chunk(kind=b"IHDR", data=head),
        *more,
        Chunk(kind=b"IDAT", data=packed),
        Chunk(kind=b"IEND", data=b""),
    ]
    return png_chunks.SIGNATURE + b"".join(map(png_chunks.packed, chunks))


def imported(**texts: str) -> Imported:
    return read_foreign(file_with(**texts))


def asked(
    prompt: str, negative: str, seed: int, size: str, steps: int, guidance: float, **more: Any
) -> Request:
    """Return the request that a picture with these settings should become."""
    width, height = map(int, size.split("x"))
    return Request(
        prompt=prompt,
        negative_prompt=negative,
        seeds=(seed,),
        width=width,
        height=height,
        num_inference_steps=steps,
        guidance_scale=guidance,
        **more,
    )


def codes(found: Imported) -> set[str]:
    return {reason.code for reason in found.reasons}


def node(kind: str, **inputs: object) -> dict[str, object]:
    return {"class_type": kind, "inputs": inputs, "_meta": {"title": kind}}


INVOKE: dict[str, Any] = json.loads(
    """{"generation_mode": "txt2img", "positive_prompt": "a red fox", "negative_prompt": "blurry",
    "width": 768, "height": 512, "seed": 1234567890, "rand_device": "cpu", "cfg_scale": 6.5,
    "cfg_rescale_multiplier": 0.0, "steps": 30, "scheduler": "dpmpp_2m_k", "clip_skip": 0,
    "model": {"key": "e1", "hash": "blake3:abc", "name": "Dreamshaper 8", "base": "sd-1",
    "type": "main"}, "controlnets": [], "loras": [], "app_version": "4.2.8"}"""
)

COMFY: dict[str, Any] = {
    "3": node(
        "KSampler",
        seed=156680208700286,
        steps=20,
        cfg=8.0,
        sampler_name="dpmpp_2m",
        scheduler="karras",
        denoise=1.0,
        model=["10", 0],
        positive=["6", 0],
        negative=["7", 0],
        latent_image=["5", 0],
    ),
    "4": node("CheckpointLoaderSimple", ckpt_name="v1-5-pruned-emaonly.safetensors"),
    "5": node("EmptyLatentImage", width=512, height=640, batch_size=1),
    "6": node("CLIPTextEncode", text="a red fox", clip=["10", 1]),
    "7": node("CLIPTextEncode", text="text, watermark", clip=["10", 1]),
    "8": node("VAEDecode", samples=["3", 0], vae=["4", 2]),
    "9": node("SaveImage", filename_prefix="ComfyUI", images=["8", 0]),
    "10": node("LoraLoader", lora_name="fox.safetensors", model=["4", 0], clip=["4", 1]),
}

SWARM: dict[str, Any] = json.loads(
    """{"sui_image_params": {"prompt": "a red fox", "negativeprompt": "blurry",
    "model": "OfficialStableDiffusion/sd_xl_base_1.0", "seed": 1812281846, "steps": 20,
    "cfgscale": 7.0, "aspectratio": "1:1", "width": 1024, "height": 1024,
    "sampler": "euler_ancestral", "scheduler": "normal", "variationseed": 3,
    "variationseedstrength": 0.25, "loras": ["fox_style"], "loraweights": ["0.8"],
    "swarm_version": "0.9.3.1"}, "sui_extra_data": {"date": "2025-01-01",
    "generation_time": "1 sec"}}"""
)
SWARM_PARAMS = SWARM["sui_image_params"]

FOOOCUS: dict[str, Any] = json.loads(
    """{"adm_guidance": "(1.5, 0.8, 0.3)", "base_model": "juggernautXL_v8Rundiffusion",
    "base_model_hash": "aeb7e9e689", "clip_skip": 2, "guidance_scale": 4,
    "lora_combined_1": "sd_xl_offset_example-lora_1.0.safetensors : 0.1",
    "metadata_scheme": "fooocus", "negative_prompt": "blurry", "performance": "Speed",
    "prompt": "a red fox", "prompt_expansion": "a red fox, intricate", "refiner_model": "None",
    "resolution": "(1152, 896)", "sampler": "dpmpp_2m_sde_gpu", "scheduler": "karras",
    "seed": "7427598543437316352", "sharpness": 2, "steps": 30,
    "styles": "['Fooocus V2', 'Fooocus Enhance']", "version": "Fooocus v2.5.5"}"""
)

NOVELAI: dict[str, Any] = json.loads(
    """{"prompt": "{masterpiece}, 1girl, red fox", "steps": 28, "height": 1216, "width": 832,
    "scale": 5.0, "uncond_scale": 1.0, "cfg_rescale": 0.0, "seed": 3509481094, "n_samples": 1,
    "noise_schedule": "karras", "sampler": "k_dpmpp_2m", "sm": false, "uc": "lowres",
    "request_type": "PromptGenerateRequest", "signed_hash": "x"}"""
)
