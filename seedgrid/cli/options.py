"""The options that several commands share, each written once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Seeds = Annotated[str, typer.Option(help="As in 7, or 0-3, or 7,11,42.")]
Negative = Annotated[str, typer.Option(help="What the picture should not show.")]
Steps = Annotated[int | None, typer.Option(help="Steps of the denoiser.")]
Guidance = Annotated[float | None, typer.Option(help="How closely to follow the words; 0 to 30.")]
Scheduler = Annotated[str | None, typer.Option(help="For example DDIM, or DPM++ 2M Karras.")]
Size = Annotated[str | None, typer.Option(metavar="WxH", help="For example 512x768.")]
Model = Annotated[
    str | None, typer.Option(help="bundled, a folder, a hub id, or a .safetensors file.")
]
DType = Annotated[str | None, typer.Option(help="float32, bfloat16 or float16.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps, xpu.")]
Width = Annotated[
    int | None, typer.Option(help="Lock width, the cells of a batch: 1, 2, 4, 8 or 16.")
]
Determinism = Annotated[str | None, typer.Option(help="off, seeded or strict.")]
Library = Annotated[Path | None, typer.Option(help="The folder that keeps the pictures.")]
Out = Annotated[Path | None, typer.Option(help="Write the pictures to this folder as well.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Compute even what the library remembers.")]
Turbo = Annotated[
    bool, typer.Option("--turbo", help="Choose number format, scheduler and steps for speed.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a line on standard output.")]
