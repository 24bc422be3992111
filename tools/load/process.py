"""What a process holds, as Linux tells it: memory, threads, descriptors, processor time, files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Held:
    """At one moment."""

    memory_mb: float
    threads: int
    descriptors: int
    files: int
    processor_s: float

    def __str__(self) -> str:
        return (
            f"{self.memory_mb:7.1f} MB  {self.threads:3} threads  {self.descriptors:3} descriptors"
            f"  {self.files:4} temporary files  {self.processor_s:7.1f} s of processor"
        )


@dataclass(frozen=True)
class Sample:
    """What was held so long after the start, and how many answers had been given by then."""

    at_s: float
    num_answers: int
    held: Held


def held_by(pid: int, folder: Path) -> Held:
    """Ask for a process, and for the files in its folder for temporary ones but the pictures."""
    status = Path(f"/proc/{pid}/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines())
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(stat[11]) + int(stat[12])
    return Held(
        memory_mb=int(fields["VmRSS"].split()[0]) / 1024,
        threads=int(fields["Threads"]),
        descriptors=len(list(Path(f"/proc/{pid}/fd").iterdir())),
        files=_num_temporary(folder),
        processor_s=ticks / os.sysconf("SC_CLK_TCK"),
    )


def _num_temporary(folder: Path) -> int:
    """Count the files; folders may go meanwhile, which `os.walk` takes for empty ones."""
    return sum(
        len(names)
        for path, _, names in os.walk(folder)
        if not {"objects", "visitors"} & set(Path(path).parts)
    )
