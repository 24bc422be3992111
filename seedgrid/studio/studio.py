"""Studio: paints what is asked for, and waits for the pictures.

It knows nothing of screens. Nothing is loaded and no folder is made before the first picture is
asked for.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

from seedgrid.core.finals import STRENGTHS
from seedgrid.core.prompts import GUIDE_SUFFIXES
from seedgrid.core.request import Request
from seedgrid.engine import Run
from seedgrid.pictures import Pictures, StudioPicture
from seedgrid.studio.looking import Looking
from seedgrid.studio.options import AnyPicture, Seeds, Settings, read_seeds

logger = logging.getLogger(__name__)


class Studio(Looking):
    """A model, an engine and a library, ready to paint. Safe to use from any thread.

    What it is made of, and what it is told, is described at `Parts`; how to start a round without
    waiting for it at `Starting`.
    """

    def grid(
        self,
        prompt: str,
        seeds: Seeds = "0-3",
        *,
        loras: Sequence[str] = (),
        fresh: bool = False,
        turbo: bool = False,
        **settings: Unpack[Settings],
    ) -> Pictures:
        """Paint one prompt on several seeds and wait for the pictures.

        Args:
            prompt: The words.
            seeds: One picture for each.
            loras: Files or names of LoRAs, with a scale as in `"fox.safetensors=0.8"`; a prompt may
                name them too, as `<lora:fox:0.8>`.
            fresh: Compute even what the library remembers.
            turbo: Answer what is left open for speed; the recipe says how.
            **settings: See `Settings`.

        Raises:
            InputError: What was asked for cannot be; nothing was started.
            RunError: It was started and did not succeed; finished pictures are in the library.
            LibraryError: The pictures cannot be kept.
        """
        return self.matrix([prompt], seeds, loras=loras, fresh=fresh, turbo=turbo, **settings)

    def refine(
        self,
        picture: AnyPicture,
        suffixes: Sequence[str] = GUIDE_SUFFIXES,
        *,
        prompt: str | None = None,
        fresh: bool = False,
    ) -> Pictures:
        """Vary the words or settings of a picture on its own seed and wait for the variations.

        Args:
            picture: See `AnyPicture`.
            suffixes: One picture each: words that are appended to the prompt (`", artsy"`), or a
                setting (`"guidance 3"`, see `core.variations`); the guide's four by default.
            prompt: Another prompt to append them to; the picture's own by default.
            fresh: Compute even what the library remembers.
        """
        return _wait(self.start_refine(picture, suffixes, prompt=prompt, fresh=fresh))

    def matrix(
        self,
        prompts: Sequence[str],
        seeds: Seeds,
        *,
        loras: Sequence[str] = (),
        fresh: bool = False,
        turbo: bool = False,
        **settings: Unpack[Settings],
    ) -> Pictures:
        """Paint every prompt on every seed: one row a prompt, one column a seed, row by row."""
        request = Request(prompt="", seeds=read_seeds(seeds), **settings)
        if request.start:
            request = replace(request, start=self.take_start(request.start))
        request = replace(request, loras=self.take_loras(loras))
        return _wait(self.start_grid(request, prompts, turbo=turbo, fresh=fresh))

    def final(
        self,
        picture: AnyPicture,
        scale: int = 2,
        *,
        strengths: Sequence[float] = STRENGTHS,
        upscaler: str | None = None,
        fresh: bool = False,
    ) -> Pictures:
        """Make a picture large, on its own seed and words, and wait for it.

        Args:
            picture: See `AnyPicture`.
            scale: 2 or 4 times as wide and high.
            strengths: How much is painted anew, one picture each; `[0.3]` gives one.
            upscaler: The name or .safetensors file of a network that enlarges in place of that; one
                picture.
            fresh: Compute even what the library remembers.
        """
        run = self.start_final(picture, scale, strengths=strengths, upscaler=upscaler, fresh=fresh)
        return _wait(run)


def _wait(run: Run) -> Pictures:
    """Wait for a run; Ctrl+C stops it and keeps what is finished."""
    try:
        pictures = [StudioPicture(entry) for entry in run.result()]
    except BaseException:  # Ctrl+C too; it goes on to whoever asked.
        run.cancel()
        raise
    for notice in run.notices:
        logger.warning("%s", notice)
    return Pictures(pictures, run.notices)
