"""This machine as a node of a Ray cluster: start a cluster, join one, offer slots for workers.

Ray runs any code that is sent to it, so each connection must present a token. Ray's dashboard and
usage reports are turned off.
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
# Names of Ray's custom resources: slots for workers without a GPU, and with one GPU each
CPU_SLOT: Final = "seedgrid_cpu"
GPU_SLOT: Final = "seedgrid_gpu"
SETTINGS: Final = {"RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}
# "0" makes Ray listen at 127.0.0.1 only, on Linux, too
LOCAL_SETTINGS: Final = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


def read_address(text: str) -> str:
    """Return the `HOST:PORT` of `ray://HOST:PORT`."""
    host, _, port = text.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal() or not all(c.isalnum() or c in ".-[]:_" for c in host):
        raise InputError("cluster_address", field="cluster", value=text[:100])
    return f"{host}:{port}"


def connect(cluster: str) -> str:
    """Connect this process to a cluster and return its `HOST:PORT`, for machines that join it.

    `cluster` is `local` (start one with this machine only), `auto` (the one that this machine has
    joined) or `ray://HOST:PORT`. This machine must have joined that cluster before, as Ray streams
    no results to other clients. Raises `ray_missing`, `cluster_address`, or `cluster_refused` if no
    cluster is there or it refuses the connection.
    """
    set_up(SETTINGS | LOCAL_SETTINGS if cluster == "local" else SETTINGS)
    import ray

    options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    if cluster == "local":
        options |= {"include_dashboard": False, "resources": slots()}
    address = cluster if cluster in ("local", "auto") else read_address(cluster)
    try:
        context = ray.init(address, **options)
    except Exception as error:  # Ray's errors have no common class here.
        reason = str(error).strip().partition("\n")[0][:300]
        raise RunError("cluster_refused", value=cluster, reason=reason) from error
    return str(context.address_info["gcs_address"])


def join(address: str | None, *, port: int = PORT) -> NoReturn:
    """Start a cluster at a port, or join the one at an address, and offer this machine's slots.

    Ray's program replaces this process. Raises `ray_missing`, `cluster_address`, `variable_number`.
    """
    set_up()
    options = ["--head", f"--port={port}", "--include-dashboard=false"]
    if address is not None:
        options = [f"--address={read_address(address)}"]
    resources = f"--resources={json.dumps(slots())}"
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", *options, resources]
    os.execv(sys.executable, command)  # noqa: S606 (fixed options and a checked address)


def slots() -> dict[str, int]:
    """Return this machine's slots, by kind: `SEEDGRID_WORKERS`, or one for each GPU, or one."""
    from ray._private.accelerators import get_accelerator_manager_for_resource as manager

    num_gpus = int(manager("GPU").get_current_node_num_accelerators())
    num_workers = os.environ.get("SEEDGRID_WORKERS", "").strip() or str(max(1, num_gpus))
    if not num_workers.isdecimal():
        raise InputError("variable_number", field="SEEDGRID_WORKERS", value=num_workers[:40])
    return {GPU_SLOT if num_gpus else CPU_SLOT: int(num_workers)} if int(num_workers) else {}


def set_up(settings: Mapping[str, str] = SETTINGS) -> None:
    """Set Ray's unset environment variables, and make its token private; raise `ray_missing`."""
    if importlib.util.find_spec("ray") is None:
        raise InputError("ray_missing", field="cluster")
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    if not {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys():
        _make_private_token(Path.home() / ".ray" / "auth_token")


def _make_private_token(path: Path) -> None:
    """Create a token, if there is none, that only its owner may read, not all as with Ray's."""
    path.parent.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(32))
    path.chmod(0o600)
