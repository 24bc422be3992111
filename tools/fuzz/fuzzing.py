"""Changes inputs at random and watches what a reader makes of them.

An input with an outcome that none had before (a result's size, an error's code or its place) joins
those that are changed further.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.fuzz.targets import REFUSED, Target

MAX_SECONDS: Final = 1.0
MAX_BYTES: Final = 256 * 1024**2

MAX_LENGTH: Final = 200_000
_MAX_CORPUS: Final = 400
_PIECES: Final = (
    b"\0",
    b"\xff",
    b"[" * 3000,
    b'{"a":' * 3000,
    b"9" * 5000,
    b"-1",
    b"1e999",
    b"NaN",
    b"\x00\x00\x00\x00",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\xed\xa0\x80",
    b"%00",
    b"%ED%A0%80",
    b" " * 1000,
    b"1-",
    b",",
    b"\n",
    b"null",
    b'""',
    b"\\ud800",
    b"slow",
    b"large",
)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """An input that a reader should have refused, or read sooner or in less memory."""

    what: str
    data: bytes

    @property
    def place(self) -> str:
        """Where it was found; the same fault is told once."""
        return self.what.splitlines()[-1]

    def keep(self, folder: Path, target: str) -> Path:
        """Write the input to a file, for replaying."""
        path = folder / f"found-{target}-{hashlib.sha256(self.data).hexdigest()[:8]}"
        path.write_bytes(self.data)
        return path


def fuzz(
    target: Target, *, seed: int, count: int | None = None, minutes: float | None = None
) -> Iterator[Finding | int]:
    """Try inputs; yields what is found, each fault once, and at last how many were tried.

    Args:
        target: The reader.
        seed: Of the random changes.
        count: How many inputs.
        minutes: How long; one of both is needed.
    """
    chance = random.Random(seed)  # noqa: S311 (inputs, no secrets)
    corpus, outcomes, told = list(target.seeds), set[str](), set[str]()
    end_s = time.monotonic() + minutes * 60 if minutes is not None else float("inf")
    tried = 0
    while tried < (count or sys.maxsize) and time.monotonic() < end_s:
        data = corpus[tried] if tried < len(target.seeds) else changed(chance, corpus, target)
        tried += 1
        outcome, finding = observe(target, data)
        if finding is not None and finding.place not in told:
            told.add(finding.place)
            yield finding
        if outcome not in outcomes and len(corpus) < _MAX_CORPUS:
            outcomes.add(outcome)
            corpus.append(data)
    yield tried


def observe(target: Target, data: bytes) -> tuple[str, Finding | None]:
    """Let a reader read an input: the outcome in one word, and what is wrong with it."""
    _forget_peak()
    before, start_s = _peak_bytes(), time.thread_time()
    wrong = []
    try:
        outcome = f"read {type(target.read(data)).__name__}"
    except REFUSED as error:
        outcome = f"{error.code} {_line(error)}"
    except Exception as error:  # noqa: BLE001 (this is what is looked for)
        outcome = f"{type(error).__name__} {_line(error)}"
        wrong.append("".join(traceback.format_exception(error, limit=-3)) + f"at {outcome}")
    # This thread's own time: what others do meanwhile is not the reader's.
    seconds, more = time.thread_time() - start_s, _peak_bytes() - before
    if seconds > MAX_SECONDS:
        wrong.append(f"took {seconds:.1f} s\nslow: {outcome}")
    if more > MAX_BYTES:
        wrong.append(f"took {more / 1024**2:.0f} MB\nlarge: {outcome}")
    return outcome, Finding(what="\n".join(wrong), data=data) if wrong else None


def changed(chance: random.Random, corpus: list[bytes], target: Target) -> bytes:
    """Return one of the inputs with a few random changes, mostly mended so that it is read."""
    data = bytearray(chance.choice(corpus))
    for _ in range(chance.choice((1, 1, 2, 4, 8))):
        _change(chance, data, corpus)
    whole = bytes(data[:MAX_LENGTH])
    if chance.random() < 0.8:
        with contextlib.suppress(ValueError, IndexError):
            whole = target.mend(whole)
    return whole


def _change(chance: random.Random, data: bytearray, corpus: list[bytes]) -> None:
    start = chance.randint(0, len(data))
    end = min(len(data), start + chance.choice((0, 1, 1, 2, 4, 16, 64)))
    match chance.randrange(6):
        case 0:
            data[start:end] = chance.randbytes(end - start)
        case 1:
            del data[start:end]
        case 2:
            data[start:end] = chance.choice(_PIECES)
        case 3:
            other = chance.choice(corpus)
            at = chance.randint(0, len(other))
            data[start:end] = other[at : at + chance.randint(0, 200)]
        case 4:
            data[start:start] = bytes(data[start:end]) * chance.choice((1, 2, 50))
        case _ if start < len(data):
            data[start] ^= 1 << chance.randrange(8)


def _line(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}:{last.lineno}"


def _forget_peak() -> None:
    """Let Linux count anew: what was there before would hide what an input takes."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak_bytes() -> int:
    """Return the most memory this process had; 0 where the system does not tell."""
    with contextlib.suppress(OSError, LookupError):
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
