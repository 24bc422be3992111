"""Pictures that are not made of words and noise alone, and what can be forged on each kind.

With a LoRA, from a start, enlarged by a network, painted over, portable, refined: the small SD-
shaped pipeline paints them, and a `Studio` keeps what they need.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from PIL import Image

from seedgrid.core.errors import RunError, SeedGridError
from seedgrid.core.picture import Entry
from seedgrid.core.recipe import Recipe, read_recipe
from seedgrid.diffusion.backend import placement_of
from seedgrid.studio import Studio
from tests.forgeries.originals import Original

_NOBODY: Final = "ab" * 32
_SMALL: Final[dict[str, Any]] = {"width": 64, "height": 64, "num_inference_steps": 2}

Forged = tuple[str, bytes, frozenset[str]]
"""What was done, the file, and the verdicts that are right."""


class Kinds:
    """Honest pictures of each kind, of one studio.

    Args:
        studio: With the small SD-shaped pipeline.
        folder: For a photograph.
        lora: A LoRA's file for that pipeline.
        network: An upscaler network's file that makes twice as large.
    """

    def __init__(self, studio: Studio, folder: Path, lora: Path, network: Path) -> None:
        self._studio = studio
        noise = np.random.default_rng(3).integers(0, 256, (80, 72, 3), dtype=np.uint8)
        photo = folder / "photo.png"
        Image.fromarray(noise).save(photo)
        plain = self._grid()
        (self._large,) = studio.final(plain, 2, upscaler=str(network))
        (over,) = studio.final(plain, 2, strengths=[0.5])
        self.originals = {
            "with a LoRA": self._grid(loras=[f"{lora}=0.8"]),
            "from a photograph": self._grid(start=str(photo), strength=0.6),
            "enlarged": self._large,
            "painted over": over,
            "portable": self._grid(portable=True),
            "refined": studio.refine(plain, [", artsy"])[0],
        }

    def _grid(self, **settings: Any) -> Entry:
        return self._studio.grid("a red fox", "0", **(_SMALL | settings))[0]

    def forged(self) -> Iterator[Forged]:
        """Give each kind as it is, and forged."""
        for kind, picture in self.originals.items():
            it = Original(Path(picture.path).read_bytes())
            forgeries = (_of_any(it), self._of_recipe(it), _of_lineage(it))
            for name, data, wanted in (each for some in forgeries for each in some):
                yield f"{kind}: {name}", data, wanted

    def _of_recipe(self, it: Original) -> Iterator[Forged]:
        for name, changes in _changes(it.recipe, self._large.recipe):
            try:
                recipe = read_recipe(json.dumps(it.record["recipe"] | changes))
            except SeedGridError:
                yield name, it.with_recipe(**changes), frozenset({"impossible"})
                continue
            wanted = self._truth(it, recipe)
            yield name, it.with_recipe_and_words(recipe, **changes), wanted

    def _truth(self, it: Original, recipe: Recipe) -> frozenset[str]:
        """Paint, with the backend alone, and say what is true of the file."""
        placement = placement_of(it.passport)

        def paint(backend: Any) -> Any:
            from painting import SilentWatch

            try:
                backend.prepare(recipe, placement)
                return backend.paint([recipe], placement, SilentWatch())[0]
            except SeedGridError as error:
                return error

        painted = self._studio.engine.submit_task(paint).result()
        if isinstance(painted, RunError | SeedGridError):
            return frozenset({"impossible"})
        if painted.shape != it.pixels.shape:
            return frozenset({"drifted"})
        is_equal = np.array_equal(painted, it.pixels)
        # Which release of a library there was, a picture that needs none does not tell; and a
        # portable picture was made under other switches, which may round otherwise.
        then, now = _kind(it.recipe), _kind(recipe)
        differs = {"altered"} if then == now else {"altered", "drifted", "close"}
        return frozenset({"identical"} if is_equal else differs)


def _kind(recipe: Recipe) -> tuple[bool, ...]:
    return recipe.upscaler is not None, bool(recipe.loras), recipe.is_portable


def _of_any(it: Original) -> Iterator[Forged]:
    """Pixels and passports: what holds for every kind."""
    edited = it.pixels.copy()
    edited[3, 5, 1] ^= 1
    old, passport = it.record["pixels_sha256"], it.record["passport"]
    altered, is_portable = frozenset({"altered"}), it.recipe.is_portable
    yield "as it is", it.data, frozenset({"identical"})
    yield "one pixel", it.with_pixels(edited, pixels_sha256=old), altered
    yield "one pixel, in step", it.with_pixels(edited), altered
    yield "turned", it.with_pixels(np.ascontiguousarray(it.pixels[::-1])), altered
    yield "half as large", it.with_pixels(it.pixels[::2, ::2].copy()), frozenset({"drifted"})
    for name, changes, word in (
        ("an older torch", {"torch": "2.8.0"}, "close"),
        ("another processor", {"device_name": "Abacus"}, "close"),
        ("another spandrel", {"spandrel": "0.0.1"}, "altered drifted close"),
        ("another peft", {"peft": "0.0.1"}, "altered drifted close"),
        ("no passport", None, "drifted"),
    ):
        changed = {} if changes is None else passport | changes
        told = it.with_record(passport=changed)
        # Nobody knows on how many threads it was painted: another number may round otherwise.
        usual = {"identical"} if changes or is_portable else {"identical", "drifted"}
        yield f"{name}, honest", told, frozenset(usual)
        words = frozenset(word.split()) if not is_portable else altered
        yield f"{name}, one pixel", it.with_pixels(edited, passport=changed), words
    if is_portable:
        for name, changes in {
            "threads": {"threads": 3},
            "device": {"cpu_capability": "NEON"},
        }.items():
            data = it.with_pixels(edited, passport=passport | changes)
            yield f"other {name}, one pixel", data, altered
            yield f"other {name}, honest", it.with_passport(**changes), frozenset({"identical"})


def _of_lineage(it: Original) -> Iterator[Forged]:
    """What no verdict tells (docs/lock.md): it is written down, and read as it is."""
    lineage = copy.deepcopy(it.record["lineage"])
    for name, changes in {
        "other parents": {"parents": ["c" * 32]},
        "another date": {"created_at": "1999-01-01T00:00:00+00:00"},
        "another change": {"change": "seed 5"},
    }.items():
        known = {key: value for key, value in changes.items() if key in lineage}
        yield (
            f"lineage: {name}",
            it.with_record(lineage=lineage | known),
            frozenset({"identical"}),
        )
    yield (
        "lineage: a field more",
        it.with_record(lineage=lineage | {"owner": "me"}),
        frozenset({"impossible"}),
    )


def _changes(recipe: Recipe, large: Recipe) -> Iterator[tuple[str, dict[str, Any]]]:
    """Say what can be written into a recipe of some kind; `large` is of an enlarged picture."""
    yield "another seed", {"seed": 77}
    yield "other words", {"prompt": "a blue ship"}
    yield "words that nobody typed", {"typed_prompt": "the king himself"}
    yield "a step more", {"num_inference_steps": recipe.num_inference_steps + 1}
    yield "a width of two", {"lock_width": 2}
    yield "a width of one", {"lock_width": 1}
    yield "a scheduler that there is not", {"scheduler": "Wishful"}
    yield "seven words", {"negative_prompt": "one two three four five six seven"}
    yield "another format", {"dtype": "bfloat16"}
    yield "a mix", {"noise_mix": [{"seed": 5, "weight": 0.3}]}
    yield "portable or not", {"arithmetic": "native" if recipe.is_portable else "portable-1"}
    yield "a LoRA of nobody", {"loras": [{"id": "x", "weights_sha256": _NOBODY, "scale": 1.0}]}
    yield "a start of nobody", {"start": _NOBODY, "strength": 0.5}
    yield "a network of nobody", {"upscaler": {"id": "x", "weights_sha256": _NOBODY}}
    yield "another start", {"start": large.start, "strength": 0.5}
    yield "no start", {"start": "", "strength": 1.0}
    yield "no start, but a strength", {"start": "", "strength": 0.4}
    yield "as if enlarged", {"start": large.start, "upscaler": dict(large.upscaler or {})}
    yield "twice as wide", {"width": recipe.width * 2}
    if recipe.upscaler is not None:
        yield "not enlarged", {"upscaler": None}
    for scale in (0.0, -0.8, 0.79999, 4.0) if recipe.loras else ():
        loras = [lora.model_dump() | {"scale": scale} for lora in recipe.loras]
        yield f"its LoRA by {scale}", {"loras": loras}
    if recipe.loras:
        lora = recipe.loras[0].model_dump()
        yield "no LoRA", {"loras": []}
        yield "its LoRA twice", {"loras": [lora, lora]}
        yield "its LoRA by another name", {"loras": [lora | {"id": "nobody"}]}
        yield "its LoRA by other weights", {"loras": [lora | {"weights_sha256": _NOBODY}]}
    if recipe.start and recipe.upscaler is None:
        yield "a little less strength", {"strength": recipe.strength * 0.999}
        yield "all strength", {"strength": 1.0}
