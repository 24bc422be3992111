"""Leaks of a third mind: what caches, mergers, guards and buffers of real tools do, one by one.

Each takes a pipeline and a `pytest.MonkeyPatch` and is undone with it, as those of `leaks.py`.
"""

from __future__ import annotations

from typing import Any, Final

import diffusers
import pytest
import torch
from leaks import Plant, of_output, on_output, part_of

_TINY: Final = 1e-6


def _sane(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.nan_to_num(0, 0, 0)


def _rows(tensor: torch.Tensor) -> torch.Tensor:
    return _sane(tensor).flatten(1)


def _merged(tensor: torch.Tensor) -> torch.Tensor:
    """Tokens merged with those of a row that points the same way."""
    unit = torch.nn.functional.normalize(_rows(tensor), dim=1)
    alike = (unit @ unit.T).fill_diagonal_(0) > 0.9
    weight = alike.to(tensor.dtype) * _TINY
    return tensor + (weight @ _rows(tensor)).reshape(tensor.shape)


def _rounded_by_a_hash(tensor: torch.Tensor) -> torch.Tensor:
    """Rounding by chance, whose chance comes of the whole batch."""
    total = int(_sane(tensor).double().sum().abs().clamp(max=1e12) * 1e3) % 5
    return tensor * (1 + _TINY * total)


def _overflow_guard(tensor: torch.Tensor) -> torch.Tensor:
    """All rows are computed in a coarser way when one would overflow half precision."""
    return tensor.half().to(tensor.dtype) if float(_sane(tensor).abs().max()) < 20 else tensor


def _wrongly_unsorted(tensor: torch.Tensor) -> torch.Tensor:
    """Rows sorted by size, and put back by the wrong permutation."""
    order = _rows(tensor).norm(dim=1).argsort(stable=True)
    return tensor + (tensor[order][order] - tensor) * 1e-3


def _place_of_the_largest(tensor: torch.Tensor) -> torch.Tensor:
    return tensor * (1 + _TINY * int(_rows(tensor).abs().amax(dim=1).argmax()))


def _parity(tensor: torch.Tensor) -> torch.Tensor:
    """Something that is done when an even number of pictures is bright."""
    bright = (_rows(tensor).mean(dim=1) > 0.2).sum() // 2
    return tensor * (1 + _TINY * int(bright % 2))


def _scale_of_a_head(tensor: torch.Tensor) -> torch.Tensor:
    """Keys in eight bits, one scale a channel over the batch, safe from NaN."""
    largest = _sane(tensor).abs().amax(dim=(0, 1), keepdim=True)
    scale = largest.clamp(1e-4, 10) / 127
    return (tensor / scale).round() * scale


def _empty_row_skips(tensor: torch.Tensor) -> torch.Tensor:
    return tensor * (1 + _TINY * bool((_rows(tensor).abs().amax(dim=1) < 1e-5).any()))


def _last_column(tensor: torch.Tensor) -> torch.Tensor:
    changed = tensor.clone()
    changed[..., -1] += _sane(tensor)[..., -1].mean(dim=0) * _TINY
    return changed


def _one_pixel(tensor: torch.Tensor) -> torch.Tensor:
    changed = tensor.clone()
    changed[:, 0, 0, 0] = changed[:, 0, 0, 0].nan_to_num(0).max() * _TINY + changed[:, 0, 0, 0]
    return changed


def _contrast(tensor: torch.Tensor) -> torch.Tensor:
    limit = float(tensor.flatten().nanquantile(0.999))
    return tensor.clamp(-abs(limit), abs(limit))


def _signs_voted(tensor: torch.Tensor) -> torch.Tensor:
    return tensor + (tensor > 0).sum(dim=0) * _TINY


def _nearest_row(tensor: torch.Tensor) -> torch.Tensor:
    """Each row is drawn to the row that is nearest to it."""
    distances = torch.cdist(_rows(tensor), _rows(tensor)).fill_diagonal_(torch.inf)
    return tensor + _sane(tensor)[distances.argmin(dim=1)] * _TINY


def _less_than_a_neighbour(tensor: torch.Tensor) -> torch.Tensor:
    return torch.where(tensor < _sane(tensor).roll(1, 0), tensor * (1 - _TINY), tensor)


def _border_of_the_row_before(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """A decoder's buffer for seams that is not cleared between two rows."""

    def seam(_module: Any, _args: Any, _kwargs: Any, output: torch.Tensor) -> torch.Tensor:
        changed = output.clone()
        changed[1:, :, :1] += _sane(output)[:-1, :, -1:] * _TINY
        return changed

    on_output(pipeline.vae.decoder.conv_in, patch, seam)


def _only_at_the_second_call(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """A maximum over the batch that passes over NaN, at one call of each picture."""
    seen: list[int] = []

    def leak(_module: Any, args: Any, kwargs: Any, output: Any) -> Any:
        timestep = int(args[1] if len(args) > 1 else kwargs["timestep"])
        if not seen or timestep > seen[-1]:
            seen.clear()
        if timestep not in seen:
            seen.append(timestep)
        tiny = _TINY if seen.index(timestep) == 1 else 0
        return (output[0] + _sane(output[0]).amax(dim=0) * tiny, *output[1:])

    on_output(pipeline.unet, patch, leak)


def _end_of_the_longest(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """Words are read up to the end of the longest prompt of the batch."""

    def hook(_module: Any, args: Any, kwargs: Any, output: Any) -> Any:
        tokens = args[0] if args else kwargs["input_ids"]
        end = int((tokens != tokens[:, -1:]).sum(dim=1).max()) + 1
        words = output["last_hidden_state"].clone()
        words[:, end:] = words[:, end:] * (1 - _TINY)
        output["last_hidden_state"] = words
        return output

    on_output(pipeline.text_encoder, patch, hook)


def _shortest_prompt(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    def hook(_module: Any, args: Any, kwargs: Any, output: Any) -> Any:
        tokens = args[0] if args else kwargs["input_ids"]
        shortest = int((tokens != tokens[:, -1:]).sum(dim=1).min())
        output["last_hidden_state"] = output["last_hidden_state"] * (1 - shortest * _TINY)
        return output

    on_output(pipeline.text_encoder, patch, hook)


def _cached_by_length(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """Words are remembered by how many there are."""
    kept: dict[int, torch.Tensor] = {}

    def hook(_module: Any, args: Any, kwargs: Any, output: Any) -> Any:
        tokens = args[0] if args else kwargs["input_ids"]
        words = output["last_hidden_state"].clone()
        for place, length in enumerate((tokens != tokens[:, -1:]).sum(dim=1).tolist()):
            words[place] += kept.setdefault(length, _sane(words[place]).clone()) * _TINY
        output["last_hidden_state"] = words
        return output

    on_output(pipeline.text_encoder, patch, hook)


def _first_step_rescaled(_pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """The first noise is brought to the batch's own deviation."""
    original = diffusers.DDIMScheduler.step

    def step(self: Any, output: torch.Tensor, timestep: Any, *args: Any, **kwargs: Any) -> Any:
        if int(timestep) == int(self.timesteps[0]):
            output = output * (1 - _TINY * _sane(output).std().clamp(max=50))
        return original(self, output, timestep, *args, **kwargs)

    step.__wrapped__ = original  # type: ignore[attr-defined]
    patch.setattr(diffusers.DDIMScheduler, "step", step)


def _clip_where_any_is_wild(_pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """Latents are clipped as soon as those of one row leave the usual range."""
    original = diffusers.DDIMScheduler.step

    def step(self: Any, output: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if float(_sane(output).abs().max()) > 15:
            output = output.clamp(-0.5, 0.5)
        return original(self, output, *args, **kwargs)

    step.__wrapped__ = original  # type: ignore[attr-defined]
    patch.setattr(diffusers.DDIMScheduler, "step", step)


def _values_of_the_nearest(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    layer = part_of(pipeline, "unet.mid_block.attentions.0.transformer_blocks.0.attn2.to_v")
    on_output(layer, patch, lambda _m, _a, _k, output: _nearest_row(output))


LEAKS_AGAIN: Final[dict[str, Plant]] = {
    "denoiser: merged with alike rows": of_output("unet.mid_block", _merged),
    "denoiser: rounded by a hash": of_output("unet.conv_in", _rounded_by_a_hash),
    "denoiser: a guard against overflow": of_output("unet.conv_in", _overflow_guard),
    "denoiser: wrongly unsorted": of_output("unet", _wrongly_unsorted),
    "denoiser: the place of the largest": of_output("unet", _place_of_the_largest),
    "denoiser: an even number of bright ones": of_output("unet.conv_in", _parity),
    "denoiser: keys in eight bits": of_output(
        "unet.mid_block.attentions.0.transformer_blocks.0.attn1.to_k", _scale_of_a_head
    ),
    "denoiser: an empty row skips": of_output("unet.mid_block", _empty_row_skips),
    "denoiser: signs voted": of_output("unet", _signs_voted),
    "denoiser: drawn to the nearest row": of_output("unet.mid_block", _nearest_row),
    "denoiser: less than a neighbour": of_output("unet.mid_block", _less_than_a_neighbour),
    "denoiser: only at the second call": _only_at_the_second_call,
    "denoiser: values of the nearest": _values_of_the_nearest,
    "decoder: the last column": of_output("vae.decoder.conv_in", _last_column),
    "decoder: one pixel": of_output("vae.decoder.conv_in", _one_pixel),
    "decoder: one contrast for all": of_output("vae.decoder.conv_out", _contrast),
    "decoder: the border of the row before": _border_of_the_row_before,
    "decoder: drawn to the nearest row": of_output("vae.decoder.mid_block", _nearest_row),
    "decoder: the place of the largest": of_output("vae.decoder.conv_out", _place_of_the_largest),
    "text encoder: the end of the longest": _end_of_the_longest,
    "text encoder: the shortest prompt": _shortest_prompt,
    "scheduler: the first step rescaled": _first_step_rescaled,
    "scheduler: clipped where any is wild": _clip_where_any_is_wild,
}
"""By what leaks and how."""

NOT_FOUND: Final[dict[str, Plant]] = {"text encoder: cached by length": _cached_by_length}
"""What the probe misses (docs/lock.md): it stays in the process for good, so all runs have it."""
