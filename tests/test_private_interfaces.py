"""What is used of other libraries although they promise nothing about it: does it still fit?

A failure here names the library and its version. The product itself then takes a plainer way.
"""

from __future__ import annotations

import inspect
import subprocess
import sys

import diffusers
import pytest
import torch
from torch.utils._pytree import tree_flatten, tree_unflatten
from transformers.modeling_outputs import BaseModelOutput

from seedgrid.diffusion.previews import unpacked
from seedgrid.models.families import FAMILIES
from seedgrid.portable import portable
from seedgrid.portable.rules import RULES


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_noise_is_drawn_by_a_method_that_names_its_generator(name: str) -> None:
    """`prepare_latents` is public, its arguments' names are not documented (noise.py)."""
    prepare = getattr(getattr(diffusers, name), "prepare_latents", None)
    if prepare is None:  # Families without latents: their noise cannot be mixed, which is said.
        return
    where = f"diffusers {diffusers.__version__}: {name}.prepare_latents"
    assert "generator" in inspect.signature(prepare).parameters, where


def test_tokens_are_unpacked_as_flux_does() -> None:
    """Our own arithmetic stands for a private method of the pipeline; they must agree."""
    tokens = torch.arange(2 * 6 * 64.0).reshape(2, 6, 64)
    ours = unpacked(16, tokens, 32, 48)
    theirs = diffusers.FluxPipeline._unpack_latents(tokens, 32, 48, 8)
    assert torch.equal(ours, theirs), f"diffusers {diffusers.__version__}: FluxPipeline"


def test_portable_arithmetic_meets_torchs_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    """`TorchDispatchMode`, `_disable_current_modes` and `torch._C`: there, and they do."""
    monkeypatch.setitem(RULES, "mm", lambda left, _: left + 6)
    with portable():
        product = torch.ones(2, 2) @ torch.ones(2, 2)
    assert product.unique().tolist() == [7], f"torch {torch.__version__}: dispatch modes"


def test_a_program_ends_after_what_was_registered_for_its_end(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """`atexit._run_exitfuncs`."""
    code = (
        "import atexit; from seedgrid.core.process import leave;"
        " atexit.register(print, 'registered'); leave(3)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 3
    assert capfd.readouterr() == ("registered\n", ""), f"Python {sys.version}: atexit"


def test_outputs_of_models_are_taken_apart_and_put_together() -> None:
    """`torch.utils._pytree`, at which transformers and diffusers register their outputs."""
    output = BaseModelOutput(last_hidden_state=torch.ones(2, 3))
    leaves, form = tree_flatten(output)
    assert [each.shape for each in leaves] == [(2, 3)], f"torch {torch.__version__}: pytree"
    assert isinstance(tree_unflatten(leaves, form), BaseModelOutput)
