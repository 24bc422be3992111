"""The call of a diffusers pipeline: only this file makes it, follows its steps, and stops it.

Without prompt weights, mixed noise, steering, portable arithmetic and prompts encoded one by one
(words.py), its pictures equal those of a plain call of diffusers, `pipe(prompts,
generator=[torch.Generator("cpu").manual_seed(seed), …])`, at the same width, bit for bit.
"""

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch
from diffusers import attention_backend
from diffusers.utils.constants import DIFFUSERS_ATTN_BACKEND
from PIL import Image, ImageOps

from seedgrid.core.errors import RunCancelled, RunError
from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.backend import Outcome, Watch
from seedgrid.diffusion.caches import LoadedModel
from seedgrid.diffusion.libraries import foreign_errors, quiet_diffusers, replaced
from seedgrid.diffusion.loading import scale_loras
from seedgrid.diffusion.noise import fresh_generators, mixed_noise
from seedgrid.diffusion.steering import Halted, Steering, SteeringPlan, Trajectory
from seedgrid.diffusion.words import EncodedPrompts, embeds_arguments, encode_each, weighted_prompts
from seedgrid.models.schedulers import make_scheduler
from seedgrid.portable import native, portable
from seedgrid.storage import starts

# Given a pipeline, returns a context for its call, in which some of its parts are replaced
CallContext = Callable[[Any], AbstractContextManager[Any]]


class PipelineOutput(NamedTuple):
    """The result of a pipeline's call; only trajectories if it was halted."""

    trajectories: Sequence[Trajectory]  # One for each recipe
    images: torch.Tensor = torch.empty(0)  # (cells, 3, height, width), 0 … 1
    latents: torch.Tensor = torch.empty(0)  # Of the last step, one row for each cell
    withheld: Sequence[bool] = ()  # By cell, whether a safety checker blackened its picture


def paint_batch(
    recipes: Sequence[Recipe],
    loaded: LoadedModel,
    watch: Watch,
    contexts: Sequence[CallContext],
    plan: SteeringPlan,
) -> tuple[tuple[Outcome, Trajectory], ...]:
    """Return each recipe's picture or error, and its trajectory; if halted, all are errors."""
    painted: dict[int, tuple[Outcome, Trajectory]] = {}
    encoded = _encode_prompts(recipes, loaded, contexts)
    for indices in _calls(recipes, loaded, encoded):
        together = [recipes[index] for index in indices]
        prompts = [encoded[index] for index in indices] if encoded else ()
        output = call_pipeline(together, loaded, watch, contexts, plan, encoded=prompts)
        outcomes = _outcomes(together, output, plan.parents)
        painted |= zip(indices, zip(outcomes, output.trajectories, strict=True), strict=True)
    return tuple(painted[index] for index in range(len(recipes)))


def call_pipeline(
    recipes: Sequence[Recipe],
    loaded: LoadedModel,
    watch: Watch,
    contexts: Sequence[CallContext],
    plan: SteeringPlan | None = None,
    *,
    encoded: Sequence[EncodedPrompts] = (),
) -> PipelineOutput:
    """Call the pipeline with `lock_width` rows (if portable, one a recipe), in `contexts`.

    `encoded` is for families whose prompts are encoded one by one: the recipes' prompts. If it is
    empty, they are encoded here. Raises RunCancelled, RunError, or InputError.
    """
    first = recipes[0]
    # Padded with repeats, as bits depend on a batch's width; those of portable pictures do not
    num_cells = len(recipes) if first.is_portable else first.lock_width
    indices = [cell % len(recipes) for cell in range(num_cells)]
    cells = [recipes[index] for index in indices]
    encoded = encoded or _encode_prompts(recipes, loaded)
    encoded = [encoded[index] for index in indices] if encoded else []
    if watch.cancelled:
        raise RunCancelled("run_cancelled")
    start = _start_arguments(first, len(cells))
    steering = Steering(cells, plan or SteeringPlan(), num_pictures=len(recipes))
    with _arithmetic_of(first):
        scheduler = make_scheduler(first.scheduler, loaded.scheduler_config)
        _replace_step(scheduler, recipes, loaded, watch, steering)
        pipeline = loaded.pipeline_for(first)
        pipeline.scheduler = scheduler
        if hasattr(pipeline, "watermark"):
            pipeline.watermark = None  # SDXL's changes pixels wherever its package is installed.
        scale_loras(loaded.pipeline, first)
        try:
            with (
                mixed_noise(pipeline, cells, watch),
                weighted_prompts(pipeline, cells),
                _reported_tiles(pipeline, watch),
                steering.applied_to(pipeline, loaded.files.family.denoiser),
                ExitStack() as stack,
            ):
                for context in contexts:
                    stack.enter_context(context(pipeline))
                output = pipeline(
                    **_arguments(cells, loaded, encoded),
                    **start,
                    # The seeds' only other uses: `_move_tokens` in steering.py, and previews.py
                    generator=fresh_generators([cell.seed for cell in cells]),
                    output_type="pt",
                )
        except Halted:
            return PipelineOutput(steering.trajectories)
        finally:
            vars(scheduler).pop("step", None)  # Its closure would keep the model in a cycle.
            pipeline.maybe_free_model_hooks()
    withheld = getattr(output, "nsfw_content_detected", None) or [False] * len(cells)
    return PipelineOutput(steering.trajectories, output[0], steering.last, withheld)


@contextmanager
def _arithmetic_of(recipe: Recipe) -> Iterator[None]:
    """Compute natively or portably in the block, as a recipe says; translate libraries' errors."""
    # As at the process's start, which passports record; a script may have changed it since.
    attention = attention_backend(DIFFUSERS_ATTN_BACKEND)
    arithmetic = portable() if recipe.is_portable else nullcontext()
    with foreign_errors(_translated), quiet_diffusers(), attention, arithmetic:
        yield


def _translated(error: Exception, reason: str) -> RunError:
    is_nondeterministic = isinstance(error, RuntimeError) and "deterministic" in reason
    code = "not_deterministic" if is_nondeterministic else "pipeline_refused"
    return RunError(code, reason=reason)


def _encode_prompts(
    recipes: Sequence[Recipe], loaded: LoadedModel, contexts: Sequence[CallContext] = ()
) -> list[EncodedPrompts]:
    """Encode each recipe's prompts one by one; empty for families that encode a whole batch."""
    family = loaded.files.family
    if not family.encodes_separately:
        return []
    with _arithmetic_of(recipes[0]), ExitStack() as stack:
        scale_loras(loaded.pipeline, recipes[0])
        for context in contexts:
            stack.enter_context(context(loaded.pipeline))
        return encode_each(loaded.pipeline, family, recipes)


def as_one_call(recipes: Sequence[Recipe], loaded: LoadedModel, index: int) -> list[Recipe]:
    """Return the recipes; those that cannot share a call with recipe `index` get its prompts."""
    calls = _calls(recipes, loaded, _encode_prompts(recipes, loaded))
    shared = next(call for call in calls if index in call)
    prompts = {name: getattr(recipes[index], name) for name in ("prompt", "negative_prompt")}
    return [
        recipe if number in shared else recipe.model_copy(update=prompts)
        for number, recipe in enumerate(recipes)
    ]


def _arguments(
    cells: Sequence[Recipe], loaded: LoadedModel, encoded: Sequence[EncodedPrompts]
) -> dict[str, Any]:
    arguments = loaded.files.family.call_arguments(cells, loaded.files.configs)
    if not encoded:
        return arguments
    for name in ("prompt", "negative_prompt"):
        arguments.pop(name, None)
    return arguments | embeds_arguments(encoded, loaded.files.family)


def _calls(
    recipes: Sequence[Recipe], loaded: LoadedModel, encoded: Sequence[EncodedPrompts]
) -> list[list[int]]:
    """Split a batch into calls, usually one, and return the recipes' indices of each.

    No recipe may change how others of its call are computed. SDXL embeds an absent negative
    prompt as zeros, unlike an empty one, and one call cannot do both. Prompts encoded one by one
    share a call if they fill equally many blocks; see also `Family.separate_call_pattern`.
    """
    family = loaded.files.family
    pattern = family.separate_call_pattern
    groups: dict[object, list[int]] = {}
    for index, recipe in enumerate(recipes):
        num_blocks = encoded[index].num_blocks if encoded else ()
        is_zeroed = family.zeroes_empty_negative and not recipe.negative_prompt
        is_separate = bool(pattern and pattern.search(recipe.prompt))
        groups.setdefault((num_blocks, is_zeroed, is_separate), []).append(index)
    return list(groups.values())


def _outcomes(
    recipes: Sequence[Recipe], output: PipelineOutput, parents: Mapping[str, Trajectory]
) -> tuple[Outcome, ...]:
    """Return each recipe's picture, rounded as diffusers does, or its error."""
    if not len(output.images):  # The call was halted.
        return (RunError("run_cancelled"),) * len(recipes)
    outcomes: list[Outcome] = []
    images = output.images[: len(recipes)].cpu().permute(0, 2, 3, 1).float().numpy()
    if images.shape[-1] == 1:
        images = images.repeat(3, axis=-1)
    for cell, (recipe, image) in enumerate(zip(recipes, images, strict=True)):
        if output.withheld[cell]:
            outcomes.append(RunError("picture_withheld", value=recipe.seed))
        elif np.isfinite(image).all() and torch.isfinite(output.latents[cell]).all():
            pixels = (image * 255).round().astype(np.uint8)
            outcomes.append(_in_region(recipe, pixels, parents))
        else:
            outcomes.append(RunError("picture_nan"))
    return tuple(outcomes)


def _in_region(recipe: Recipe, picture: Pixels, parents: Mapping[str, Trajectory]) -> Pixels:
    """Return a picture with its parent's pixels outside the recipe's region, if it has one."""
    parent = parents[recipe.parent.id].pixels if recipe.parent and recipe.mask else None
    if parent is None:
        return picture
    inside = starts.inside(recipe.mask, recipe.width, recipe.height)
    return starts.put_back(picture, parent, inside, recipe.feather)


def _start_arguments(recipe: Recipe, num_cells: int) -> dict[str, Any]:
    """Return the call's arguments for a start picture, if any, fitted to the recipe's size."""
    if not recipe.start:
        return {}
    image = Image.fromarray(starts.pixels(recipe.start))
    fitted = ImageOps.fit(image, (recipe.width, recipe.height), Image.Resampling.LANCZOS)
    return {"image": [fitted] * num_cells}


def _replace_step(
    scheduler: Any, recipes: Sequence[Recipe], loaded: LoadedModel, watch: Watch, steering: Steering
) -> None:
    """Replace `step` of a scheduler that is used for one call: report its steps, and steer it.

    Not all pipelines offer a callback, but all call `scheduler.step` once for each of its
    `timesteps`. The new `step` raises RunCancelled after the first step at which `watch.cancelled`
    is true, and Halted after the `halt_steps` of the plan of `steering`.
    """
    recipe, original = recipes[0], scheduler.step
    steering.order = scheduler.order
    number = 0

    # `wraps` keeps the signature, from which diffusers tells whether `step` takes generators.
    @functools.wraps(original)
    def step(
        model_output: torch.Tensor, timestep: Any, sample: torch.Tensor, *args: Any, **kwargs: Any
    ) -> Any:
        nonlocal number
        model_output = steering.steer_input(model_output)
        result = steering.steer_result(original(model_output, timestep, sample, *args, **kwargs))
        number += 1
        total = max(number, _num_steps(scheduler, recipe, loaded))
        time = float(torch.as_tensor(timestep).flatten()[0])

        def previews() -> tuple[Pixels, ...]:
            # torch's own arithmetic is quicker, and previews do not change the final picture.
            with native() if recipe.is_portable else nullcontext():
                pictures = loaded.preview(scheduler, recipe, model_output, sample, time)
            return pictures[: len(recipes)]

        watch.step(number, total, previews)
        if watch.cancelled:
            raise RunCancelled("run_cancelled")
        return result

    scheduler.step = step


def _num_steps(scheduler: Any, recipe: Recipe, loaded: LoadedModel) -> int:
    """Return how many times `step` is called: with a start picture most families skip some."""
    total, steps = len(scheduler.timesteps), recipe.num_inference_steps
    if not recipe.start or not loaded.files.family.strength_shortens:
        return total
    return max(1, round(total * int(steps * recipe.strength) / steps))


@contextmanager
def _reported_tiles(pipeline: Any, watch: Watch) -> Iterator[None]:
    """Report to `watch` each tile that a pipeline's VAE decodes, if the number of tiles is known.

    Decoding in tiles takes as long as many steps. The pipeline's call raises RunCancelled at the
    first tile after `watch.cancelled`.
    """
    vae = getattr(pipeline, "vae", None)
    if vae is None or not getattr(vae, "use_tiling", False):
        yield
        return
    original = vae.tiled_decode

    def tiled_decode(latents: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        total, number = _num_tiles(vae, latents), 0

        def before_tile(*_: Any) -> None:
            nonlocal number
            number += 1
            if watch.cancelled:
                raise RunCancelled("run_cancelled")
            if number <= total:
                watch.tile(number, total)

        handle = vae.decoder.register_forward_pre_hook(before_tile)
        try:
            return original(latents, *args, **kwargs)
        finally:
            handle.remove()

    with replaced(vae, "tiled_decode", tiled_decode):
        yield


def _num_tiles(vae: Any, latents: torch.Tensor) -> int:
    """Return the number of tiles of `AutoencoderKL.tiled_decode`; 0 for another class of VAE."""
    if not (hasattr(vae, "tile_latent_min_size") and hasattr(vae, "tile_overlap_factor")):
        return 0
    stride = int(vae.tile_latent_min_size * (1 - vae.tile_overlap_factor))
    height, width = latents.shape[-2:]
    return math.ceil(height / stride) * math.ceil(width / stride)
