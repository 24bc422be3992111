"""Carry the Dockerfile's steps out in a clean root, where no container engine runs.

    python -m tools.container --root /var/tmp/seedgrid-root     # needs root and debootstrap

The root is Debian's smallest system of the base image's release, with Debian's own Python in the
place of the image's. COPY copies, RUN runs in it, and at the end the program is started as the user
of the file, asked for its health and for a grid, and stopped by the file's signal.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

ROOT = Path(__file__).parent.parent
_HOST_FILES = (
    "/etc/hosts",
    "/etc/resolv.conf",
    "/etc/pip.conf",
    "/etc/ssl/certs/ca-certificates.crt",
)
_READY_S = 120


@dataclass(frozen=True)
class Step:
    """One instruction: `COPY`, and what stands behind it, continued lines joined."""

    kind: str
    text: str


def read_steps(file: Path) -> tuple[Step, ...]:
    """Read a Dockerfile's instructions, in order."""
    text = re.sub(r"^#.*\n", "", file.read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return tuple(Step(*line.split(maxsplit=1)) for line in lines if line.strip())


class CleanRoot:
    """A folder that is a system of its own."""

    def __init__(self, folder: Path, arguments: Mapping[str, str]) -> None:
        self.folder = folder
        self.arguments = dict(arguments)
        self.environment = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
        self.place, self.user, self.command = "/", "0", [""]

    def make(self, release: str) -> None:
        packages = "python3,python3-pip,ca-certificates"
        base = ["debootstrap", "--variant=minbase", f"--include={packages}", release]
        subprocess.run([*base, str(self.folder)], check=True)
        for name in filter(os.path.exists, _HOST_FILES):
            shutil.copy(name, self.folder / name[1:])
        (self.folder / "usr/local/bin/python").symlink_to("/usr/bin/python3")

    def carry_out(self, step: Step) -> None:
        text = re.sub(r"\$\{?(\w+)\}?", self._value, step.text) if step.kind != "RUN" else step.text
        match step.kind:
            case "ARG":
                name, _, value = text.partition("=")
                self.arguments.setdefault(name, value)
            case "ENV":
                self.environment |= dict(re.findall(r"(\w+)=(\S+)", text))
            case "WORKDIR":
                self.place = text
                (self.folder / text[1:]).mkdir(parents=True, exist_ok=True)
            case "USER":
                self.user = text
            case "COPY":
                *sources, target = text.split()
                self._copy(sources, self.folder / self.place[1:] / target)
            case "RUN":
                self.run(["/bin/sh", "-ec", text])
            case "CMD":
                self.command = json.loads(text)

    def _value(self, found: re.Match[str]) -> str:
        return self.arguments.get(found[1], self.environment.get(found[1], ""))

    def _copy(self, sources: list[str], target: Path) -> None:
        for source in sources:
            if (ROOT / source).is_dir():
                hidden = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / source, target, ignore=hidden, dirs_exist_ok=True)
            else:
                shutil.copy(ROOT / source, target)

    def inside(self, command: list[str]) -> list[str]:
        """Return the command that runs another one in the root, as its user, in its folder."""
        told = [f"{name}={value}" for name, value in (self.arguments | self.environment).items()]
        go = f'cd {self.place} && exec "$@"'
        change = ["chroot", f"--userspec={self.user}:{self.user}", str(self.folder)]
        return [*change, "/usr/bin/env", "-i", *told, "/bin/sh", "-c", go, "sh", *command]

    def run(self, command: list[str]) -> None:
        subprocess.run(self.inside(command), check=True)


def drive(root: CleanRoot) -> int:
    """Start what the file starts, paint a grid there, stop it; return the exit code."""
    port = root.environment["SEEDGRID_PORT"]
    address = f"http://127.0.0.1:{port}"
    with subprocess.Popen(root.inside(root.command)) as process:
        end_s = time.monotonic() + _READY_S
        while time.monotonic() < end_s:
            try:
                print(httpx.get(f"{address}/healthz").text)
                break
            except httpx.TransportError:
                time.sleep(0.2)
        from gradio_client import Client

        _, records = Client(address, verbose=False).predict("a fox", "0-3", api_name="/grid")
        print([record["pixels_sha256"][:12] for record in records])
        print(httpx.get(f"{address}/healthz").text)
        process.terminate()
        return process.wait()


def main() -> int:
    """Make the root and drive it; 0 when the program ended as it should."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--torch", default="cuda", help="cuda takes torch from the package index")
    parser.add_argument("--bind", action="append", default=[], help="a folder of the package index")
    told = parser.parse_args()
    root = CleanRoot(told.root, {"TORCH": told.torch, "PIP_BREAK_SYSTEM_PACKAGES": "1"})
    steps = read_steps(ROOT / "Dockerfile")
    base = next(step.text for step in steps if step.kind == "FROM")
    if not (told.root / "bin").exists():
        root.make(base.rpartition("-")[2])
    for folder in told.bind:
        (told.root / folder[1:]).mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "--bind", folder, told.root / folder[1:]], check=True)
    subprocess.run(["mount", "-t", "proc", "proc", told.root / "proc"], check=True)
    try:
        for step in steps:
            print(f"{step.kind} {step.text[:90]}", flush=True)
            root.carry_out(step)
        code = drive(root)
    finally:
        for folder in ("/proc", *told.bind):
            subprocess.run(["umount", told.root / folder[1:]], check=True)
    print(f"ended with {code}")
    return 0 if code in (0, 143, -15) else 1


if __name__ == "__main__":
    sys.exit(main())
