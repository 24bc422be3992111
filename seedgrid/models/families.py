"""The pipeline families that SeedGrid paints with, and how each is called.

Most facts are read from the class's source in diffusers (`pipeline_source.py`); `_ROWS` has others.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from math import lcm
from typing import Any, Final, Literal

from seedgrid.core.errors import ModelError
from seedgrid.core.prompts import plain_words
from seedgrid.core.recipe import LOCK_WIDTH, Recipe
from seedgrid.models.pipeline_source import PipelineSource, begins_from_picture, read_pipeline

Sampling = Literal["noise", "flow", "consistency", "unscaled", "implicit", "trigflow"]
"""What a family's denoiser predicts, and so which schedulers fit it (`schedulers.TABLE`).

`noise`: the noise or the velocity of a diffusion process. `flow`: a flow's velocity.
`consistency`: the picture itself, in a loop that only LCM's scheduler fits. `unscaled`: like
`noise`, in a loop that never calls `scale_model_input`, so only schedulers that need no scaling.
`implicit`: like `unscaled`, in `DDIMPipeline`'s loop, whose arguments only DDIMScheduler takes.
`trigflow`: the velocity on a circle, in a loop that only SCM's scheduler fits.
"""

_TENSORS: Final = 4  # How many tensors of the picture's full size the decoder's last layers hold
_STEPS_WITH_A_MIDDLE: Final = 2  # SCM takes an intermediate time only with this number of steps

Configs = dict[str, dict[str, Any]]  # The configuration of each component, by name


@dataclass(frozen=True, kw_only=True)
class Family:
    """One pipeline class; `PipelineSource` explains what is read from diffusers' source."""

    pipeline: str
    sampling: Sampling = "noise"
    denoiser: Literal["unet", "transformer"] = "unet"  # The component that is run at every step
    has_prompt: bool = True
    has_negative_prompt: bool = True
    guidance: str = "guidance_scale"  # The guidance scale's name in the call; empty if none
    num_inference_steps: int = 25
    guidance_scale: float = 7.5
    patch: int = 1  # The denoiser's patch size in latent pixels, if its configuration has none
    base_multiple: int = 8  # The multiple in pixels that the pipeline itself requires of a size
    default_latent: int | None = None  # Default side in latent pixels, if the pipeline sets one
    default_px: int | None = None  # Default side in pixels, if there is no side in latent pixels
    # Absent negative prompts are embedded as zeros: recipes with and without them share no call
    zeroes_empty_negative: bool = False
    has_weights: bool = False  # All text encoders are CLIP: words can be weighted
    image_to_image: str = ""  # The image-to-image pipeline; empty if there is none
    image_to_image_takes_size: bool = False  # Else it uses the start picture's size
    binned_sizes: tuple[int, ...] = ()  # Each `sample_size` that has a table of aspect ratios
    optional_components: tuple[str, ...] = ()  # For example SD3's T5
    single_step_predicts: bool = False  # A run of one step uses the scheduler's predicted picture
    fragile: bool = False  # Only the same hardware and versions reproduce a picture
    # Parameters of the call for `encode_prompt`'s results (the second is the mask), if prompts are
    # encoded one by one because a longer prompt beside them would change the results
    embeds_names: tuple[str, ...] = ()
    tokens_per_block: int = 128  # Prompts that fill equally many such blocks may share a call
    takes_embeds_list: bool = False  # Whether its call takes the embeddings as a list
    needs_own_scheduler: bool = False
    can_mix_noise: bool = True  # Whether the noise of several seeds can be mixed
    separate_call_pattern: re.Pattern[str] | None = None  # Matches share no call with other prompts
    passes_mu: bool = False
    components: Mapping[str, tuple[str, ...]]
    bins_by_default: bool = False  # Whether it replaces a size by one of a table by default
    has_clean_caption: bool = False  # Whether it cleans prompts, unless its call says otherwise
    fixed_size: bool = False  # Whether it paints only its default size
    lock_width: int = LOCK_WIDTH  # Default batch width; 1 if the denoiser mixes pictures
    is_tested: bool = False  # Whether SeedGrid's tests paint with a small pipeline of it

    @property
    def encodes_separately(self) -> bool:
        """Whether prompts are encoded one by one, and the call is given their embeddings."""
        return bool(self.embeds_names)

    @property
    def strength_shortens(self) -> bool:
        """Whether image-to-image runs only the strength's share of the steps; LCM runs all."""
        return self.sampling != "consistency"

    def needs_negative(self, recipe: Recipe) -> bool:
        """Tell whether guidance needs a negative prompt in the call, even an empty one."""
        needs = self.encodes_separately or self.guidance == "true_cfg_scale"
        return self.has_negative_prompt and needs and recipe.guidance_scale > 1

    def negative_prompt_of(self, recipe: Recipe) -> str:
        """Return a call's negative prompt; with true CFG an empty one is " ", as in Qwen-Image."""
        words = recipe.negative_prompt
        plain = plain_words(words) if recipe.weights else words
        return plain or (" " if self.guidance == "true_cfg_scale" else "")

    def size(self, configs: Configs) -> tuple[int, int]:
        """Return the model's default width and height in pixels."""
        denoiser = configs[self.denoiser]
        if self.default_px and not self.default_latent and "sample_size" not in denoiser:
            return self.default_px, self.default_px
        side = self.default_latent or denoiser["sample_size"]
        height, width = (side, side) if isinstance(side, int) else side
        scale = vae_scale(configs)
        return width * scale, height * scale

    def latent(self, configs: Configs) -> tuple[int, int]:
        """Return the channels of the latents, and how many pixels wide one latent pixel is."""
        vae, denoiser = _vae(configs), configs[self.denoiser]
        channels = vae.get("latent_channels") or vae.get("z_dim") or denoiser["in_channels"]
        return int(channels), vae_scale(configs)

    def decoding_bytes(self, configs: Configs) -> int:
        """Return about how many bytes decoding takes for a pixel, in float32."""
        vae = _vae(configs)
        channels = vae.get("block_out_channels") or [vae.get("base_dim", 3)]
        return int(_TENSORS * 4 * max(channels[:2]))

    def size_multiple(self, configs: Configs) -> int:
        """Return what width and height must be multiples of, in pixels."""
        if not self.has_prompt:
            return 1
        patch = configs[self.denoiser].get("patch_size", self.patch)
        patch = patch if isinstance(patch, int) else self.patch
        return lcm(self.base_multiple, vae_scale(configs) * max(patch, self.patch))

    def call_arguments(self, cells: Sequence[Recipe], configs: Configs) -> dict[str, Any]:
        """Return a call's arguments for recipes of one `batch_key`, except generators and start."""
        first = cells[0]
        arguments: dict[str, Any] = {"num_inference_steps": first.num_inference_steps}
        if not self.has_prompt:
            return arguments | {"batch_size": len(cells)}
        plain = plain_words if first.weights else str
        arguments["prompt"] = [plain(cell.prompt) for cell in cells]
        if first.start:
            arguments["strength"] = first.strength
        if self.image_to_image_takes_size or not first.start:
            arguments |= {"width": first.width, "height": first.height}
        if self.guidance:
            arguments[self.guidance] = first.guidance_scale
        if self.has_negative_prompt and (
            self.needs_negative(first) or any(cell.negative_prompt for cell in cells)
        ):
            arguments["negative_prompt"] = [self.negative_prompt_of(cell) for cell in cells]
        if self.has_clean_caption:
            # Cleaning needs two optional packages; pictures must not depend on them.
            arguments["clean_caption"] = False
        sample_size = configs[self.denoiser].get("sample_size")
        if self.bins_by_default and sample_size not in self.binned_sizes:
            arguments["use_resolution_binning"] = False
        if self.sampling == "trigflow" and first.num_inference_steps != _STEPS_WITH_A_MIDDLE:
            arguments["intermediate_timesteps"] = None
        return arguments


def vae_scale(configs: Configs) -> int:
    """Return how many pixels wide one latent pixel is; 1 without a VAE."""
    vae = _vae(configs)
    if not vae:
        return 1
    if "spatial_compression_ratio" in vae or "scale_factor_spatial" in vae:
        return int(vae.get("spatial_compression_ratio") or vae["scale_factor_spatial"])
    if "temperal_downsample" in vae:  # As diffusers spells it.
        return int(2 ** len(vae["temperal_downsample"]))
    channels = vae.get("block_out_channels") or vae["encoder_block_out_channels"]
    return int(2 ** (len(channels) - 1))


def _vae(configs: Configs) -> dict[str, Any]:
    return next((configs[name] for name in ("vae", "movq", "vqvae") if name in configs), {})


_QUOTED: Final = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|‘[^‘’\n]*’|“[^“”\n]*”")
"""Matches quotations as diffusers' own pattern does, in linear time."""
_SANA: Final[dict[str, Any]] = {"base_multiple": 32, "patch": 1}
_ONE_BY_ONE: Final[dict[str, Any]] = {"embeds_names": ("prompt_embeds",), "tokens_per_block": 1}
_ROWS: Final[dict[str, dict[str, Any]]] = {
    "StableDiffusionPipeline": {"num_inference_steps": 25, "has_weights": True},
    "StableDiffusionXLPipeline": {"num_inference_steps": 25, "has_weights": True},
    "StableDiffusion3Pipeline": {"optional_components": ("text_encoder_3", "tokenizer_3")},
    # Negative prompts need true CFG, which SeedGrid leaves off.
    "FluxPipeline": {"has_negative_prompt": False},
    "PixArtAlphaPipeline": {"binned_sizes": (32, 64, 128), "single_step_predicts": True},
    "PixArtSigmaPipeline": {"binned_sizes": (32, 64, 128, 256)},
    "SanaPipeline": _SANA | {"sampling": "flow", "binned_sizes": (16, 32, 64, 128)},
    "SanaSprintPipeline": _SANA | {"sampling": "trigflow", "binned_sizes": (32,)},
    "LatentConsistencyModelPipeline": {"has_weights": True},
    "DDPMPipeline": {"sampling": "unscaled", "guidance_scale": 0.0, "num_inference_steps": 50},
    "DDIMPipeline": {"sampling": "implicit", "guidance_scale": 0.0},
    "StableUnCLIPPipeline": {"fragile": True},
    "QwenImagePipeline": {"embeds_names": ("prompt_embeds", "prompt_embeds_mask")},
    "ZImagePipeline": _ONE_BY_ONE | {"tokens_per_block": 32, "takes_embeds_list": True},
    "Flux2Pipeline": {},
    "Flux2KleinPipeline": {},
    "ChromaPipeline": {},
    "Lumina2Pipeline": _ONE_BY_ONE | {"embeds_names": ("prompt_embeds", "prompt_attention_mask")},
    "AuraFlowPipeline": {},
    "KolorsPipeline": {},
    "Krea2Pipeline": {},
    # Quoted text goes to a second text encoder, and changes the whole batch.
    "HunyuanImagePipeline": {"separate_call_pattern": _QUOTED},
    # The pipeline scales every size to one area; the experts mix the tokens of a batch's pictures.
    "HiDreamImagePipeline": {"lock_width": 1, "fixed_size": True, "passes_mu": True},
    "CogView4Pipeline": _ONE_BY_ONE | {"base_multiple": 16},
    "ErnieImagePipeline": _ONE_BY_ONE | {"takes_embeds_list": True},
}  # The tested pipelines, with what their source does not say

FAMILIES: Final = tuple(_ROWS)  # The tested pipelines
_USUAL_PX: Final = 1024
_GUIDANCE: Final = ("guidance_scale", "true_cfg_scale", "distilled_guidance_scale")
_SAMPLINGS: Final[dict[str, Sampling]] = {"FlowMatch": "flow", "LCM": "consistency"}
_OTHER_OUTPUTS: Final = {  # What pipelines for video and audio return, by the error's code
    "model_video": {"frames", "video", "videos"},
    "model_audio": {"audio", "audios", "sound"},
}
_NEEDS_PICTURE: Final = re.compile(
    r"Img2Img|Inpaint|Control|Upscale|Edit|Pix2Pix|Adapter|Depth2|SuperRes|Variation|Fill"
    r"|Refiner|Layered|ImageToImage|Kontext|PaintBy|Redux|GLIGEN|VisualCloze"
)
_IMAGES: Final = ("image", "images", "mask_image", "video", "reference_image")
_PARAMETERS: Final = frozenset(
    {"prompt", "height", "width", "num_inference_steps", "generator", "output_type"}
)


@cache
def family_of(name: str) -> Family:
    """Return the family of a pipeline's class.

    Raises `model_family`: the installed diffusers has no such class; `model_video`, `model_audio`,
    `model_needs_picture` or `model_other`: it is not text-to-image.
    """
    source = read_pipeline(name)
    if source is None:
        raise ModelError("model_family", value=name, family=name, release=version("diffusers"))
    if name not in _ROWS:
        for code, outputs in _OTHER_OUTPUTS.items():
            if outputs & source.outputs:
                raise ModelError(code, value=name, family=name)
        if _NEEDS_PICTURE.search(name) or set(_IMAGES) & set(source.required):
            raise ModelError("model_needs_picture", value=name, family=name)
        if not source.outputs & {"images", "image"} or not source.parameters.keys() >= _PARAMETERS:
            raise ModelError("model_other", value=name, family=name)
    return Family(**(_fields_from(name, source) | _ROWS.get(name, {})))


def _fields_from(name: str, source: PipelineSource) -> dict[str, Any]:
    parameters, components = source.parameters, source.components
    is_transformer = "transformer" in components
    scales = [name for name in _GUIDANCE if isinstance(parameters.get(name), int | float)]
    guidance = scales[0] if scales else ""
    scheduler = " ".join(components.get("scheduler", ()))
    image_to_image = begins_from_picture(name)
    its_source = read_pipeline(image_to_image) if image_to_image else None
    return {
        "pipeline": name,
        "sampling": next((s for mark, s in _SAMPLINGS.items() if mark in scheduler), "noise"),
        "denoiser": "transformer" if is_transformer else "unet",
        "has_prompt": "prompt" in parameters,
        "has_negative_prompt": "negative_prompt" in parameters,
        "guidance": guidance,
        "num_inference_steps": parameters.get("num_inference_steps") or 28,
        "guidance_scale": float(parameters.get(guidance) or 0.0),
        "patch": 2 if is_transformer else 1,
        "default_latent": source.default_sample_size,
        "default_px": parameters.get("height") or (_USUAL_PX if is_transformer else None),
        "zeroes_empty_negative": "force_zeros_for_empty_prompt" in components,
        "image_to_image": image_to_image,
        "image_to_image_takes_size": its_source is not None and "height" in its_source.parameters,
        "needs_own_scheduler": source.needs_own_scheduler,
        "can_mix_noise": source.can_mix_noise,
        "passes_mu": source.passes_mu,
        "components": components,
        "bins_by_default": "use_resolution_binning" in parameters,
        "has_clean_caption": "clean_caption" in parameters,
        "is_tested": name in _ROWS,
    }
