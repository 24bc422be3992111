"""What is used of other libraries although they promise nothing about it: does it still fit?

A failure here names the library and its version. The product itself then takes a plainer way.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import diffusers
import gradio as gr
import pytest
import torch

from seedgrid.core import process
from seedgrid.core.errors import RunError
from seedgrid.diffusion.previews import _unpacker
from seedgrid.models.families import FAMILIES
from seedgrid.portable import portable
from seedgrid.web import page, wiring
from seedgrid.web.server import page_head


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_noise_is_drawn_by_a_method_that_names_its_generator(name: str) -> None:
    """`prepare_latents` is public, its arguments' names are not documented (noise_mix.py)."""
    prepare = getattr(getattr(diffusers, name), "prepare_latents", None)
    if prepare is None:  # Families without latents: their noise cannot be mixed, which is said.
        return
    where = f"diffusers {diffusers.__version__}: {name}.prepare_latents"
    assert "generator" in inspect.signature(prepare).parameters, where


def test_tokens_are_unpacked_as_flux_does() -> None:
    """Our own arithmetic stands for a private method of the pipeline; they must agree."""
    tokens = torch.arange(2 * 6 * 64.0).reshape(2, 6, 64)
    ours = _unpacker(SimpleNamespace(vae_scale_factor=8))(tokens, 32, 48)
    theirs = diffusers.FluxPipeline._unpack_latents(tokens, 32, 48, 8)
    assert torch.equal(ours, theirs), f"diffusers {diffusers.__version__}: FluxPipeline"


def test_gradios_queue_can_be_looked_into_less_often() -> None:
    """`Blocks._queue.sleep_when_free`, in seconds."""

    async def look_s() -> float:  # Blocks opens a loop where none is running, and never closes it.
        with gr.Blocks(analytics_enabled=False) as demo:
            page._look_seldom(demo)
        return float(demo._queue.sleep_when_free)

    assert asyncio.run(look_s()) == page._LOOK_S, f"gradio {gr.__version__}"


def test_another_queue_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    """A Gradio without it serves the page all the same, and the log says so."""
    page._look_seldom(SimpleNamespace())  # type: ignore[arg-type]
    assert gr.__version__ in caplog.text


def test_gradio_hands_over_what_an_event_says() -> None:
    """The attributes of `EventData`, which are public: nothing of ours looks behind them."""
    event = gr.EventData(None, {"id": "abc"})
    assert wiring.said(event, "id") == "abc", f"gradio {gr.__version__}: EventData"
    assert wiring.said(event, "note") is None


def test_gradios_page_has_a_plain_head() -> None:
    """Our head is put into its bytes: `head=` of Gradio comes after it chose a language."""
    template = Path(gr.__file__).parent / "templates" / "frontend" / "index.html"
    assert b"<head>" in template.read_bytes(), f"gradio {gr.__version__}: index.html"


def test_another_page_gets_our_head_before_it(caplog: pytest.LogCaptureFixture) -> None:
    """Browsers make a head of what comes first, and the log says so."""
    page = page_head.with_head(b"<HTML><body>hello", b"<script></script>")
    assert page == b"<!doctype html>\n<script></script><HTML><body>hello"
    assert gr.__version__ in caplog.text


def test_portable_arithmetic_meets_torchs_operations() -> None:
    """`TorchDispatchMode`, `_disable_current_modes` and `torch._C`: there, and they do."""
    seen: list[str] = []
    with portable(lambda name, _: seen.append(name)):
        torch.ones(2, 2) @ torch.ones(2, 2)
    assert "mm" in seen, f"torch {torch.__version__}: dispatch modes"


def test_without_its_parts_only_portable_pictures_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A torch without them is named in the error."""
    monkeypatch.setitem(sys.modules, "seedgrid.portable.mode", None)
    with pytest.raises(RunError, match=re.escape(torch.__version__)):
        portable()


def test_a_schedulers_configuration_is_its_public_one() -> None:
    """The probe copies all of a scheduler but its `config`, which cannot be copied in depth."""
    scheduler = diffusers.DDIMScheduler()
    values = list(vars(scheduler).values())
    where = f"diffusers {diffusers.__version__}: SchedulerMixin.config"
    assert any(value is scheduler.config for value in values), where


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


def test_without_it_a_program_ends_pythons_way(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delattr(atexit, "_run_exitfuncs")
    with pytest.raises(SystemExit, match="3"):
        process.leave(3)
    assert sys.version in caplog.text
