"""Muon for the matrices, AdamW for the rest, in one optimizer.

Source: K. Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/ ; the scale that lets both
share one learning rate: Liu et al. 2025, "Muon is scalable for LLM training", arXiv:2502.16982.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
NUM_ITERATIONS = 3
"""Three instead of the usual five: half the price, and small singular values are mostly noise."""


def has_fast_bfloat16(device_type: str) -> bool:
    """Whether bfloat16 is faster than float32 there: not on a processor without AVX-512."""
    return device_type != "cpu" or torch.backends.cpu.get_cpu_capability() == "AVX512"


def autocast(device_type: str) -> torch.autocast:
    """Compute in bfloat16 where that is faster."""
    return torch.autocast(device_type, torch.bfloat16, enabled=has_fast_bfloat16(device_type))


def orthogonalise(matrix: torch.Tensor) -> torch.Tensor:
    """The nearest half-orthogonal matrix, roughly: a few Newton-Schulz steps.

    Args:
        matrix: shape `(rows, columns)`.
    """
    a, b, c = NEWTON_SCHULZ
    x = matrix.bfloat16() if has_fast_bfloat16(matrix.device.type) else matrix
    is_tall = x.shape[0] > x.shape[1]
    if is_tall:
        x = x.T
    x = x / (x.norm() + 1e-7)
    for _ in range(NUM_ITERATIONS):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.T if is_tall else x).to(matrix.dtype)


class MuonAdam:
    """A small optimizer over named parameters, its state plain tensors."""

    def __init__(self, named: Iterable[tuple[str, torch.nn.Parameter]], matrices: set[str]) -> None:
        self.named = {name: parameter for name, parameter in named if parameter.requires_grad}
        self.matrices = matrices
        self.step_count = 0
        self.state: dict[str, torch.Tensor] = {}
        for name, parameter in self.named.items():
            self.state[f"{name}.m"] = torch.zeros_like(parameter)
            if name not in matrices:
                self.state[f"{name}.v"] = torch.zeros_like(parameter)

    @torch.no_grad()
    def step(self, learning_rate: float, weight_decay: float = 0.01) -> None:
        """Apply the gradients and clear them."""
        self.step_count += 1
        for name, parameter in self.named.items():
            gradient = parameter.grad
            if gradient is None:
                continue
            if name in self.matrices:
                self._muon(name, parameter, gradient, learning_rate, weight_decay)
            else:
                self._adam(name, parameter, gradient, learning_rate)
            parameter.grad = None

    def restore(self, state: Mapping[str, torch.Tensor]) -> None:
        """Take over a state that was kept, in whatever precision, of what is trained still."""
        for name in self.state.keys() & state.keys():
            self.state[name].copy_(state[name])

    def _muon(
        self, name: str, parameter: torch.Tensor, gradient: torch.Tensor, rate: float, decay: float
    ) -> None:
        momentum = self.state[f"{name}.m"].lerp_(gradient, 0.05)
        nesterov = gradient.lerp(momentum, 0.95).reshape(gradient.shape[0], -1)
        update = orthogonalise(nesterov) * (0.2 * max(nesterov.shape) ** 0.5)
        parameter.mul_(1 - rate * decay).add_(update.reshape(parameter.shape), alpha=-rate)

    def _adam(
        self, name: str, parameter: torch.Tensor, gradient: torch.Tensor, rate: float
    ) -> None:
        momentum = self.state[f"{name}.m"].lerp_(gradient, 0.1)
        square = self.state[f"{name}.v"].lerp_(gradient.square(), 0.01)
        debiased = (square / (1 - 0.99**self.step_count)).sqrt_().add_(1e-8)
        parameter.addcdiv_(momentum / (1 - 0.9**self.step_count), debiased, value=-rate)


def rate_share(step: int, left: float, *, warm_steps: int, cooldown: float) -> float:
    """The share of the learning rate at a step: warm-up, constant, then linearly to a fiftieth.

    Args:
        step: From 0.
        left: The part of the whole training that is still to come.
        warm_steps: How many steps the warm-up takes.
        cooldown: Over what last part of the training the rate falls.
    """
    return min(1.0, (step + 1) / warm_steps) * max(0.02, min(1.0, left / cooldown))


def matrix_names(model: torch.nn.Module) -> set[str]:
    """Which parameters Muon takes: hidden matrices and kernels, not embeddings or the ends."""
    ends = ("embedding", "conv_in", "conv_out", "positional")
    return {
        name
        for name, parameter in model.named_parameters()
        if parameter.ndim >= 2 and not any(end in name for end in ends)
    }
