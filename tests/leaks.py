"""Leaks to plant in a Stable-Diffusion-shaped pipeline: ways for a neighbour to reach a picture.

Each takes a pipeline and a `pytest.MonkeyPatch` and is undone with it. They stand for what models,
kernels and wrappers really do: dynamic quantisation, statistics over the batch, caches, writes in
place, one generator for all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import diffusers
import pytest
import torch

Plant = Callable[[Any, pytest.MonkeyPatch], None]
_TINY: Final = 1e-6


def _first(output: Any) -> torch.Tensor:
    return output[0] if isinstance(output, tuple) else getattr(output, "sample", output)


def on_output(part: Any, patch: pytest.MonkeyPatch, change: Callable[..., Any]) -> None:
    """Register a forward hook that is removed when the test ends."""
    handle = part.register_forward_hook(change, with_kwargs=True)
    _remove_later(handle, patch)


def on_input(part: Any, patch: pytest.MonkeyPatch, change: Callable[..., Any]) -> None:
    handle = part.register_forward_pre_hook(change, with_kwargs=True)
    _remove_later(handle, patch)


class _Undo:
    """Removes a hook when monkeypatch puts its attribute back."""

    def __init__(self, handle: Any) -> None:
        self.__dict__["_handle"] = handle

    def __setattr__(self, name: str, value: Any) -> None:
        if value is None:
            self._handle.remove()
        self.__dict__[name] = value


def _remove_later(handle: Any, patch: pytest.MonkeyPatch) -> None:
    undo = _Undo(handle)
    undo.__dict__["hook"] = None
    patch.setattr(undo, "hook", "planted")


def of_output(part: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Plant:
    def plant(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
        def hook(_module: Any, _args: Any, _kwargs: Any, output: Any) -> Any:
            changed = change(_first(output))
            return (changed, *output[1:]) if isinstance(output, tuple) else changed

        on_output(part_of(pipeline, part), patch, hook)

    return plant


def part_of(pipeline: Any, name: str) -> Any:
    part = pipeline
    for step in name.split("."):
        part = part[int(step)] if step.isdigit() else getattr(part, step)
    return part


def _quantised(tensor: torch.Tensor) -> torch.Tensor:
    """Round to 255 steps of the largest value of the whole tensor, as dynamic quantisation does."""
    scale = tensor.abs().max() / 127
    return (tensor / scale).round() * scale


def _at_one_timestep(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    def hook(_module: Any, args: Any, kwargs: Any, output: Any) -> Any:
        timestep = args[1] if len(args) > 1 else kwargs["timestep"]
        if int(timestep) > 200:
            return output
        return (output[0] + output[0].mean(dim=0) * _TINY, *output[1:])

    on_output(pipeline.unet, patch, hook)


def _without_guidance_only(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    def hook(_module: Any, _args: Any, _kwargs: Any, output: Any) -> Any:
        if output[0].shape[0] > 4:
            return output
        return (output[0] + output[0].mean(dim=0) * _TINY, *output[1:])

    on_output(pipeline.unet, patch, hook)


def _cache_of_the_last_call(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    last: list[torch.Tensor] = []

    def hook(_module: Any, _args: Any, _kwargs: Any, output: Any) -> Any:
        before = last[-1] if last and last[-1].shape == output[0].mean(dim=0).shape else 0
        last.append(output[0].mean(dim=0))
        return (output[0] + before * _TINY, *output[1:])

    on_output(pipeline.unet, patch, hook)


def _written_in_place(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    def hook(_module: Any, args: Any, _kwargs: Any) -> None:
        rows = args[0]
        rows[0].add_(rows[1] * _TINY)

    on_input(pipeline.unet, patch, hook)


def _one_token(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    def hook(_module: Any, args: Any, kwargs: Any) -> Any:
        words = kwargs["encoder_hidden_states"].clone()
        words[:, 3] += words[:, 3].mean(dim=0) * _TINY
        return args, kwargs | {"encoder_hidden_states": words}

    on_input(pipeline.unet, patch, hook)


def _negative_words(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    def hook(_module: Any, _args: Any, _kwargs: Any, output: Any) -> Any:
        rows = output[0].clone()
        half = len(rows) // 2
        rows[:half] += rows[:half].mean(dim=0) * _TINY
        return (rows, *output[1:])

    on_output(pipeline.unet, patch, hook)


def _one_head(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    attention = next(
        module for name, module in pipeline.unet.named_modules() if name.endswith("attn2.to_v")
    )

    def hook(_module: Any, _args: Any, _kwargs: Any, output: torch.Tensor) -> torch.Tensor:
        changed = output.clone()
        changed[..., :4] += output[..., :4].roll(1, dims=0) * _TINY
        return changed

    on_output(attention, patch, hook)


def _longest_prompt(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    def hook(_module: Any, args: Any, kwargs: Any, output: Any) -> Any:
        tokens = args[0] if args else kwargs["input_ids"]
        longest = int((tokens != 1).sum(dim=1).max())
        output["last_hidden_state"] = output["last_hidden_state"] + longest * _TINY
        return output

    on_output(pipeline.text_encoder, patch, hook)


def _text_pooled_over_the_batch(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    def hook(_module: Any, _args: Any, _kwargs: Any, output: torch.Tensor) -> torch.Tensor:
        return output + output.mean(dim=0) * 1e-4

    on_output(_embeddings(pipeline), patch, hook)


def _embeddings(pipeline: Any) -> Any:
    layers = [m for m in pipeline.text_encoder.modules() if isinstance(m, torch.nn.LayerNorm)]
    return layers[0]


def _decode(change: Callable[[torch.Tensor], torch.Tensor]) -> Plant:
    def plant(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
        original = pipeline.vae.decode

        def decode(latents: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            output = original(latents, *args, **kwargs)
            return (change(output[0]), *output[1:])

        patch.setattr(pipeline.vae, "decode", decode)

    return plant


def _scheduler(change: Callable[[torch.Tensor], torch.Tensor]) -> Plant:
    def plant(_pipeline: Any, patch: pytest.MonkeyPatch) -> None:
        original = diffusers.DDIMScheduler.step

        def step(self: Any, *args: Any, **kwargs: Any) -> Any:
            output = original(self, *args, **kwargs)
            changed = change(output[0])
            return (changed, *output[1:])

        step.__wrapped__ = original  # type: ignore[attr-defined]
        patch.setattr(diffusers.DDIMScheduler, "step", step)

    return plant


def _scheduler_state(_pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    original = diffusers.DDIMScheduler.step

    def step(self: Any, output: Any, timestep: Any, sample: Any, *args: Any, **kwargs: Any) -> Any:
        before = getattr(self, "kept", None)
        self.kept = output.mean(dim=0)
        if before is not None:
            output = output + before * _TINY
        return original(self, output, timestep, sample, *args, **kwargs)

    step.__wrapped__ = original  # type: ignore[attr-defined]
    patch.setattr(diffusers.DDIMScheduler, "step", step)


def _one_generator(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    original = pipeline.prepare_latents

    @functools.wraps(original)  # How noise is mixed goes by the names of its arguments.
    def prepare_latents(*args: Any, **kwargs: Any) -> Any:
        shared = [a[0] if isinstance(a, list) else a for a in args]
        return original(*shared, **kwargs)

    patch.setattr(pipeline, "prepare_latents", prepare_latents)


def _global_state(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    def hook(_module: Any, _args: Any, _kwargs: Any, output: Any) -> Any:
        return (output[0] + torch.rand(1) * _TINY, *output[1:])

    on_output(pipeline.unet, patch, hook)


def _ranked(tensor: torch.Tensor) -> torch.Tensor:
    order = tensor.flatten(1).nan_to_num(0).norm(dim=1).argsort().argsort()
    return tensor + order.reshape(-1, *[1] * (tensor.ndim - 1)).to(tensor.dtype) * _TINY


def _last_slot(tensor: torch.Tensor) -> torch.Tensor:
    changed = tensor.clone()
    changed[-1] *= 1 + _TINY
    return changed


LEAKS: Final[dict[str, Plant]] = {
    "denoiser: a millionth of the mean": of_output("unet", lambda t: t + t.mean(dim=0) * _TINY),
    "denoiser: a millionth of the maximum": of_output("unet", lambda t: t + t.amax(0) * _TINY),
    "denoiser: int8 with one scale": of_output("unet.conv_in", _quantised),
    "denoiser: normalised over the batch": of_output(
        "unet.conv_norm_out", lambda t: t / (1 + t.std(dim=0) * _TINY)
    ),
    "denoiser: the neighbour before": of_output("unet", lambda t: t + t.roll(1, 0) * _TINY),
    "denoiser: the neighbour after": of_output("unet", lambda t: t + t.roll(-1, 0) * _TINY),
    "denoiser: the opposite neighbour": of_output("unet", lambda t: t + t.roll(2, 0) * _TINY),
    "denoiser: order of size": of_output("unet", _ranked),
    "denoiser: mean that passes over NaN": of_output(
        "unet", lambda t: t + t.nanmean(dim=0) * _TINY
    ),
    "denoiser: maximum that passes over NaN": of_output(
        "unet", lambda t: t + t.nan_to_num(0).abs().max() * _TINY
    ),
    "denoiser: clipped to what the batch has": of_output(
        "unet", lambda t: t.clamp(max=float(t.nan_to_num(0).flatten(1).amax(1).sort()[0][1]))
    ),
    "denoiser: in the middle block": of_output(
        "unet.mid_block", lambda t: t + t.mean(dim=0) * _TINY
    ),
    "denoiser: the last slot": of_output("unet", _last_slot),
    "denoiser: one head": _one_head,
    "denoiser: one timestep": _at_one_timestep,
    "denoiser: one token": _one_token,
    "denoiser: negative words": _negative_words,
    "denoiser: a cache of the last call": _cache_of_the_last_call,
    "denoiser: written in place": _written_in_place,
    "decoder: a hundredth of the maximum": _decode(lambda t: t + t.max() * 0.01),
    "decoder: int8 with one scale": of_output("vae.decoder.conv_in", _quantised),
    "decoder: a mean before it": of_output(
        "vae.post_quant_conv", lambda t: t + t.mean(dim=0) * _TINY
    ),
    "decoder: maximum that passes over NaN": _decode(
        lambda t: t + t.nan_to_num(0).abs().max() * _TINY
    ),
    "decoder: the last slot": _decode(_last_slot),
    "text encoder: a mean of the batch": _text_pooled_over_the_batch,
    "text encoder: the longest prompt": _longest_prompt,
    "scheduler: a mean of the batch": _scheduler(lambda t: t + t.mean(dim=0) * _TINY),
    "scheduler: clipped to what the batch has": _scheduler(
        lambda t: t / (1 + t.nan_to_num(0).abs().max() * _TINY)
    ),
    "scheduler: state from the step before": _scheduler_state,
    "noise: one generator for all": _one_generator,
    "noise: the process's own": _global_state,
}
"""By what leaks and how."""

WITHOUT_GUIDANCE: Final[dict[str, Plant]] = {"denoiser: without guidance": _without_guidance_only}
"""A leak that is not there when there are negative words as well."""
