"""Leaks to plant in a Stable-Diffusion-shaped pipeline: how real projects let a neighbour in.

Each takes a pipeline and a `pytest.MonkeyPatch` and is undone with it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import diffusers
import pytest
import torch

from seedgrid.core.prompts import read_weights
from seedgrid.diffusion import words as reading

Plant = Callable[[Any, pytest.MonkeyPatch], None]
Change = Callable[[torch.Tensor], torch.Tensor]
_TINY: Final = 1e-5
_ATTENTION: Final = "unet.mid_block.attentions.0.transformer_blocks.0"


def on_output(part: Any, patch: pytest.MonkeyPatch, change: Callable[..., Any]) -> None:
    """Change a module's output, as a forward hook with keywords does, until the test ends."""
    original = part.forward

    @functools.wraps(original)
    def forward(*args: Any, **kwargs: Any) -> Any:
        output = original(*args, **kwargs)
        changed = change(part, args, kwargs, output)
        return output if changed is None else changed

    patch.setattr(part, "forward", forward)


def _of_output(name: str, change: Change) -> Plant:
    def plant(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
        part = pipeline
        for step in name.split("."):
            part = part[int(step)] if step.isdigit() else getattr(part, step)

        def hook(_module: Any, _args: Any, _kwargs: Any, output: Any) -> Any:
            if isinstance(output, tuple):
                return (change(output[0]), *output[1:])
            return change(output)

        on_output(part, patch, hook)

    return plant


def _of_words(change: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Plant:
    """Change what a text encoder makes of token ids (rows, tokens)."""

    def plant(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
        def hook(_module: Any, args: Any, kwargs: Any, output: Any) -> Any:
            tokens = args[0] if args else kwargs["input_ids"]
            lengths = (tokens != tokens[:, -1:]).sum(dim=1)
            output["last_hidden_state"] = change(output["last_hidden_state"].clone(), lengths)
            return output

        on_output(pipeline.text_encoder, patch, hook)

    return plant


def _of_step(make: Callable[[], Change]) -> Plant:
    """Change what a scheduler is given at each step."""

    def plant(_pipeline: Any, patch: pytest.MonkeyPatch) -> None:
        change, original = make(), diffusers.DDIMScheduler.step

        @functools.wraps(original)
        def step(self: Any, output: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            return original(self, change(output), *args, **kwargs)

        patch.setattr(diffusers.DDIMScheduler, "step", step)

    return plant


def _of_decoding(decode_with: Callable[[Callable[..., Any], torch.Tensor], torch.Tensor]) -> Plant:
    def plant(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
        original = pipeline.vae.decode

        def decode(latents: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            return (decode_with(lambda some: original(some, *args, **kwargs)[0], latents),)

        patch.setattr(pipeline.vae, "decode", decode)

    return plant


def _of_noise(change: Change) -> Plant:
    def plant(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
        original = pipeline.prepare_latents

        @functools.wraps(original)  # How noise is mixed goes by the names of its arguments.
        def prepare_latents(*args: Any, **kwargs: Any) -> Any:
            return change(original(*args, **kwargs))

        patch.setattr(pipeline, "prepare_latents", prepare_latents)

    return plant


def _sane(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.nan_to_num(0, 0, 0)


def _rows(tensor: torch.Tensor) -> torch.Tensor:
    return _sane(tensor).flatten(1)


def _each(tensor: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Return one value a row in a shape that multiplies with the rows."""
    return values.reshape(-1, *[1] * (tensor.ndim - 1)).to(tensor.dtype)


def _int8(tensor: torch.Tensor) -> torch.Tensor:
    """Activations in eight bits, one scale for all rows."""
    scale = tensor.abs().max() / 127
    return (tensor / scale).round() * scale


def _int8_calibrated(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """Activations in eight bits, the scale taken from the first batch of the process."""
    kept: list[torch.Tensor] = []

    def quantised(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(_sane(tensor).abs().max() / 127)
        return (tensor / kept[0]).round() * kept[0]

    _of_output("unet.conv_in", quantised)(pipeline, patch)


def _fp8_delayed(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """Eight-bit floats whose scale is the largest value of the calls before."""
    history = [1.0]

    def scaled(tensor: torch.Tensor) -> torch.Tensor:
        scale = max(history[-4:]) / 448
        history.append(float(_sane(tensor).abs().max()))
        coarse = (tensor / scale).clamp(-448, 448).to(torch.float8_e4m3fn).to(tensor.dtype)
        return tensor + (coarse * scale - tensor) * 1e-2

    _of_output("unet.conv_in", scaled)(pipeline, patch)


def _tokens_merged(tensor: torch.Tensor) -> torch.Tensor:
    """Token merging: the pair of tokens that is most alike over all rows is made one."""
    unit = torch.nn.functional.normalize(_sane(tensor), dim=-1)
    likeness = (unit @ unit.transpose(1, 2)).mean(dim=0).fill_diagonal_(-1)
    one, other = divmod(int(likeness.argmax()), tensor.shape[1])
    merged = tensor.clone()
    merged[:, [one, other]] = (tensor[:, one] + tensor[:, other])[:, None] / 2
    return merged


def _step_cache(pipeline: Any, patch: pytest.MonkeyPatch, threshold: float = 0.6) -> None:
    """A block that is skipped where the batch as a whole changed little since the last step."""
    kept: dict[str, torch.Tensor] = {}

    def hook(_module: Any, args: Any, _kwargs: Any, output: torch.Tensor) -> torch.Tensor:
        given, before = _sane(args[0]), kept.get("given")
        if before is not None and before.shape == given.shape:
            moved = (given - before).abs().mean() / before.abs().mean().clamp(min=1e-9)
            if moved < threshold:
                return kept["output"]
        kept["given"], kept["output"] = given.clone(), output.clone()
        return output

    on_output(pipeline.unet.mid_block, patch, hook)


def _batch_norm(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """A batch norm of the denoiser that was left in training mode."""
    norm = torch.nn.BatchNorm2d(pipeline.unet.conv_in.out_channels, affine=False)
    of = _of_output("unet.conv_in", lambda t: t + norm(t.float()).to(t.dtype) * _TINY)
    of(pipeline, patch)


def _running_statistics(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """A norm of the decoder whose running mean goes on learning while it decodes."""
    state = {"mean": torch.zeros(())}

    def norm(tensor: torch.Tensor) -> torch.Tensor:
        state["mean"] = 0.9 * state["mean"] + 0.1 * _sane(tensor).mean().clamp(-9, 9)
        return tensor + state["mean"] * 1e-3

    _of_output("vae.decoder.conv_in", norm)(pipeline, patch)


def _softmax_over_all(tensor: torch.Tensor) -> torch.Tensor:
    """The largest key of the whole batch, not of the row, steadies everybody's softmax."""
    return tensor + _sane(tensor).clamp(-9, 9).max() * _TINY


def _attention_slices(tensor: torch.Tensor) -> torch.Tensor:
    """Attention in slices of 48 tokens that do not end where a picture ends."""
    flat = tensor.reshape(-1, tensor.shape[-1])
    slices = [
        part * (1 + _sane(part).abs().amax().clamp(max=99) * _TINY) for part in flat.split(48)
    ]
    return torch.cat(slices).reshape(tensor.shape)


def _keys_smoothed(tensor: torch.Tensor) -> torch.Tensor:
    """Keys less their mean, for quantising them: the mean of the batch, not of the row."""
    return tensor - _sane(tensor).mean(dim=(0, 1), keepdim=True) * 1e-2


def _expert_capacity(tensor: torch.Tensor) -> torch.Tensor:
    """An expert that takes only so many rows of a batch, first come, first served."""
    wants = _rows(tensor).mean(dim=1) > 0
    is_late = wants & (wants.cumsum(dim=0) > 1)
    return tensor * (1 + _TINY * _each(tensor, is_late))


def _memory_by_address(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """Keys of attention that are remembered by where their words lay in memory.

    Here the address is always used again, as allocators mostly do.
    """
    kept: dict[torch.Size, torch.Tensor] = {}

    def hook(_module: Any, args: Any, _kwargs: Any, output: torch.Tensor) -> torch.Tensor:
        return kept.setdefault(args[0].shape, output)

    part = pipeline.unet.mid_block.attentions[0].transformer_blocks[0].attn2.to_k
    on_output(part, patch, hook)


def _overflow_guard(tensor: torch.Tensor) -> torch.Tensor:
    """All rows are computed in half precision, unless one of them would overflow there."""
    is_small = float(_sane(tensor).abs().max()) < torch.finfo(torch.float16).max
    return tensor.half().to(tensor.dtype) if is_small else tensor


def _kernels_tail(tensor: torch.Tensor) -> torch.Tensor:
    """The end of a tensor that does not fill the processor's vectors is rounded otherwise."""
    changed = tensor.clone()
    changed[-1] *= 1 + 1e-6
    return changed


def _thresholded(tensor: torch.Tensor) -> torch.Tensor:
    """Dynamic thresholding with one threshold, the largest of the batch."""
    limit = _rows(tensor).abs().quantile(0.9, dim=1).max()
    return tensor.clamp(-limit, limit)


def _guidance_rescaled(tensor: torch.Tensor) -> torch.Tensor:
    """Guidance rescaled by the deviation of the whole batch."""
    return tensor * (1 - _TINY * _sane(tensor).std().clamp(max=50))


def _adaptive_step() -> Change:
    """A step whose length goes by the error of the whole batch since the last one."""
    last: list[torch.Tensor] = []

    def change(tensor: torch.Tensor) -> torch.Tensor:
        before = last[-1] if last and last[-1].shape == tensor.shape else tensor
        error = _sane(tensor - before).square().mean().sqrt().clamp(max=9)
        last.append(tensor.clone())
        return tensor * (1 + error * _TINY)

    return change


def _one_generator(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """All rows of the first noise are drawn from the first row's generator."""
    original = pipeline.prepare_latents

    @functools.wraps(original)
    def prepare_latents(*args: Any, **kwargs: Any) -> Any:
        shared = [each[0] if isinstance(each, list) else each for each in args]
        return original(*shared, **kwargs)

    patch.setattr(pipeline, "prepare_latents", prepare_latents)


def _padded_to_the_longest(words: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Words are padded to the longest prompt of the batch, and nothing is beyond."""
    words[:, int(lengths.max()) + 1 :] = 0
    return words


def _mask_dropped(words: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """A mask that is left out where all prompts are as long: another kernel runs."""
    return words if int(lengths.min()) == int(lengths.max()) else words * (1 + _TINY)


def _wrongly_unsorted(words: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Prompts sorted by length for packing, and put back by the wrong permutation."""
    order = lengths.argsort(stable=True)
    return words[order][order]


def _first_negative_decides(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """As Bria: where the first picture has no negative words, all have zeros in their place."""
    original = pipeline.encode_prompt

    def encode_prompt(*args: Any, **kwargs: Any) -> Any:
        *before, negative = args  # of Stable Diffusion's own call: the fifth, a text for each
        words, against = original(*before, negative, **kwargs)
        return words, against if negative and negative[0] else torch.zeros_like(against)

    patch.setattr(pipeline, "encode_prompt", encode_prompt)


def _mean_of_weighted_words(_pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """AUTOMATIC1111's way: weighted words are brought back to the mean of the whole batch."""

    def weighted(pipeline: Any, rows: torch.Tensor, prompts: list[str]) -> torch.Tensor:
        tokens = [
            reading.token_weights(pipeline.tokenizer, read_weights(prompt), rows.shape[1])
            for prompt in prompts
        ]
        changed = rows * torch.tensor(tokens, dtype=rows.dtype)[..., None]
        return changed * (rows.mean() / changed.mean())

    patch.setattr(reading, "_weighted", weighted)


def _tiles_share_statistics(tensor: torch.Tensor) -> torch.Tensor:
    """A tiled decoder that takes the statistics of its norms from all rows."""
    return tensor / (1 + _sane(tensor).std().clamp(max=50) * 1e-3)


def _float32_where_any_is_nan(decode: Callable[..., Any], latents: torch.Tensor) -> torch.Tensor:
    """A batch that is decoded again with more precision where one picture came out as NaN."""
    pictures: torch.Tensor = decode(latents)
    return pictures * (1 + 1e-6) if bool(pictures.isnan().any()) else pictures


def _stretched_together(decode: Callable[..., Any], latents: torch.Tensor) -> torch.Tensor:
    """Colours stretched between the darkest and the lightest value of all pictures."""
    pictures: torch.Tensor = decode(latents)
    low, high = _sane(pictures).min(), _sane(pictures).max()
    return pictures * (1 + 1e-4 * (high - low).clamp(max=100))


def _withheld_together(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """A safety checker that withholds all pictures of a batch for the sake of one."""

    def check(image: Any, *_args: Any, **_kwargs: Any) -> Any:
        bad = bool((_rows(image).abs().mean(dim=1) > 2).any())
        return image, [bad] * len(image)

    patch.setattr(pipeline, "run_safety_checker", check)


LEAKS: Final[dict[str, Plant]] = {
    "denoiser: int8 activations with one scale": _of_output("unet.conv_in", _int8),
    "denoiser: fp8 activations with a delayed scale": _fp8_delayed,
    "denoiser: tokens merged over the batch": _of_output(f"{_ATTENTION}.attn1", _tokens_merged),
    "denoiser: a step cache with one threshold": _step_cache,
    "denoiser: a batch norm in training mode": _batch_norm,
    "denoiser: a softmax over all keys": _of_output(f"{_ATTENTION}.attn1.to_k", _softmax_over_all),
    "denoiser: attention in slices": _of_output(f"{_ATTENTION}.attn1.to_v", _attention_slices),
    "denoiser: keys smoothed by a mean": _of_output(f"{_ATTENTION}.attn1.to_k", _keys_smoothed),
    "denoiser: an expert's capacity": _of_output("unet.mid_block", _expert_capacity),
    "denoiser: a memory by data_ptr": _memory_by_address,
    "denoiser: a guard against overflow": _of_output("unet.conv_in", _overflow_guard),
    "denoiser: the last slot": _of_output("unet", _kernels_tail),
    "scheduler: dynamic thresholding with one maximum": _of_step(lambda: _thresholded),
    "scheduler: guidance rescaled together": _of_step(lambda: _guidance_rescaled),
    "scheduler: an adaptive step": _of_step(_adaptive_step),
    "noise: one generator for all": _one_generator,
    "noise: the process's own": _of_noise(lambda t: t + torch.rand(1) * _TINY),
    "noise: normalised over the batch": _of_noise(lambda t: t / (1 + t.std() * _TINY)),
    "words: padded to the longest": _of_words(_padded_to_the_longest),
    "words: a mask dropped where all are as long": _of_words(_mask_dropped),
    "words: sorted, and put back wrongly": _of_words(_wrongly_unsorted),
    "words: the first picture's negative words decide": _first_negative_decides,
    "decoder: tiles share statistics": _of_output("vae.decoder.conv_in", _tiles_share_statistics),
    "decoder: running statistics": _running_statistics,
    "decoder: again in float32 where any is NaN": _of_decoding(_float32_where_any_is_nan),
    "decoder: stretched together": _of_decoding(_stretched_together),
    "pictures: withheld together": _withheld_together,
}
"""By where they are and what they do."""

OF_WEIGHTS: Final[dict[str, Plant]] = {"words: a mean over weighted words": _mean_of_weighted_words}
"""Where words are weighed."""

NOT_FOUND: Final[dict[str, Plant]] = {
    "denoiser: an int8 scale of the first batch": _int8_calibrated,
    "denoiser: a step cache with a low threshold": functools.partial(_step_cache, threshold=0.05),
}
"""What the probe misses (docs/lock.md): what stays in the process for good, and what four steps of
the schedule, which lie far apart, never show."""
