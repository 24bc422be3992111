"""Run the child on an emulated processor and compare with the golden hashes.

QEMU's user mode comes from Debian's packages, for ARM a root with Python as well, and torch's ARM
wheels from the package index: nothing is installed, all lies in one folder. It takes 6 to 25
minutes. Needs Debian or Ubuntu on x86-64, and about 3 GB for ARM.

    python -m tools.portable emulate nehalem [MODEL…] [--only] [--folder DIR]

A model may name a scheduler and a seed (`sd-v/UniPC@77`): what has no golden hash is painted here,
too, and compared.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

from tools.portable.child import expected
from tools.portable.golden import FAMILIES

EMULATED = ("bundled", "sd", "sdxl", "sd3", "flux")
ROOT = Path(__file__).parent.parent.parent
CORES = {"nehalem": "Nehalem", "haswell": "Haswell"}
QEMU_PACKAGES = ("qemu-user", "libcapstone4", "liburing2")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
ARM_TORCH = "2.10.0"  # the last whose ARM wheel does without CUDA
FAMILY_SPECS = [spec for spec in FAMILIES if spec.partition("/")[0] in EMULATED]
ARM_WHEELS = (
    *("numpy", "tokenizers", "safetensors", "regex", "pyyaml", "pillow", "psutil"),
    *("markupsafe", "pydantic_core", "hf_xet"),
)
# Of these the ARM wheels are taken; everything else in this environment is plain Python.
COMPILED = ("torch", "_yaml", "yaml", "PIL", *ARM_WHEELS)


def main(arguments: list[str]) -> int:
    """Emulate; 0 when every hash is the golden one."""
    parser = argparse.ArgumentParser(prog="python -m tools.portable emulate")
    parser.add_argument("processor", choices=[*CORES, "arm64"])
    parser.add_argument("models", nargs="*", default=FAMILY_SPECS)
    parser.add_argument("--only", action="store_true", help="The models alone, no operations.")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "emulation")
    options = parser.parse_args(arguments)
    folder = options.folder.absolute()
    _unpack_debian(folder / "qemu", QEMU_PACKAGES)
    command, environment = _emulated(options.processor, folder)
    wanted, different = expected(options.models, has_basics=not options.only), []
    only = ["--only"] if options.only else []
    with subprocess.Popen(
        [*command, "-m", "tools.portable", "child", *only, *options.models],
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        for line in child.stdout or ():
            ((name, found),) = json.loads(line).items()
            same = wanted.pop(name, None) == found
            different += [] if same else [name]
            sys.stdout.write(f"{'equal' if same else 'OTHER'}  {name}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{options.processor}: other {different}, missing {sorted(wanted)}\n")
    return 1 if different or wanted or child.returncode else 0


def _emulated(processor: str, folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return a command that runs Python there, and its environment."""
    libraries = str(folder / "qemu/usr/lib/x86_64-linux-gnu")
    environment = {"LD_LIBRARY_PATH": libraries, "OMP_NUM_THREADS": "1"}
    programs = folder / "qemu/usr/bin"
    if processor in CORES:
        core = CORES[processor]
        # OpenBLAS takes an emulated Nehalem for a later core; it would stop at an AVX instruction.
        environment["OPENBLAS_CORETYPE"] = core
        command = [str(programs / "qemu-x86_64"), "-cpu", core, "-U", "LD_LIBRARY_PATH"]
        return [*command, sys.executable], environment
    root = folder / "arm64"
    _make_arm_root(root)
    environment["PYTHONPATH"] = f"{root / 'wheels'}:{root / 'plain'}"
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    command = [str(programs / "qemu-aarch64"), "-L", str(root), "-U", "LD_LIBRARY_PATH"]
    return [*command, str(root / "usr/bin/python3.11")], environment


def _unpack_debian(folder: Path, packages: tuple[str, ...]) -> None:
    """Fetch Debian packages and unpack them, once."""
    if folder.exists():
        return
    downloads = folder.with_name(f"{folder.name}-packages")
    downloads.mkdir(parents=True, exist_ok=True)
    subprocess.run(["apt-get", "download", *packages], cwd=downloads, check=True)
    for package in downloads.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, folder], check=True)


def _make_arm_root(root: Path) -> None:
    """Make a root with Debian's Python for ARM, torch's wheels for ARM, and links to the rest."""
    if (root / "plain").exists():
        return
    _unpack_arm_python(root)
    wheels, plain = root / "wheels", root / "plain"
    downloads = root.with_name("arm64-wheels")
    pins = [f"{name}=={version(name)}" for name in ARM_WHEELS]
    platforms = ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
            *("--only-binary=:all:", "--python-version", "311", "--dest", downloads),
            *(part for platform in platforms for part in ("--platform", platform)),
            *(f"torch=={ARM_TORCH}", *pins),
        ],
        check=True,
    )
    for wheel in downloads.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(wheels)
    plain.mkdir()
    for source in Path(sys.prefix).glob("lib/python3.11/site-packages/*"):
        _link(source, plain)


def _link(source: Path, plain: Path) -> None:
    name = source.name.lower()
    is_compiled = source.suffix in (".so", ".libs") or any(
        name == other.lower() or name.startswith(f"{other.lower()}-") for other in COMPILED
    )
    target = plain / source.name
    if not is_compiled and not target.exists():
        target.symlink_to(source)


def _unpack_arm_python(root: Path) -> None:
    """Fetch Debian's Python for ARM with an apt of its own; the machine's is left alone."""
    apt = root.with_name("arm64-apt")
    for part in ("state/lists/partial", "cache/archives/partial"):
        (apt / part).mkdir(parents=True, exist_ok=True)
    (apt / "status").touch()
    source = f"deb [signed-by={KEYRING}] http://deb.debian.org/debian bookworm main\n"
    (apt / "sources.list").write_text(source)
    settings = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "APT::Sandbox::User": "root",
        "Dir::State": apt / "state",
        "Dir::State::status": apt / "status",
        "Dir::Cache": apt / "cache",
        "Dir::Etc::sourcelist": apt / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
    }
    options = [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]
    wanted = ["python3.11", "libstdc++6", "libgomp1", "zlib1g"]
    subprocess.run(["apt-get", *options, "update"], check=True)
    install = ["install", "-y", "-d", "--no-install-recommends", *wanted]
    subprocess.run(["apt-get", *options, *install], check=True)
    for package in (apt / "cache/archives").glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, root], check=True)
