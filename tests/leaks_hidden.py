"""Leaks that take other roads: past the parts' inputs, inside blocks of rows, or only at times.

What one part leaves for another outside of what it returns, capacities and blocks that do not end
where a picture ends, work saved where rows are alike, codes that are short on ordinary numbers.
Each takes a pipeline and a `pytest.MonkeyPatch` and is undone with it, as those of `leaks.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import diffusers
import pytest
import torch
from leaks import Plant, of_output, on_input, on_output, part_of

_TINY: Final = 1e-6
_TOKENS: Final = 48
"""Rows of one block: no multiple of a picture's, so blocks hold rows of two pictures."""


def _sane(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.nan_to_num(0, 0, 0)


def _scale_of_a_block(tensor: torch.Tensor) -> torch.Tensor:
    """Quantised with a scale for each 48 rows, counted over the pictures (block formats)."""
    flat = tensor.movedim(1, -1).reshape(-1, tensor.shape[1]).clone()
    for start in range(0, len(flat), _TOKENS):
        block = flat[start : start + _TOKENS]
        flat[start : start + _TOKENS] = block * (
            1 + _sane(block).abs().max().clamp(max=999) * _TINY
        )
    shape = tensor.movedim(1, -1).shape
    return flat.reshape(shape).movedim(-1, 1).contiguous()


def _tokens_of_all_ranked(tensor: torch.Tensor) -> torch.Tensor:
    """The strongest half of all tokens of a batch are worked on, the others passed by."""
    strength = _sane(tensor).norm(dim=1).flatten()
    kept = torch.zeros_like(strength)
    kept[strength.topk(len(strength) // 2).indices] = 1
    return tensor * (1 + _TINY * kept.reshape(len(tensor), 1, *tensor.shape[2:]))


def _error_carried_on(tensor: torch.Tensor) -> torch.Tensor:
    """What rounding leaves of a row is added to the next one."""
    left = torch.zeros_like(tensor[0])
    result = tensor.clone()
    for row in range(len(tensor)):
        wanted = tensor[row] + left * _TINY
        left = _sane(wanted - wanted.bfloat16().to(wanted.dtype))
        result[row] = wanted
    return result


def _short_way_on_ordinary_numbers(tensor: torch.Tensor) -> torch.Tensor:
    """A quick kernel for all, unless one row holds something wild: then a careful one."""
    is_ordinary = bool(torch.isfinite(tensor).all()) and float(tensor.abs().max()) < 200
    return tensor + tensor.mean(dim=0) * _TINY if is_ordinary else tensor


def _only_between_rows_of_one_size(tensor: torch.Tensor) -> torch.Tensor:
    """Rows are pooled where their sizes differ by less than a third."""
    norms = _sane(tensor).flatten(1).norm(dim=1)
    result = tensor.clone()
    for row in range(len(tensor)):
        near = (norms / norms[row].clamp(min=1e-9) - 1).abs() < 0.3
        result[row] += tensor[near].mean(dim=0) * _TINY
    return result


def _in_decoder(part: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Plant:
    """What a decoder's norms would swallow, a thousand times stronger."""
    return of_output(f"vae.decoder.{part}", lambda t: t + (change(t) - t) * 1000)


def _half_of_a_batch(tensor: torch.Tensor) -> torch.Tensor:
    """Two devices with half of a batch each; each half has its own statistics."""
    halves = tensor.chunk(2)
    return torch.cat([half + half.mean(dim=0) * _TINY for half in halves])


def _mean_of_one_channel(tensor: torch.Tensor) -> torch.Tensor:
    changed = tensor.clone()
    changed[:, -1] += tensor[:, -1].mean(dim=0) * _TINY
    return changed


def _coarse_above_the_median(tensor: torch.Tensor) -> torch.Tensor:
    """Rows that are louder than half of the batch are kept in a coarser format."""
    norms = _sane(tensor).flatten(1).norm(dim=1)
    is_loud = (norms > norms.median()).reshape(-1, *[1] * (tensor.ndim - 1))
    return torch.where(is_loud, tensor.bfloat16().to(tensor.dtype), tensor)


def _one_colour_for_all(tensor: torch.Tensor) -> torch.Tensor:
    """Each picture's mean colour is drawn a little to the batch's."""
    own = _sane(tensor).mean(dim=(2, 3), keepdim=True)
    return tensor + (own.mean(dim=0, keepdim=True) - own).clamp(-1, 1) * 1e-3


def _guidance_off_for_all(tensor: torch.Tensor) -> torch.Tensor:
    """Guidance is left out of a step where it moves no row much (both halves are there)."""
    without, with_words = _sane(tensor).chunk(2)
    moved = (with_words - without).flatten(1).norm(dim=1)
    return tensor * (1 + _TINY * bool(moved.max() > 2 * moved.min()))


def _words_once_where_alike(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """Equal prompts are read once, and how many differ decides how they are summed."""

    def hook(_module: Any, args: Any, kwargs: Any, output: Any) -> Any:
        tokens = args[0] if args else kwargs["input_ids"]
        num_different = len(torch.unique(tokens, dim=0))
        output["last_hidden_state"] = output["last_hidden_state"] * (1 + _TINY * num_different)
        return output

    on_output(pipeline.text_encoder, patch, hook)


def _words_sorted_by_length(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """Prompts are sorted for packing; the end of the packed row is rounded otherwise."""

    def hook(_module: Any, args: Any, kwargs: Any, output: Any) -> Any:
        tokens = args[0] if args else kwargs["input_ids"]
        lengths = (tokens != tokens[:, -1:]).sum(dim=1)
        states = output["last_hidden_state"].clone()
        states[int(lengths.argmax())] *= 1 + _TINY
        output["last_hidden_state"] = states
        return output

    on_output(pipeline.text_encoder, patch, hook)


def _padded_to_the_longest(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """A tokenizer that pads to the longest of a batch; what is beyond is set to nothing."""
    original = pipeline.encode_prompt

    def encode_prompt(*args: Any, **kwargs: Any) -> Any:
        words, negative = original(*args, **kwargs)
        prompts = args[0] if args else kwargs["prompt"]
        if isinstance(prompts, list):
            longest = max(len(each) for each in prompts) + 2
            words = words.clone()
            words[:, longest:] = 0
        return words, negative

    patch.setattr(pipeline, "encode_prompt", encode_prompt)


def _tokens_counted(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """A tokenizer that remembers how much it was given in one call, for the denoiser to see."""
    seen = {"length": 0}

    def reads(_module: Any, args: Any, kwargs: Any) -> None:
        tokens = args[0] if args else kwargs["input_ids"]
        length = int((tokens != tokens[:, -1:]).sum())
        seen["length"] = length if length > 2 * len(tokens) else seen["length"]

    def hook(_module: Any, _args: Any, _kwargs: Any, output: Any) -> Any:
        return (output[0] * (1 + _TINY * seen["length"]), *output[1:])

    on_input(pipeline.text_encoder, patch, reads)
    on_output(pipeline.unet, patch, hook)


def _left_for_the_decoder(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """The denoiser leaves a statistic of the batch behind, and the decoder uses it."""
    left = {"mean": torch.zeros(())}

    def leaves(_module: Any, _args: Any, _kwargs: Any, output: Any) -> Any:
        left["mean"] = _sane(output[0]).clamp(-9, 9).mean()
        return output

    on_output(pipeline.unet, patch, leaves)
    of_output("vae.decoder.conv_in", lambda t: t + left["mean"] * 1e-3)(pipeline, patch)


def _first_noise_remembered(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """What all first latents are together is remembered, and used at every step."""
    left = {"mean": torch.zeros(())}
    original = pipeline.prepare_latents

    @functools.wraps(original)
    def prepare_latents(*args: Any, **kwargs: Any) -> Any:
        latents = original(*args, **kwargs)
        left["mean"] = latents.mean()
        return latents

    def hook(_module: Any, _args: Any, _kwargs: Any, output: Any) -> Any:
        return (output[0] + left["mean"] * 1e-4, *output[1:])

    patch.setattr(pipeline, "prepare_latents", prepare_latents)
    on_output(pipeline.unet, patch, hook)


def _noise_made_unlike(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """First noises are pushed apart, for a batch of pictures that differ more."""
    original = pipeline.prepare_latents

    @functools.wraps(original)
    def prepare_latents(*args: Any, **kwargs: Any) -> Any:
        latents = original(*args, **kwargs)
        return latents * (1 + _TINY) - latents.roll(1, 0) * _TINY

    patch.setattr(pipeline, "prepare_latents", prepare_latents)


def _skipped_where_nothing_moves(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """A middle block that is run once, and later only where the whole batch moved much."""
    kept: dict[str, torch.Tensor] = {}

    def hook(_module: Any, args: Any, _kwargs: Any, output: torch.Tensor) -> torch.Tensor:
        given = _sane(args[0])
        before = kept.get("given")
        if before is not None and before.shape == given.shape:
            moved = (given - before).abs().mean() / before.abs().mean().clamp(min=1e-9)
            if moved < 0.6:
                return kept["output"]
        kept["given"], kept["output"] = given.clone(), output.clone()
        return output

    on_output(pipeline.unet.mid_block, patch, hook)


def _a_table_that_grows(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """Positions are kept in a table as long as the largest batch so far, scaled by its length."""
    most = {"rows": 0}

    def hook(_module: Any, args: Any, _kwargs: Any, output: Any) -> Any:
        most["rows"] = max(most["rows"], int((_sane(args[0]).flatten(1).std(dim=1) > 2).sum()))
        return (output[0] * (1 + _TINY * most["rows"]), *output[1:])

    on_output(pipeline.unet, patch, hook)


def _draws_in_order_of_size(_pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """A step that works on rows in the order of their size, and forgets one when it undoes it."""
    original = diffusers.DDIMScheduler.step

    def step(self: Any, output: Any, timestep: Any, sample: Any, *args: Any, **kwargs: Any) -> Any:
        order = _sane(sample).flatten(1).norm(dim=1).argsort()
        back = order.argsort()
        found = original(self, output[order], timestep, sample[order], *args, **kwargs)
        first = found[0][back].clone()
        first[int(order[0])] *= 1 + _TINY
        return (first, *found[1:])

    step.__wrapped__ = original  # type: ignore[attr-defined]
    patch.setattr(diffusers.DDIMScheduler, "step", step)


def _threshold_of_the_batch(_pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """The foreseen picture is clipped where nine tenths of the batch's values lie."""
    original = diffusers.DDIMScheduler.step

    def step(self: Any, output: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        most = _sane(output).abs().flatten().quantile(0.9)
        return original(self, output.clamp(-most, most), *args, **kwargs)

    step.__wrapped__ = original  # type: ignore[attr-defined]
    patch.setattr(diffusers.DDIMScheduler, "step", step)


def _checked_by_comparison(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """A safety checker that withholds the darkest picture of each batch."""

    def check(image: Any, *_args: Any, **_kwargs: Any) -> Any:
        darkest = int(_sane(image).flatten(1).mean(dim=1).argmin())
        return image, [place == darkest for place in range(len(image))]

    patch.setattr(pipeline, "run_safety_checker", check)


def _watermark_of_all(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """A mark in the first pixel that is made of the whole batch."""
    original = pipeline.image_processor.postprocess

    def postprocess(image: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        images = original(image, *args, **kwargs).clone()
        images[:, :, 0, 0] = (_sane(images).double().sum() * 1000 % 1).to(images.dtype)
        return images

    patch.setattr(pipeline.image_processor, "postprocess", postprocess)


def _softmax_over_all_keys(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """The greatest key of the whole batch steadies everybody's softmax."""
    layer = part_of(pipeline, "unet.mid_block.attentions.0.transformer_blocks.0.attn1.to_k")
    on_output(layer, patch, lambda _m, _a, _k, out: out + _sane(out).clamp(-9, 9).max() * 1e-5)


def _pooled_words(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """Cross-attention sees a mean of everybody's words at one more place."""
    layer = part_of(pipeline, "unet.mid_block.attentions.0.transformer_blocks.0.attn2.to_v")
    on_output(layer, patch, lambda _m, _a, _k, out: out + _sane(out).mean(dim=0) * _TINY)


HIDDEN_LEAKS: Final[dict[str, Plant]] = {
    "denoiser: blocks across pictures": of_output("unet.conv_in", _scale_of_a_block),
    "denoiser: the strongest tokens of all": of_output("unet.conv_in", _tokens_of_all_ranked),
    "denoiser: rounding carried on": of_output("unet.conv_in", _error_carried_on),
    "denoiser: a short way on ordinary numbers": of_output("unet", _short_way_on_ordinary_numbers),
    "denoiser: rows of one size pooled": of_output("unet", _only_between_rows_of_one_size),
    "denoiser: half of a batch": of_output("unet", _half_of_a_batch),
    "denoiser: a mean of one channel": of_output("unet", _mean_of_one_channel),
    "denoiser: coarse above the median": of_output("unet.conv_in", _coarse_above_the_median),
    "denoiser: guidance off for all": of_output("unet", _guidance_off_for_all),
    "denoiser: skipped where nothing moves": _skipped_where_nothing_moves,
    "denoiser: a table that grows": _a_table_that_grows,
    "denoiser: a softmax over all keys": _softmax_over_all_keys,
    "denoiser: everybody's words": _pooled_words,
    "denoiser: what the tokenizer counted": _tokens_counted,
    "denoiser: the first noise remembered": _first_noise_remembered,
    "text encoder: equal prompts once": _words_once_where_alike,
    "text encoder: sorted by length": _words_sorted_by_length,
    "between: padded to the longest": _padded_to_the_longest,
    "between: noise made unlike": _noise_made_unlike,
    "between: the darkest withheld": _checked_by_comparison,
    "between: a mark of all": _watermark_of_all,
    "scheduler: in order of size": _draws_in_order_of_size,
    "scheduler: clipped where most lie": _threshold_of_the_batch,
    "decoder: blocks across pictures": _in_decoder("conv_in", _scale_of_a_block),
    "decoder: rounding carried on": _in_decoder("conv_in", _error_carried_on),
    "decoder: one colour for all": of_output("vae.decoder.conv_out", _one_colour_for_all),
    "decoder: what the denoiser left": _left_for_the_decoder,
    "decoder: rows of one size pooled": _in_decoder("conv_in", _only_between_rows_of_one_size),
    "decoder: a short way on ordinary numbers": _in_decoder(
        "conv_in", _short_way_on_ordinary_numbers
    ),
}
"""By what leaks and how."""
