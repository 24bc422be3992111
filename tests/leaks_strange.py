"""Leaks of another mind than those of `leaks.py`, invented by somebody who knew the probe.

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


def _coarser_when_something_is_large(tensor: torch.Tensor) -> torch.Tensor:
    """A format that is chosen for the whole batch by what it holds."""
    is_large = float(_sane(tensor).abs().max()) > 20
    return tensor.bfloat16().to(tensor.dtype) if is_large else tensor


def _smallest(tensor: torch.Tensor) -> torch.Tensor:
    return tensor + tensor.sort(dim=0).values[:1] * _TINY


def _two_largest(tensor: torch.Tensor) -> torch.Tensor:
    return tensor + tensor.nan_to_num(0).topk(min(2, len(tensor)), dim=0).values[-1:] * _TINY


def _sums_so_far(tensor: torch.Tensor) -> torch.Tensor:
    return tensor + (tensor.cumsum(dim=0) - tensor) * _TINY


def _attention_over_the_batch(tensor: torch.Tensor) -> torch.Tensor:
    """An axis that was forgotten when a tensor was folded: rows attend to each other."""
    rows = tensor.flatten(1)
    mixed = (rows @ rows.T).softmax(dim=-1) @ rows
    return tensor + mixed.reshape(tensor.shape) * _TINY


def _dropped_by_rank(tensor: torch.Tensor) -> torch.Tensor:
    """The quietest row of a batch loses its smallest values."""
    kept = tensor.clone()
    quietest = int(_sane(tensor).flatten(1).norm(dim=1).argmin())
    kept[quietest] = torch.where(tensor[quietest].abs() < 1e-3, 0, tensor[quietest])
    return kept


def _capacity(tensor: torch.Tensor) -> torch.Tensor:
    """An expert that takes only so many rows of a batch, first come, first served."""
    wants = _sane(tensor).flatten(1).mean(dim=1) > 0
    is_late = wants & (wants.cumsum(dim=0) > 1)
    return tensor * (1 + _TINY * is_late.reshape(-1, *[1] * (tensor.ndim - 1)))


def _quantile(tensor: torch.Tensor) -> torch.Tensor:
    """Dynamic thresholding with one threshold for all."""
    return tensor.clamp(max=float(tensor.flatten().nanquantile(0.95)))


def _stretched_together(tensor: torch.Tensor) -> torch.Tensor:
    low, high = tensor.nan_to_num(0).min(), tensor.nan_to_num(0).max()
    return tensor * (1 + _TINY * (high - low).clamp(max=100))


def _alike_are_computed_once(tensor: torch.Tensor) -> torch.Tensor:
    """A row that is like the one before it takes that one's numbers."""
    result = tensor.clone()
    for place in range(1, len(tensor)):
        if torch.allclose(tensor[place], tensor[place - 1], rtol=0.3, atol=0.3):
            result[place] = result[place - 1]
    return result


def _any_row_is_positive(tensor: torch.Tensor) -> torch.Tensor:
    is_some = bool((_sane(tensor).flatten(1).mean(dim=1) > 0).all())
    return tensor * (1 + _TINY) if is_some else tensor


def _cached_by_id(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """What was computed for a tensor that lay at the same place is taken for this one."""
    kept: dict[int, torch.Tensor] = {}

    def cached(_module: Any, args: Any, _kwargs: Any, output: Any) -> Any:
        key = args[0].data_ptr()
        before = kept.get(key, output[0])
        kept[key] = output[0]
        same = before.shape == output[0].shape
        return (output[0] + (_sane(before).mean(dim=0) * 1e-4 if same else 0), *output[1:])

    on_output(pipeline.unet, patch, cached)


def _trained_while_it_decodes(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """A norm of the decoder that was left in training mode."""
    norm = torch.nn.BatchNorm2d(3, affine=False)
    of_output("vae.decoder", lambda t: t + norm(t.float()).to(t.dtype) * _TINY)(pipeline, patch)


def _mask_where_any_is_short(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """A mask is laid over all rows as soon as one of them is padded."""

    def hook(_module: Any, args: Any, kwargs: Any, output: Any) -> Any:
        tokens = args[0] if args else kwargs["input_ids"]
        is_padded = bool((tokens[:, -2] == tokens[:, -1]).any())
        output["last_hidden_state"] = output["last_hidden_state"] * (1 - _TINY * is_padded)
        return output

    on_output(pipeline.text_encoder, patch, hook)


def _rescaled_together(_pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """Guidance is rescaled by the deviation of the whole batch."""
    original = diffusers.DDIMScheduler.step

    def step(self: Any, output: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return original(self, output * (1 - _TINY * _sane(output).std()), *args, **kwargs)

    step.__wrapped__ = original  # type: ignore[attr-defined]
    patch.setattr(diffusers.DDIMScheduler, "step", step)


def _shared_index(_pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """A scheduler counts quiet rows, and goes by that number at its next step."""
    original = diffusers.DDIMScheduler.step

    def step(self: Any, output: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        seen = getattr(self, "num_seen", 0)
        self.num_seen = seen + int((_sane(output).flatten(1).norm(dim=1) < 1).sum())
        return original(self, output * (1 - _TINY * seen), *args, **kwargs)

    step.__wrapped__ = original  # type: ignore[attr-defined]
    patch.setattr(diffusers.DDIMScheduler, "step", step)


def _keys_of_all(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """One layer of attention has a key more: the mean of everybody's."""
    layer = part_of(pipeline, "unet.mid_block.attentions.0.transformer_blocks.0.attn1.to_v")
    on_output(layer, patch, lambda _m, _a, _k, output: output + _sane(output).mean(dim=0) * _TINY)


STRANGE_LEAKS: Final[dict[str, Plant]] = {
    "denoiser: coarser when something is large": of_output(
        "unet.conv_in", _coarser_when_something_is_large
    ),
    "denoiser: the smallest": of_output("unet", _smallest),
    "denoiser: the second largest": of_output("unet", _two_largest),
    "denoiser: sums so far": of_output("unet", _sums_so_far),
    "denoiser: attention over the batch": of_output("unet.mid_block", _attention_over_the_batch),
    "denoiser: an expert's capacity": of_output("unet.mid_block", _capacity),
    "denoiser: one threshold for all": of_output("unet", _quantile),
    "denoiser: any row is positive": of_output("unet.conv_in", _any_row_is_positive),
    "denoiser: a cache by place in memory": _cached_by_id,
    "denoiser: a key of everybody's": _keys_of_all,
    "decoder: stretched together": of_output("vae.decoder.conv_out", _stretched_together),
    "decoder: left in training": _trained_while_it_decodes,
    "decoder: an expert's capacity": of_output("vae.decoder.conv_in", _capacity),
    "scheduler: rescaled together": _rescaled_together,
    "scheduler: an index for all": _shared_index,
    "denoiser: dropped by rank": of_output("unet.conv_in", _dropped_by_rank),
    "denoiser: alike rows computed once": of_output("unet.conv_in", _alike_are_computed_once),
    "text encoder: a mask where any is short": _mask_where_any_is_short,
}
"""By what leaks and how."""
