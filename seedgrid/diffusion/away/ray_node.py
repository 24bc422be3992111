"""This machine as a part of a cluster: begin one, join one, offer workers.

Ray runs any code that is sent, so each connection needs a token. Dashboard and reports are off.
"""

import contextlib
import importlib.util
import json
import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from seedgrid.core.errors import InputError, RunError

PORT: Final = 6379
CPU_SLOT: Final = "seedgrid_cpu"  # Ray's resource by which a machine offers workers without a GPU
GPU_SLOT: Final = "seedgrid_gpu"  # The same for workers with one each
SETTINGS: Final = {"RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}
LOCAL_SETTINGS: Final = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # Ray then listens at 127.0.0.1


def read_address(text: str) -> str:
    """Return the `HOST:PORT` of `ray://HOST:PORT`."""
    host, _, port = text.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal() or not all(c.isalnum() or c in ".-[]:_" for c in host):
        raise InputError("cluster_address", field="cluster", value=text[:100])
    return f"{host}:{port}"


def connect(cluster: str) -> str:
    """Connect this process to a cluster and return its `HOST:PORT`, for machines that join it.

    `cluster` is `local` (begins one of this machine alone), `auto` (the one this machine is part
    of) or `ray://HOST:PORT`, of which it must be part, too: Ray streams nothing to a client from
    outside. Raises `ray_missing`, `cluster_address`, or `cluster_refused`: none is there, or it
    refuses.
    """
    set_up(SETTINGS | LOCAL_SETTINGS if cluster == "local" else SETTINGS)
    import ray

    options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    if cluster == "local":
        options |= {"include_dashboard": False, "resources": slots()}
    address = cluster if cluster in ("local", "auto") else read_address(cluster)
    try:
        context = ray.init(address, **options)
    except Exception as error:  # Ray has no common class for its errors here.
        reason = str(error).strip().partition("\n")[0][:300]
        raise RunError("cluster_refused", value=cluster, reason=reason) from error
    return str(context.address_info["gcs_address"])


def join(address: str | None, *, port: int = PORT) -> NoReturn:
    """Offer this machine's workers until this process, which becomes Ray's, is stopped."""
    set_up()
    where = ["--head", f"--port={port}", "--include-dashboard=false"]
    if address is not None:
        where = [f"--address={read_address(address)}"]
    offer = f"--resources={json.dumps(slots())}"
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", *where, offer]
    os.execv(sys.executable, command)  # noqa: S606 (our own words and a checked address)


def slots() -> dict[str, int]:
    """Return which workers this machine offers: `SEEDGRID_WORKERS`, or one a GPU, or one."""
    from ray._private.accelerators import get_accelerator_manager_for_resource as manager

    num_gpus = int(manager("GPU").get_current_node_num_accelerators())
    num_workers = os.environ.get("SEEDGRID_WORKERS", "").strip() or str(max(1, num_gpus))
    if not num_workers.isdecimal():
        raise InputError("variable_number", field="SEEDGRID_WORKERS", value=num_workers[:40])
    return {GPU_SLOT if num_gpus else CPU_SLOT: int(num_workers)} if int(num_workers) else {}


def set_up(settings: Mapping[str, str] = SETTINGS) -> None:
    """Set Ray's variables, and a token that only its owner can read; raise `ray_missing`."""
    if importlib.util.find_spec("ray") is None:
        raise InputError("ray_missing", field="cluster")
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    if not {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys():
        _keep_token_private(Path.home() / ".ray" / "auth_token")


def _keep_token_private(path: Path) -> None:
    """Make the token if there is none; Ray would make one that everybody can read."""
    path.parent.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(32))
    path.chmod(0o600)
