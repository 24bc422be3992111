"""The pipeline families SeedGrid paints with, and how each is called. No torch needed.

One table says what differs: the sizes a family can paint, its defaults, what its call takes. The
call is the plain diffusers call, so that an exported script can make the same one. Knows nothing
of files or weights.

    FAMILIES["FluxPipeline"].has_negative_prompt   # False
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm
from typing import Any, Final, Literal

from seedgrid.core.prompts import plain_words
from seedgrid.core.recipe import Recipe

Sampling = Literal["noise", "flow", "consistency", "unscaled", "implicit"]
"""What a family's denoiser predicts, and so which schedulers fit it (`schedulers.TABLE`).

`noise`: the noise or the velocity of a diffusion process. `flow`: a flow's velocity.
`consistency`: the picture itself, in a loop that only LCM's scheduler fits. `unscaled`: like
`noise`, in a loop that never calls `scale_model_input`, so only schedulers that need no scaling.
`implicit`: the same in `DDIMPipeline`'s loop, which passes arguments that only DDIM's takes.
"""

_TENSORS: Final = 4

Configs = dict[str, dict[str, Any]]
"""The configuration of each component by its name, as in the model's folder."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """One kind of pipeline.

    Attributes:
        denoiser: The component that is run at every step.
        patch: The denoiser's patch size when its configuration does not say, in latent pixels.
        base_multiple: What the pipeline itself demands of a size, in pixels.
        default_latent: Side of the default picture in latent pixels where no configuration says.
        zeroes_empty_negative: True where an absent negative prompt is not the empty one, so that
            recipes with and without one must not share a call.
        has_weights: Whether its words are CLIP's alone, one row of the embedding a token, so that
            they can be weighed (`diffusion/word_weights.py`).
        from_start: The pipeline that begins from a picture, of diffusers' own table for
            image-to-image; empty where there is none.
        sizes_start: Whether that one is told the size; the others take the picture's.
        bins: The sizes of the denoiser for which the pipeline has a table of aspect ratios.
        may_lack: The components that it paints without, as SD3 without its T5.
        one_step_foresees: Whether a single step is asked for the picture that it foresees.
        fragile: Only the same hardware and versions reproduce it.
    """

    pipeline: str
    sampling: Sampling = "noise"
    denoiser: Literal["unet", "transformer"] = "unet"
    has_prompt: bool = True
    has_negative_prompt: bool = True
    has_guidance: bool = True
    num_inference_steps: int = 25
    guidance_scale: float = 7.5
    patch: int = 1
    base_multiple: int = 8
    default_latent: int | None = None
    zeroes_empty_negative: bool = False
    has_weights: bool = False
    from_start: str = ""
    sizes_start: bool = False
    bins: tuple[int, ...] = ()
    may_lack: tuple[str, ...] = ()
    one_step_foresees: bool = False
    fragile: bool = False

    @property
    def strength_shortens(self) -> bool:
        """Whether a start leaves its strength's share of the steps to be run; LCM runs them all."""
        return self.sampling != "consistency"

    def size(self, configs: Configs) -> tuple[int, int]:
        """Return the width and height in pixels that the model was made for."""
        side = self.default_latent or configs[self.denoiser]["sample_size"]
        height, width = (side, side) if isinstance(side, int) else side
        scale = vae_scale(configs)
        return width * scale, height * scale

    def latent(self, configs: Configs) -> tuple[int, int]:
        """Return the channels of the noise, and how many pixels one of its pixels is wide."""
        without = configs[self.denoiser]
        channels = configs.get("vae", {}).get("latent_channels") or without["in_channels"]
        return int(channels), vae_scale(configs)

    def decoding_bytes(self, configs: Configs) -> int:
        """Return about how many bytes decoding takes for a pixel of the picture, in float32.

        The decoder's last layers hold a few tensors of the picture's full size at once.
        """
        channels = configs.get("vae", {}).get("block_out_channels") or [3]
        return int(_TENSORS * 4 * max(channels[:2]))

    def size_multiple(self, configs: Configs) -> int:
        """Return what width and height must be multiples of, in pixels."""
        if not self.has_prompt:
            return 1
        patch = configs[self.denoiser].get("patch_size", self.patch)
        return lcm(self.base_multiple, vae_scale(configs) * max(patch, self.patch))

    def call_arguments(self, cells: Sequence[Recipe], configs: Configs) -> dict[str, Any]:
        """Return what the pipeline is called with, but for the generators and the start.

        Args:
            cells: Of one `batch_key`; where `zeroes_empty_negative`, all or none of them have a
                negative prompt.
            configs: Of the model.
        """
        first = cells[0]
        arguments: dict[str, Any] = {"num_inference_steps": first.num_inference_steps}
        if not self.has_prompt:
            return arguments | {"batch_size": len(cells)}
        said = plain_words if first.weights else str
        arguments |= {
            "prompt": [said(cell.prompt) for cell in cells],
            "width": first.width,
            "height": first.height,
        }
        if first.start:
            arguments["strength"] = first.strength
            if not self.sizes_start:
                del arguments["width"], arguments["height"]
        if self.has_guidance:
            arguments["guidance_scale"] = first.guidance_scale
        if self.has_negative_prompt and any(cell.negative_prompt for cell in cells):
            arguments["negative_prompt"] = [said(cell.negative_prompt) for cell in cells]
        if self.bins:
            # Cleaning needs two optional packages; a picture must not depend on what is installed.
            arguments["clean_caption"] = False
            if configs[self.denoiser]["sample_size"] not in self.bins:
                arguments["use_resolution_binning"] = False
        return arguments


def vae_scale(configs: Configs) -> int:
    """Return how many pixels one latent pixel is wide; 1 without a VAE."""
    if "vae" not in configs:
        return 1
    vae = configs["vae"]
    channels = vae.get("block_out_channels") or vae["encoder_block_out_channels"]
    return int(2 ** (len(channels) - 1))


_ALL: Final = (
    Family(
        pipeline="StableDiffusionPipeline",
        has_weights=True,
        from_start="StableDiffusionImg2ImgPipeline",
    ),
    Family(
        pipeline="StableDiffusionXLPipeline",
        guidance_scale=5.0,
        zeroes_empty_negative=True,
        has_weights=True,
        from_start="StableDiffusionXLImg2ImgPipeline",
    ),
    Family(
        pipeline="StableDiffusion3Pipeline",
        sampling="flow",
        denoiser="transformer",
        num_inference_steps=28,
        guidance_scale=7.0,
        patch=2,
        may_lack=("text_encoder_3", "tokenizer_3"),
        from_start="StableDiffusion3Img2ImgPipeline",
        sizes_start=True,
    ),
    Family(
        pipeline="FluxPipeline",
        sampling="flow",
        denoiser="transformer",
        has_negative_prompt=False,
        num_inference_steps=28,
        guidance_scale=3.5,
        patch=2,
        default_latent=128,
        from_start="FluxImg2ImgPipeline",
        sizes_start=True,
    ),
    Family(
        pipeline="PixArtAlphaPipeline",
        denoiser="transformer",
        num_inference_steps=20,
        guidance_scale=4.5,
        patch=2,
        bins=(32, 64, 128),
        one_step_foresees=True,
    ),
    Family(
        pipeline="PixArtSigmaPipeline",
        denoiser="transformer",
        num_inference_steps=20,
        guidance_scale=4.5,
        patch=2,
        bins=(32, 64, 128, 256),
    ),
    Family(
        pipeline="SanaPipeline",
        sampling="flow",
        denoiser="transformer",
        num_inference_steps=20,
        guidance_scale=4.5,
        base_multiple=32,
        bins=(16, 32, 64, 128),
    ),
    Family(
        pipeline="LatentConsistencyModelPipeline",
        sampling="consistency",
        has_negative_prompt=False,
        num_inference_steps=4,
        guidance_scale=8.5,
        has_weights=True,
        from_start="LatentConsistencyModelImg2ImgPipeline",
    ),
    Family(
        pipeline="DDPMPipeline",
        sampling="unscaled",
        has_prompt=False,
        has_negative_prompt=False,
        has_guidance=False,
        num_inference_steps=50,
        guidance_scale=0.0,
    ),
    Family(
        pipeline="DDIMPipeline",
        sampling="implicit",
        has_prompt=False,
        has_negative_prompt=False,
        has_guidance=False,
        num_inference_steps=50,
        guidance_scale=0.0,
    ),
    Family(
        pipeline="StableUnCLIPPipeline",
        num_inference_steps=20,
        guidance_scale=10.0,
        fragile=True,
    ),
)

FAMILIES: Final[dict[str, Family]] = {family.pipeline: family for family in _ALL}
"""The families by the name of their pipeline's class."""
