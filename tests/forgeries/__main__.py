"""The forgeries as a command; see the package.

Four pictures of the bundled model are painted, every file is forged and put into one folder, and
`python -m seedgrid verify FOLDER --json` says what it thinks of each. A verdict that is not right,
a file without one, and a sentence that cannot be read are wrong; then it ends with 1. What is kept
in a folder (`--keep`) can be asked piece by piece (`--minutes`): the next call goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any, Final

import numpy as np

_AT_ONCE: Final = 100
_SILENT: Final[dict[str, Any]] = {"verdict": "none", "reasons": []}

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]


def main() -> int:
    """Forge, ask, and compare; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.forgeries")
    parser.add_argument("--pictures", type=int, default=4, help="honest ones to forge")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--model", help="the bundled one otherwise")
    parser.add_argument("--only", default="", help="forgeries whose name holds this")
    parser.add_argument("--sample", type=int, help="ask about so many only, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of that draw, and of the order")
    parser.add_argument("--keep", type=Path, help="where all of it stays, to go on with")
    parser.add_argument("--minutes", type=float, default=inf, help="stop asking after so long")
    options = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="seedgrid-forgeries-") as temporary:
        root = options.keep or Path(temporary)
        wanted = _forged(root, options)
        shuffled = np.random.default_rng(options.seed).permutation(sorted(wanted)).tolist()
        files = shuffled[: options.sample]
        answers = _answers(root, files, started + 60 * options.minutes)
        wanted = {file: wanted[file] for file in files}
        asked = {file: words for file, words in wanted.items() if file in answers}
        wrong = _compare(asked, answers)
    kinds = ", ".join(f"{count} {word}" for word, count in Counter(wanted_words(asked)).items())
    _say(f"{len(asked)} files ({kinds}): {wrong} wrong, {time.monotonic() - started:.0f} s")
    if left := len(wanted) - len(asked):
        _say(f"{left} files are left: run it again")
    return 1 if wrong else 0


Wanted = dict[str, tuple[str, frozenset[str]]]
"""What was done and the verdicts that are right, by the file's name."""


def _forged(root: Path, options: argparse.Namespace) -> Wanted:
    """Write the files, if they are not there already."""
    known = root / "wanted.json"
    if known.exists():
        told = json.loads(known.read_text())
        return {file: (name, frozenset(words)) for file, (name, words) in told.items()}
    folder = root / "forgeries"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = _forge(folder, options)
    if not options.model:
        wanted |= _forge_kinds(folder, root / "library", root, options.only)
    told = {file: (name, sorted(words)) for file, (name, words) in wanted.items()}
    known.write_text(json.dumps(told))
    return wanted


def _answers(root: Path, files: list[str], end_s: float) -> dict[str, dict[str, Any]]:
    """Ask for the verdicts that are not known yet; return all that are, by the file's name."""
    known = root / "answers.jsonl"
    lines = known.read_text().splitlines() if known.exists() else []
    given = {Path(line["path"]).name: line for line in map(json.loads, lines)}
    left = [file for file in files if file not in given]
    for start in range(0, len(left), _AT_ONCE):
        if time.monotonic() > end_s:
            break
        some = [root / "forgeries" / file for file in left[start : start + _AT_ONCE]]
        found = _asked(some, root / "library")
        if not found:
            sys.exit("verify gave no verdict at all: see what it said above")
        nothing = {file.name: _SILENT | {"path": str(file)} for file in some}
        given |= nothing | found
        with known.open("a") as answers:
            answers.writelines(f"{json.dumps(line)}\n" for line in (nothing | found).values())
    return given


def wanted_words(wanted: Wanted) -> list[str]:
    """Return which verdict each file should have."""
    return [" or ".join(sorted(words)) for _, words in wanted.values()]


def _forge(folder: Path, options: argparse.Namespace) -> Wanted:
    """Write the files; return name and wanted verdicts by the file's name."""
    from tests.forgeries.cases import cases, cases_of_words
    from tests.forgeries.painted import Painter
    from tests.forgeries.places import ODD_WORDS

    painter = Painter(options.model)
    settings = {"num_inference_steps": options.steps}
    originals = painter.originals(options.pictures, **settings)
    odd = painter.originals(len(ODD_WORDS), prompts=ODD_WORDS, **settings)
    found = {}
    every = chain(cases(originals, painter.paint), cases_of_words(odd))
    for number, case in enumerate(every):
        if options.only in case.name:
            name = f"{number:04}.png"
            (folder / name).write_bytes(case.data)
            found[name] = (case.name, case.wanted)
    return found


def _forge_kinds(folder: Path, library: Path, root: Path, only: str) -> Wanted:
    """Write the files of other kinds of pictures, which need a library; return as `_forge`."""
    from painting import PLACEMENT
    from pipelines import save
    from test_loras import make_lora
    from upscaler_files import save_upscaler

    from seedgrid.studio import Studio
    from tests.forgeries.kinds import Kinds

    model = save("sd", root / "sd")
    lora = make_lora(model, root / "random.safetensors")
    network = save_upscaler(root / "2x-random.safetensors", kind="Compact")
    found = {}
    with Studio(str(model), library, placement=PLACEMENT) as studio:
        for number, (name, data, wanted) in enumerate(Kinds(studio, root, lora, network).forged()):
            if only in name:
                found[f"kind-{number:04}.png"] = name, wanted
                (folder / f"kind-{number:04}.png").write_bytes(data)
    return found


def _asked(files: list[Path], library: Path) -> dict[str, dict[str, Any]]:
    """Ask the command line; return its JSON lines by the file's name."""
    command = [sys.executable, "-W", "ignore", "-m", "seedgrid", "verify", *map(str, files)]
    done = subprocess.run(
        [*command, "--json", "--library", str(library)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.decode().splitlines()]
    return {Path(line["path"]).name: line for line in lines}


def _compare(wanted: Wanted, given: dict[str, dict[str, Any]]) -> int:
    """Say for each file what was wanted and given; return how many are wrong."""
    wrong = 0
    for file, (name, words) in wanted.items():
        line = given[file]
        is_right = line["verdict"] in words and bool(
            line["verdict"] == "identical" or line["reasons"]
        )
        wrong += not is_right
        mark, reasons = "  " if is_right else "! ", "; ".join(line["reasons"])[:160]
        said = f"{line['verdict']:<10} wanted {' or '.join(sorted(words)):<20}"
        _say(f"{mark}{file} {said} {name}" + ("" if is_right else f"  [{reasons}]"))
    return wrong


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
