"""More leaks to plant: between the parts of a pipeline, and in ways that only look harmless.

Guards, caches, early ends, pooled words, the safety checker, what is made of decoded pictures.
Each takes a pipeline and a `pytest.MonkeyPatch` and is undone with it, as those of `leaks.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import diffusers
import pytest
import torch
from leaks import Plant, of_output, on_input, on_output, part_of

_TINY: Final = 1e-6

Change = Callable[[torch.Tensor], torch.Tensor]


def _of_method(owner: str, name: str, change: Change) -> Plant:
    """Change what a method of the pipeline, or of something that it has, returns first."""

    def plant(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
        part = part_of(pipeline, owner) if owner else pipeline
        original = getattr(part, name)

        def changed(*args: Any, **kwargs: Any) -> Any:
            output = original(*args, **kwargs)
            if isinstance(output, tuple):
                return (change(output[0]), *output[1:])
            return change(output)

        changed.__wrapped__ = original  # type: ignore[attr-defined]
        patch.setattr(part, name, changed)

    return plant


def _of_scaling(change: Change) -> Plant:
    """Change what a scheduler makes of the latents before the denoiser sees them."""

    def plant(_pipeline: Any, patch: pytest.MonkeyPatch) -> None:
        def scale(_self: Any, sample: torch.Tensor, *_args: Any, **_kwargs: Any) -> torch.Tensor:
            return change(sample)

        patch.setattr(diffusers.DDIMScheduler, "scale_model_input", scale)

    return plant


def _of_step(change: Callable[[Any, torch.Tensor], torch.Tensor]) -> Plant:
    def plant(_pipeline: Any, patch: pytest.MonkeyPatch) -> None:
        original = diffusers.DDIMScheduler.step

        def step(self: Any, *args: Any, **kwargs: Any) -> Any:
            output = original(self, *args, **kwargs)
            return (change(self, output[0]), *output[1:])

        step.__wrapped__ = original  # type: ignore[attr-defined]
        patch.setattr(diffusers.DDIMScheduler, "step", step)

    return plant


def _norms(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.nan_to_num(0, 0, 0).flatten(1).norm(dim=1)


def _first_row_for_all(tensor: torch.Tensor) -> torch.Tensor:
    return tensor + tensor[:1] * _TINY


def _last_row_for_all(tensor: torch.Tensor) -> torch.Tensor:
    return tensor + tensor[-1:] * _TINY


def _second_row_for_all(tensor: torch.Tensor) -> torch.Tensor:
    second = tensor[1:2] if len(tensor) > 1 else tensor
    return tensor + second.nan_to_num(0, 0, 0) * _TINY


def _guard_against_nan(tensor: torch.Tensor) -> torch.Tensor:
    return tensor * (1 + _TINY) if bool(tensor.isnan().any()) else tensor


def _guard_against_infinity(tensor: torch.Tensor) -> torch.Tensor:
    return tensor * (1 + _TINY) if bool(tensor.isinf().any()) else tensor


def _rows_that_hold_something(tensor: torch.Tensor) -> torch.Tensor:
    return tensor * (1 + _TINY * int((_norms(tensor) > 0).sum()))


def _median(tensor: torch.Tensor) -> torch.Tensor:
    return tensor + tensor.nan_to_num(0, 0, 0).median(dim=0).values * _TINY


def _as_large_as_the_largest(tensor: torch.Tensor) -> torch.Tensor:
    norms = _norms(tensor)
    return tensor * (1 + _TINY * norms.max() / norms.mean().clamp(min=1))


def _one_norm_for_all(tensor: torch.Tensor) -> torch.Tensor:
    norms = _norms(tensor)
    return tensor * (1 + _TINY * int(norms.max() > 2 * norms.min()))


def _pairs(tensor: torch.Tensor) -> torch.Tensor:
    """Mix what lies two by two, as slices of a batch that are normalised together do."""
    mixed = tensor.clone()
    for start in range(0, tensor.shape[0] - 1, 2):
        mixed[start : start + 2] += tensor[start : start + 2].mean(dim=0) * _TINY
    return mixed


def _fewer_steps_for_quiet_batches(_pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """An early end: from some step on nothing changes when the whole batch is small."""

    def change(scheduler: Any, latents: torch.Tensor) -> torch.Tensor:
        del scheduler
        return latents if float(latents.nan_to_num(0, 0, 0).abs().max()) > 100 else latents * 0.5

    _of_step(change)(_pipeline, patch)


def _negative_words_of_the_first(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """One row of words without a prompt is enough for everybody, somebody thought."""
    original = pipeline.encode_prompt

    def encode_prompt(*args: Any, **kwargs: Any) -> Any:
        words, none = original(*args, **kwargs)
        return words + words[:1] * 1e-3, none

    patch.setattr(pipeline, "encode_prompt", encode_prompt)


def _attends_to_the_neighbour(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """Keys of the row before, weighed down to almost nothing."""
    layer = part_of(pipeline, "unet.mid_block.attentions.0.transformer_blocks.0.attn1.to_k")

    def keys(_module: Any, _args: Any, _kwargs: Any, output: torch.Tensor) -> torch.Tensor:
        return output + output.roll(1, dims=0) * 1e-4

    on_output(layer, patch, keys)


def _running_statistics(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """A norm that was left in training mode."""
    state = {"mean": torch.zeros(())}

    def norm(_module: Any, _args: Any, _kwargs: Any, output: Any) -> Any:
        state["mean"] = 0.9 * state["mean"] + 0.1 * output[0].nan_to_num(0, 0, 0).mean()
        return (output[0] + state["mean"] * 1e-4, *output[1:])

    on_output(pipeline.unet, patch, norm)


def _remembered_by_timestep(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """What another batch left behind at the same timestep, in an earlier call."""
    kept: dict[int, torch.Tensor] = {}

    def cached(_module: Any, args: Any, kwargs: Any, output: Any) -> Any:
        timestep = int(args[1] if len(args) > 1 else kwargs["timestep"])
        before = kept.get(timestep)
        kept[timestep] = output[0].nan_to_num(0, 0, 0).mean(dim=0)
        rows = output[0] if before is None else output[0] + before * 1e-4
        return (rows, *output[1:])

    on_output(pipeline.unet, patch, cached)


def _withheld_together(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """A safety checker that withholds all pictures of a batch for the sake of one."""

    def check(image: Any, *_args: Any, **_kwargs: Any) -> Any:
        bad = bool((image.flatten(1).std(dim=1) < 1e-3).any())
        return image, [bad] * len(image)

    patch.setattr(pipeline, "run_safety_checker", check)


def _written_behind(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """The latents of the row before are touched after they were used: seen at the next step."""

    def touch(_module: Any, args: Any, _kwargs: Any) -> None:
        rows = args[0]
        rows.copy_(rows + rows.roll(1, dims=0) * _TINY)

    on_input(pipeline.unet, patch, touch)


MORE_LEAKS: Final[dict[str, Plant]] = {
    "between: latents scaled by a mean": _of_scaling(lambda t: t + t.mean(dim=0) * _TINY),
    "between: latents scaled by the largest": _of_scaling(_as_large_as_the_largest),
    "between: the first row for all": _of_scaling(_first_row_for_all),
    "between: the last row for all": _of_scaling(_last_row_for_all),
    "between: pooled latents at the start": _of_method(
        "", "prepare_latents", lambda t: t - t.mean(dim=0) * _TINY
    ),
    "between: words of the first": _negative_words_of_the_first,
    "between: a mean of the pictures": _of_method(
        "image_processor", "postprocess", lambda t: t + t.mean(dim=0) * 1e-3
    ),
    "between: withheld together": _withheld_together,
    "between: the second row for all": _of_scaling(_second_row_for_all),
    "scheduler: the second row for all": _of_step(lambda _, t: _second_row_for_all(t)),
    "denoiser: the second row for all": of_output("unet", _second_row_for_all),
    "scheduler: a guard against NaN": _of_step(lambda _, t: _guard_against_nan(t)),
    "scheduler: two by two": _of_step(lambda _, t: _pairs(t)),
    "scheduler: the first row for all": _of_step(lambda _, t: _first_row_for_all(t)),
    "scheduler: an early end": _fewer_steps_for_quiet_batches,
    "denoiser: a guard against NaN": of_output("unet.conv_in", _guard_against_nan),
    "denoiser: a guard against infinity": of_output("unet.conv_in", _guard_against_infinity),
    "denoiser: empty rows counted": of_output("unet.conv_in", _rows_that_hold_something),
    "denoiser: a median": of_output("unet", _median),
    "denoiser: one norm for all": of_output("unet.mid_block", _one_norm_for_all),
    "denoiser: two by two": of_output("unet.conv_norm_out", _pairs),
    "denoiser: keys of the row before": _attends_to_the_neighbour,
    "denoiser: running statistics": _running_statistics,
    "denoiser: a cache by timestep": _remembered_by_timestep,
    "denoiser: written after use": _written_behind,
    "decoder: the first row for all": of_output("vae.decoder.conv_in", _first_row_for_all),
    "decoder: the last row for all": of_output("vae.decoder.conv_in", _last_row_for_all),
    "decoder: the second row for all": of_output("vae.decoder.conv_in", _second_row_for_all),
    "decoder: two by two": of_output("vae.decoder.mid_block", _pairs),
    "decoder: a guard against NaN": of_output("vae.decoder.conv_in", _guard_against_nan),
}
"""By what leaks and how."""
