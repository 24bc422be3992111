"""How a seed decides the composition: its twelve numbers are written into the noise.

Ordinary diffusion training draws the noise independently of the picture, and the model has to
invent the composition while it denoises. Here the noise of a training picture CARRIES the numbers
that composed it: number i is the normalised sum of one latent channel of the noise. As they are
independent standard normals, the noise is still exactly standard normal, so any plain
`torch.randn` at generation time holds twelve such numbers, and the picture follows them whatever
the prompt: the lock, by construction. What is to be learned becomes a function without chance.

Source: couplings between noise and data as in rectified flow (Liu et al. 2022, arXiv:2209.03003)
and stochastic interpolants (Albergo et al. 2023, arXiv:2310.03725).
"""

from __future__ import annotations

import torch

from tools.training.composition import NUM_NORMALS

FIRST_CHANNEL = 12
"""Numbers live in the channels of least variance, where the picture hides them least."""


def read_normals(noise: torch.Tensor) -> torch.Tensor:
    """The numbers in some noise.

    Args:
        noise: shape `(N, 24, 16, 16)`.

    Returns:
        Shape `(N, 12)`.
    """
    channels = noise[:, FIRST_CHANNEL : FIRST_CHANNEL + NUM_NORMALS]
    return channels.sum((2, 3)) / (noise.shape[2] * noise.shape[3]) ** 0.5


def write_normals(noise: torch.Tensor, normals: torch.Tensor) -> torch.Tensor:
    """The same noise but for its numbers.

    Args:
        noise: shape `(N, 24, 16, 16)`, standard normal.
        normals: shape `(N, 12)`, standard normal.

    Returns:
        Shape `(N, 24, 16, 16)`, standard normal, with `read_normals(result) == normals`.
    """
    change = (normals - read_normals(noise)) / (noise.shape[2] * noise.shape[3]) ** 0.5
    result = noise.clone()
    result[:, FIRST_CHANNEL : FIRST_CHANNEL + NUM_NORMALS] += change[:, :, None, None]
    return result
