"""Is portable arithmetic right on this machine? Tried once under each passport."""

from __future__ import annotations

import torch

from seedgrid.core.errors import RunError
from seedgrid.core.recipe import Passport
from seedgrid.diffusion.portable_trial import PortableTrial, keep_trial, recall_trial


def try_portable(device: torch.device, passport: Passport) -> PortableTrial:
    """Return what a trial found; it takes some seconds and is remembered by passport."""
    from seedgrid.diffusion.portable import selftest  # see arithmetic.py

    trial = recall_trial(passport)
    if trial is None:
        trial = PortableTrial(wrong=selftest.check(device), times=selftest.cost(device))
        keep_trial(passport, trial)
    return trial


def check_portable(device: torch.device, passport: Passport) -> None:
    """Refuse to call a picture portable whose arithmetic is not that of the definition."""
    wrong = try_portable(device, passport).wrong
    if wrong:
        raise RunError("portable_wrong_here", value=", ".join(wrong))
