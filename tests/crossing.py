"""Cross every family with everything that may change a bit, against plain diffusers and itself.

    python -m tests.crossing FOLDER [--minutes 60] [--all]

A case is a family, scheduler, number format, width, number of threads, guidance, steps, size and
kind of prompt. Each is painted by SeedGrid, by plain diffusers in another process, and by SeedGrid
once more, one cell of it, in another slot beside other neighbours. First come a few hundred cases
in which every two values of two axes meet (`tests/covering.py`); with `--all` the rest follows, in
an order that mixes all axes. What was done is kept in FOLDER line by line, so that the next call
goes on. The summary goes into docs/lock.md.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from datetime import date
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from pictures import FAMILIES  # noqa: E402 (needs the path above)

from seedgrid.core.errors import SeedGridError  # noqa: E402 (same)
from seedgrid.diffusion.foreign_errors import REFUSALS  # noqa: E402
from seedgrid.models.families import FAMILIES as PIPELINES  # noqa: E402
from seedgrid.models.schedulers import min_steps  # noqa: E402
from tests.covering import covering, pairs_of  # noqa: E402

PAGE: Final = ROOT / "docs" / "lock.md"
START: Final = "<!-- crossing: written by `python -m tests.crossing` -->"
END: Final = "<!-- end of crossing -->"

SIZES: Final = {"square": (64, 64), "tall": (64, 96), "odd multiples": (72, 56)}
PROMPTS: Final = {
    "empty": " ",
    "one token": "a",
    "77 tokens": " ".join(["fox"] * 25),
    "300 words": " ".join(["an enormous landscape with foxes"] * 60),
    "Unicode": "狐 여우 лиса ‮fox‬ 🦊 e\u0301",
}
_REFUSALS: Final = (SeedGridError, *REFUSALS)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One point of the cross product."""

    family: str
    scheduler: str
    dtype: str
    width: int
    threads: int
    guidance: bool
    steps: int
    size: str
    prompt: str

    @property
    def key(self) -> str:
        """Its name; sorted by its digest the cases are mixed."""
        return json.dumps(asdict(self), sort_keys=True)


def cases(cards: dict[str, Any]) -> list[Case]:
    """Return every case that there is, mixed."""
    found = list(_product(cards))
    return sorted(found, key=lambda case: hashlib.sha256(case.key.encode()).digest())


def values_of(case: Case) -> tuple[Any, ...]:
    """Return a case's values, axis by axis."""
    return tuple(getattr(case, axis.name) for axis in fields(case))


def pairwise(cards: dict[str, Any]) -> list[Case]:
    """Return the cases in which every two values of two axes meet."""
    return covering(cases(cards), values_of)


def _product(cards: dict[str, Any]) -> Iterator[Case]:
    axes = (("float32", "bfloat16"), (1, 2, 4, 8), (1, 2), (True, False), (1, 2, 10))
    for family, card in cards.items():
        prompts = PROMPTS if card.has_prompt else ("empty",)
        sizes = ("square",) if card.fixed_size else SIZES
        # None of the small models asks PNDM to leave its first four steps out.
        pipeline = PIPELINES[card.family]
        fewest = {name: min_steps(name, {}, pipeline) for name in card.schedulers}
        for scheduler, size, prompt in itertools.product(card.schedulers, sizes, prompts):
            for dtype, width, threads, guidance, steps in itertools.product(*axes):
                if not card.has_prompt and not guidance:
                    continue
                if steps < fewest[scheduler]:
                    continue
                yield Case(
                    family=family,
                    scheduler=scheduler,
                    dtype=dtype,
                    width=width,
                    threads=threads,
                    guidance=guidance,
                    steps=steps,
                    size=size,
                    prompt=prompt,
                )


def recipes_of(case: Case, card: Any) -> tuple[Any, ...]:
    """Return a full batch: the case's prompt first, others beside it."""
    from seedgrid.core.recipe import Recipe

    width, height = SIZES[case.size]
    if card.fixed_size:
        width, height = card.width, card.height
    multiple = card.size_multiple
    width, height = (max(side // multiple, 1) * multiple for side in (width, height))
    words = [PROMPTS[case.prompt], "a fox", "two foxes at night"] if card.has_prompt else [""]
    usual = card.guidance_scale if card.guidance_scale > 1 else 7.5
    return tuple(
        Recipe(
            prompt=words[cell % len(words)],
            negative_prompt="",
            seed=11 + cell,
            width=width,
            height=height,
            num_inference_steps=case.steps,
            guidance_scale=usual if case.guidance else 1.0,
            scheduler=case.scheduler,
            model=card.ref,
            dtype=case.dtype,
            lock_width=case.width,
            determinism="strict",
        )
        for cell in range(case.width)
    )


def paint_ours(case: Case, backend: Any, card: Any) -> dict[str, str]:
    """Paint a case, and its last cell once more in the first slot beside others."""
    from painting import SilentWatch

    from seedgrid.diffusion.backend import Placement

    recipes = recipes_of(case, card)
    placement = Placement(threads=case.threads, previews=False)
    backend.prepare(recipes[0], placement)  # It alone refuses what cannot be painted.
    batch = backend.paint(recipes, placement, SilentWatch())
    last = recipes[-1]
    others = [each.replace(seed=each.seed + 100) for each in recipes[:-1]]
    moved = backend.paint([last, *others], placement, SilentWatch())
    return {
        "ours": _digest(batch),
        "cell": _digest(batch[-1:]),
        "moved": _digest(moved[:1]),
    }


def paint_plain(case: Case, folder: Path, card: Any, pipelines: dict[str, Any]) -> dict[str, str]:
    """Paint a case as the Diffusers guide does, with diffusers alone."""
    import numpy as np
    import torch
    from diffusers import DiffusionPipeline

    from seedgrid.models.schedulers import make_scheduler

    recipes = recipes_of(case, card)
    first = recipes[0]
    name = f"{case.family} {case.dtype}"
    if name not in pipelines:
        pipeline: Any = DiffusionPipeline.from_pretrained(folder, dtype=getattr(torch, case.dtype))
        pipeline.set_progress_bar_config(disable=True)
        pipelines[name] = (pipeline, dict(pipeline.scheduler.config))
    pipeline, config = pipelines[name]
    pipeline.scheduler = make_scheduler(case.scheduler, config)
    arguments: dict[str, Any] = {"num_inference_steps": case.steps, "output_type": "pt"}
    if card.has_prompt:
        arguments |= {"prompt": [recipe.prompt for recipe in recipes]}
        arguments |= {"width": first.width, "height": first.height}
        arguments["guidance_scale"] = first.guidance_scale
    else:
        arguments["batch_size"] = len(recipes)
    if case.family in ("pixart", "pixart-sigma", "sana"):
        arguments |= {"use_resolution_binning": False, "clean_caption": False}
    torch.set_num_threads(case.threads)
    generators = [torch.Generator("cpu").manual_seed(recipe.seed) for recipe in recipes]
    images = pipeline(**arguments, generator=generators).images
    array = images.permute(0, 2, 3, 1).float().numpy()
    return {
        "plain": _digest(
            (picture * 255).round().astype(np.uint8)
            if np.isfinite(picture).all()
            else "picture_nan"
            for picture in array
        )
    }


def _digest(pictures: Any) -> str:
    digest = hashlib.sha256()
    for picture in pictures:
        code = getattr(picture, "code", picture)  # Why there is none, where there is none.
        digest.update(picture.tobytes() if hasattr(picture, "tobytes") else str(code).encode())
    return digest.hexdigest()


def work(folder: Path, role: str, until: float, *, everything: bool) -> None:
    """Be one of the two processes: go through the cases from where it was left."""
    from seedgrid.diffusion.diffusers_backend import DiffusersBackend
    from seedgrid.models import registry

    # One backend a family and format: all these small models stay loaded.
    backends: dict[tuple[str, str], DiffusersBackend] = {}
    cards = {name: registry.find(str(folder / "models" / name)).card for name in FAMILIES}
    path = folder / f"{role}.jsonl"
    done = set(_read(path))
    pipelines: dict[str, Any] = {}
    with path.open("a", encoding="utf-8") as file:
        for case in itertools.chain(pairwise(cards), cases(cards) if everything else ()):
            if case.key in done:
                continue
            if time.time() > until:
                return
            card = cards[case.family]
            try:
                if role == "ours":
                    backend = backends.setdefault((case.family, case.dtype), DiffusersBackend())
                    found = paint_ours(case, backend, card)
                else:
                    models = folder / "models" / case.family
                    found = paint_plain(case, models, card, pipelines)
            except _REFUSALS as error:  # A case that cannot be painted is a line as well.
                found = {"error": f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"}
            done.add(case.key)
            file.write(json.dumps({"case": case.key, **found}) + "\n")
            file.flush()


def _read(path: Path) -> dict[str, dict[str, str]]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith("}")]
    return {row["case"]: row for row in rows}


def summarise(folder: Path, cards: dict[str, Any]) -> tuple[list[str], int]:
    """Return the table's lines, one a family, and how many cases differ."""
    ours, plain = _read(folder / "ours.jsonl"), _read(folder / "plain.jsonl")
    counts: dict[str, Counter[str]] = {family: Counter() for family in FAMILIES}
    wrong, painted = [], []
    for key in sorted(ours.keys() & plain.keys()):
        mine, theirs = ours[key], plain[key]
        count = counts[json.loads(key)["family"]]
        count["cases"] += 1
        if "error" in mine or "error" in theirs:
            count["refused by both" if "error" in mine and "error" in theirs else "by one"] += 1
            continue
        painted.append(Case(**json.loads(key)))
        count["not plain"] += mine["ours"] != theirs["plain"]
        count["not locked"] += mine["cell"] != mine["moved"]
        if mine["ours"] != theirs["plain"] or mine["cell"] != mine["moved"]:
            wrong.append(key)
    (folder / "wrong.txt").write_text("\n".join(wrong), encoding="utf-8")
    names = ("cases", "not plain", "not locked", "refused by both", "by one")
    lines = [
        f"| {family} | {' | '.join(str(count[name]) for name in names)} |"
        for family, count in counts.items()
    ]
    everything = cases(cards)
    met, there = (num_pairs(some) for some in (painted, everything))
    return [
        f"{date.today()}: {sum(count['cases'] for count in counts.values())} of "
        f"{len(everything)} cases were run; {met} of all {there} pairs of two axes' values met.",
        "",
        "| family | cases | other bits than plain diffusers | other bits beside others "
        "| refused by both | refused by one |",
        "|---|---|---|---|---|---|",
        *lines,
    ], len(wrong)


def num_pairs(some: Iterable[Case]) -> int:
    """Count the pairs of two axes' values that cases have together."""
    met: set[Any] = set()
    for case in some:
        met |= pairs_of(values_of(case))
    return len(met)


def main() -> int:
    """Go on for a while, then write what is known."""
    from pipelines import save

    from seedgrid.models import registry

    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--role", choices=["ours", "plain"])
    arguments = parser.parse_args()
    folder, until = arguments.folder, time.time() + arguments.minutes * 60
    for name in FAMILIES:
        if not (folder / "models" / name).exists():
            save(name, folder / "models" / name)
    if arguments.role:
        work(folder, arguments.role, until, everything=arguments.all)
        return 0
    for role, share in (("ours", 0.5), ("plain", 0.5)):
        command = [sys.executable, "-W", "ignore", "-m", "tests.crossing", str(folder)]
        minutes = str(arguments.minutes * share)
        subprocess.run([*command, "--minutes", minutes, "--role", role], cwd=ROOT, check=True)
    cards = {name: registry.find(str(folder / "models" / name)).card for name in FAMILIES}
    lines, num_wrong = summarise(folder, cards)
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    table = "\n".join([START, "", *lines, "", END])
    PAGE.write_text(before + table + rest.partition(END)[2], encoding="utf-8")
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if num_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
