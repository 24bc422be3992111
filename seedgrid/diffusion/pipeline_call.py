"""One call of a diffusers pipeline: only this file makes it, follows its steps, and stops it.

It is the plain diffusers call, so its pictures equal those of `pipe(prompts,
generator=[torch.Generator("cpu").manual_seed(seed), …])` at the same width, bit for bit.
"""

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from diffusers import attention_backend
from diffusers.utils.constants import DIFFUSERS_ATTN_BACKEND
from PIL import Image, ImageOps

from seedgrid.core.errors import RunCancelled, RunError
from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.backend import Outcome, Watch
from seedgrid.diffusion.caches import Loaded
from seedgrid.diffusion.libraries import foreign_errors, quiet_diffusers, replaced
from seedgrid.diffusion.loading import scale_loras
from seedgrid.diffusion.noise import fresh_generators, mixed_noise
from seedgrid.diffusion.way import Guide, Halted, Steering, Way
from seedgrid.diffusion.words import Words, read_alone, weighted_words, words_together
from seedgrid.models.schedulers import make_scheduler
from seedgrid.portable import native, portable
from seedgrid.storage import starts

# A block around the call of a pipeline, which accelerates or watches the pipeline's parts
CallContext = Callable[[Any], AbstractContextManager[Any]]


@dataclass(frozen=True, kw_only=True)
class PipelineOutput:
    """The result of a pipeline's call."""

    latents: torch.Tensor  # Of the last step, one row a cell
    images: torch.Tensor  # (W, 3, height, width), 0 … 1
    withheld: Sequence[bool]  # By cell, whether the model's safety checker blackened it
    ways: Sequence[Way] = ()  # One a picture; empty ones if they are not kept


def paint_batch(
    recipes: Sequence[Recipe],
    loaded: Loaded,
    watch: Watch,
    contexts: Sequence[CallContext],
    guide: Guide,
) -> tuple[tuple[Outcome, Way], ...]:
    """Return each recipe's picture, or its error, and its way; only ways count if it is halted."""
    painted: dict[int, tuple[Outcome, Way]] = {}
    words = _words(recipes, loaded, contexts)
    for places in _calls(recipes, loaded, words):
        part = [recipes[place] for place in places]
        own = [words[place] for place in places] if words else ()
        output = call_pipeline(part, loaded, watch, contexts, guide, words=own)
        outcomes = _outcomes(part, output, guide.ways)
        painted |= zip(places, zip(outcomes, output.ways, strict=True), strict=True)
    return tuple(painted[place] for place in range(len(recipes)))


def call_pipeline(
    recipes: Sequence[Recipe],
    loaded: Loaded,
    watch: Watch,
    contexts: Sequence[CallContext],
    guide: Guide | None = None,
    *,
    words: Sequence[Words] = (),
) -> PipelineOutput:
    """Call the pipeline with W cells, inside `contexts`, which are entered in order.

    `words` are each recipe's, if the family's are read alone. Raises `pipeline_refused`,
    `not_deterministic`, or RunCancelled.
    """
    first = recipes[0]
    # Padded with repeats to their width, on which the bits depend unless they are portable
    num_cells = len(recipes) if first.is_portable else first.lock_width
    cells = [recipes[place % len(recipes)] for place in range(num_cells)]
    words = words or _words(cells, loaded)
    if watch.cancelled:
        raise RunCancelled("run_cancelled")
    start = _start(first, len(cells))
    steering = Steering(cells, guide or Guide(), num_pictures=len(recipes))
    with _arithmetic_of(first):
        scheduler = make_scheduler(first.scheduler, loaded.scheduler_config)
        _follow(scheduler, recipes, loaded, watch, steering)
        pipeline = loaded.pipeline_for(first)
        pipeline.scheduler = scheduler
        scale_loras(loaded.pipeline, first)
        try:
            with (
                mixed_noise(pipeline, cells, watch),
                weighted_words(pipeline, cells),
                _reported_tiles(pipeline, watch),
                steering.used_by(pipeline, loaded.files.family.denoiser),
                ExitStack() as stack,
            ):
                for context in contexts:
                    stack.enter_context(context(pipeline))
                output = pipeline(
                    **_arguments(cells, loaded, words),
                    **start,
                    generator=fresh_generators([cell.seed for cell in cells]),
                    output_type="pt",
                )
        except Halted:
            nothing = torch.empty(0)
            return PipelineOutput(latents=nothing, images=nothing, withheld=(), ways=steering.ways)
        finally:
            pipeline.maybe_free_model_hooks()
    withheld = getattr(output, "nsfw_content_detected", None) or [False] * len(cells)
    return PipelineOutput(
        latents=steering.last, images=output[0], withheld=withheld, ways=steering.ways
    )


@contextmanager
def _arithmetic_of(recipe: Recipe) -> Iterator[None]:
    """Compute as a recipe says in the block, and translate what diffusers and torch raise."""
    # Passports record the attention at the start of the process; a script may have changed it.
    attention = attention_backend(DIFFUSERS_ATTN_BACKEND)
    arithmetic = portable() if recipe.is_portable else nullcontext()
    with foreign_errors(_refusal), quiet_diffusers(), attention, arithmetic:
        yield


def _refusal(error: Exception, reason: str) -> RunError:
    is_nondeterministic = isinstance(error, RuntimeError) and "deterministic" in reason
    code = "not_deterministic" if is_nondeterministic else "pipeline_refused"
    return RunError(code, reason=reason)


def _words(
    recipes: Sequence[Recipe], loaded: Loaded, contexts: Sequence[CallContext] = ()
) -> list[Words]:
    """Read each recipe's words by themselves; empty for families that read them together."""
    family = loaded.files.family
    if not family.alone:
        return []
    with _arithmetic_of(recipes[0]), ExitStack() as stack:
        scale_loras(loaded.pipeline, recipes[0])
        for context in contexts:
            stack.enter_context(context(loaded.pipeline))
        return read_alone(loaded.pipeline, family, recipes)


def sharing_a_call(recipes: Sequence[Recipe], loaded: Loaded, own: int) -> list[Recipe]:
    """Return a batch that fits one call: recipes that cannot share it take the own one's words."""
    calls = _calls(recipes, loaded, _words(recipes, loaded))
    shared = next(call for call in calls if own in call)
    own_words = {name: getattr(recipes[own], name) for name in ("prompt", "negative_prompt")}
    return [
        recipe if place in shared else recipe.model_copy(update=own_words)
        for place, recipe in enumerate(recipes)
    ]


def _arguments(cells: Sequence[Recipe], loaded: Loaded, words: Sequence[Words]) -> dict[str, Any]:
    arguments = loaded.files.family.call_arguments(cells, loaded.files.configs)
    if not words:
        return arguments
    for name in ("prompt", "negative_prompt"):
        arguments.pop(name, None)
    in_slots = [words[place % len(words)] for place in range(len(cells))]
    return arguments | words_together(in_slots, loaded.files.family)


def _calls(recipes: Sequence[Recipe], loaded: Loaded, words: Sequence[Words]) -> list[list[int]]:
    """Split a batch into calls in which no neighbour reaches a picture; nearly always one call.

    SDXL treats absent and empty negative prompts differently, but not within one call. Words that
    are read alone share a call only if their lengths are equal.
    """
    family = loaded.files.family
    groups: dict[object, list[int]] = {}
    for place, recipe in enumerate(recipes):
        lengths = words[place].lengths if words else ()
        is_zeroed = family.zeroes_empty_negative and not recipe.negative_prompt
        has_mark = bool(family.told_apart and family.told_apart.search(recipe.prompt))
        groups.setdefault((lengths, is_zeroed, has_mark), []).append(place)
    return list(groups.values())


def _outcomes(
    recipes: Sequence[Recipe], output: PipelineOutput, ways: Mapping[str, Way]
) -> tuple[Outcome, ...]:
    """Return each recipe's picture, rounded as diffusers does, or its error."""
    if not len(output.images):  # It was halted; only its ways are used.
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
            outcomes.append(_in_region(recipe, pixels, ways))
        else:
            outcomes.append(RunError("picture_nan"))
    return tuple(outcomes)


def _in_region(recipe: Recipe, picture: Pixels, ways: Mapping[str, Way]) -> Pixels:
    """Return the picture with the parent's pixels outside its region."""
    parent = ways[recipe.parent.id].pixels if recipe.parent and recipe.mask else None
    if parent is None:
        return picture
    inside = starts.inside(recipe.mask, recipe.width, recipe.height)
    return starts.put_back(picture, parent, inside, recipe.feather)


def _start(recipe: Recipe, num_cells: int) -> dict[str, Any]:
    """Return the picture that a batch begins from, one a cell, fitted to its size."""
    if not recipe.start:
        return {}
    image = Image.fromarray(starts.pixels(recipe.start))
    fitted = ImageOps.fit(image, (recipe.width, recipe.height), Image.Resampling.LANCZOS)
    return {"image": [fitted] * num_cells}


def _follow(
    scheduler: Any, recipes: Sequence[Recipe], loaded: Loaded, watch: Watch, steering: Steering
) -> None:
    """Report the steps of one call's own scheduler to `watch`, and steer it.

    Not all pipelines offer a callback, but all call `scheduler.step` once for each of its
    `timesteps`. Out of the pipeline's call come RunCancelled, at the first step after
    `watch.cancelled`, and Halted, when all that `steering` records is done.
    """
    recipe, original = recipes[0], scheduler.step
    steering.order = scheduler.order
    number = 0

    # `wraps` keeps the signature, in which diffusers reads whether a scheduler takes generators.
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
            # Torch's own arithmetic is quicker, and a portable picture is not made of previews.
            with native() if recipe.is_portable else nullcontext():
                pictures = loaded.preview(scheduler, recipe, model_output, sample, time)
            return pictures[: len(recipes)]

        watch.step(number, total, previews)
        if watch.cancelled:
            raise RunCancelled("run_cancelled")
        return result

    scheduler.step = step


def _num_steps(scheduler: Any, recipe: Recipe, loaded: Loaded) -> int:
    """Return how many steps are run: from a start most models run only the last ones."""
    total, steps = len(scheduler.timesteps), recipe.num_inference_steps
    if not recipe.start or not loaded.files.family.strength_shortens:
        return total
    return max(1, round(total * int(steps * recipe.strength) / steps))


@contextmanager
def _reported_tiles(pipeline: Any, watch: Watch) -> Iterator[None]:
    """Report each tile that a pipeline's VAE decodes to `watch`, if their number is known.

    Decoding in tiles takes as long as many steps. RunCancelled comes out of the pipeline's call at
    the first tile after `watch.cancelled`.
    """
    vae = getattr(pipeline, "vae", None)
    if vae is None or not getattr(vae, "use_tiling", False):
        yield
        return
    original = vae.tiled_decode

    def tiled_decode(latents: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        total, number = _num_tiles(vae, latents), 0

        def before(*_: Any) -> None:
            nonlocal number
            number += 1
            if watch.cancelled:
                raise RunCancelled("run_cancelled")
            if number <= total:
                watch.tile(number, total)

        listening = vae.decoder.register_forward_pre_hook(before)
        try:
            return original(latents, *args, **kwargs)
        finally:
            listening.remove()

    with replaced(vae, "tiled_decode", tiled_decode):
        yield


def _num_tiles(vae: Any, latents: torch.Tensor) -> int:
    """Return the number of tiles of AutoencoderKL.tiled_decode; 0 for another class of VAE."""
    if not (hasattr(vae, "tile_latent_min_size") and hasattr(vae, "tile_overlap_factor")):
        return 0
    stride = int(vae.tile_latent_min_size * (1 - vae.tile_overlap_factor))
    height, width = latents.shape[-2:]
    return math.ceil(height / stride) * math.ceil(width / stride)
