"""Real Ray on this machine: the very files, a killed worker, Stop, who may connect."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
import pytest
from cluster_painters import LOOK_S, MarkingBackend, marks
from stores import MakeRecipes, MemoryStore

from seedgrid.core.errors import RunCancelled, RunError
from seedgrid.core.plan import plan_grid
from seedgrid.diffusion.away import ray_node
from seedgrid.engine import Engine
from seedgrid.library import Library
from seedgrid.testing.fake import FakeBackend

pytestmark = pytest.mark.sweep
"""Ray takes some seconds to begin; tests/test_painter_pool.py holds the same without it."""

SOON_S = 120.0
TESTS = Path(__file__).parent
SIXTEEN = tuple(range(16))


@dataclass(frozen=True)
class Cluster:
    """One cluster of two workers on this machine, as `ui --cluster local` begins it."""

    engine: Engine
    folder: Path
    address: str


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Begun once for this file; its token is not the user's own."""
    with begun(
        tmp_path_factory.mktemp("cluster"), ray_node.SETTINGS | ray_node.LOCAL_SETTINGS
    ) as it:
        yield it


@contextlib.contextmanager
def begun(folder: Path, settings: Mapping[str, str]) -> Iterator[Cluster]:
    """Begin a cluster with these variables of Ray's, and end it."""
    token, painted = folder / "token", folder / "marks"
    token.write_text("0123456789abcdef0123456789abcdef")
    painted.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
        patch.setenv("SEEDGRID_WORKERS", "2")
        patch.setenv("PYTHONPATH", f"{TESTS}{os.pathsep}{TESTS.parent}")
        for name, value in settings.items():
            patch.setenv(name, value)
        # Ray reads this one once a process; an earlier file may have had it read another value.
        everywhere = settings.get("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "1") == "1"
        patch.setattr("ray._private.ray_constants.ENABLE_RAY_CLUSTER", everywhere)
        address = ray_node.connect("local")
        from seedgrid.diffusion.away.ray_cluster import RayCluster

        backend = RayCluster(FakeBackend(), partial(MarkingBackend, painted))
        with Engine(backend, MemoryStore(), runs_per_owner=9) as engine:
            yield Cluster(engine, painted, address)
    with warnings.catch_warnings():  # Ray leaves processes that it has killed to the collector.
        warnings.simplefilter("ignore", ResourceWarning)
        del backend, engine
        gc.collect()


@pytest.fixture(autouse=True)
def no_marks(cluster: Cluster) -> None:
    for path in cluster.folder.iterdir():
        path.unlink()


def wait_for(is_so: Callable[[], bool]) -> None:
    end_s = time.monotonic() + SOON_S
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(LOOK_S)


def test_a_killed_worker_costs_no_picture(
    cluster: Cluster, make_recipes: MakeRecipes, tmp_path: Path
) -> None:
    """Kill -9 in the middle of sixteen: all cells, and the very files of the local engine."""
    jobs = plan_grid(make_recipes("held", SIXTEEN))
    spread = Library(tmp_path / "spread")
    alone = Library(tmp_path / "alone")
    run = cluster.engine.submit(jobs, owner="me", library=spread)
    wait_for(lambda: len(marks(cluster.folder)) == 2)
    killed, seeds = next(iter(marks(cluster.folder).items()))
    os.kill(killed, signal.SIGKILL)
    wait_for(
        lambda: any(
            seeds[0] in begun for pid, begun in marks(cluster.folder).items() if pid != killed
        )
    )
    (cluster.folder / "go").touch()
    files = [entry.path.read_bytes() for entry in run.result(SOON_S)]
    with Engine(FakeBackend(), alone) as engine:
        entries = engine.submit(jobs, owner="me").result(SOON_S)
    assert files == [entry.path.read_bytes() for entry in entries]


def test_stop_frees_the_workers(cluster: Cluster, make_recipes: MakeRecipes) -> None:
    """Both are held in a step; after Stop both paint for somebody else."""
    run = cluster.engine.submit(plan_grid(make_recipes("held", SIXTEEN)), owner="me", fresh=True)
    wait_for(lambda: len(marks(cluster.folder)) == 2)
    before = set(marks(cluster.folder))
    run.cancel()
    with pytest.raises(RunCancelled):
        run.result(SOON_S)
    other = make_recipes("another held", tuple(range(100, 108)))
    run = cluster.engine.submit(plan_grid(other), owner="you")
    wait_for(
        lambda: all(
            "100-101" in str(each) or "104-105" in str(each)
            for each in marks(cluster.folder).values()
        )
    )
    assert set(marks(cluster.folder)) == before
    (cluster.folder / "go").touch()
    assert len(run.result(SOON_S)) == 8


def test_a_stranger_without_the_token_gets_nothing(cluster: Cluster, tmp_path: Path) -> None:
    """Ray runs what it is told, so it asks who tells it."""
    wrong = tmp_path / "wrong"
    wrong.write_text("f" * 32)
    code = f"import ray; ray.init('{cluster.address}', log_to_driver=False)"
    environment = os.environ | {"RAY_AUTH_TOKEN_PATH": str(wrong)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "token" in done.stderr.lower()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells who listens on Linux only")
def test_a_cluster_of_one_computer_listens_on_it_only(cluster: Cluster) -> None:
    """No machine of the network reaches a process of Ray's."""
    assert cluster.address.startswith("127.0.0.1:")
    own = [process.pid for process in psutil.Process().children(recursive=True)]
    listening = dict(_listening())
    found = {listening[inode] for pid in own for inode in _sockets(pid) if inode in listening}
    assert found
    assert found <= {"0100007F", "0000000000000000FFFF00000100007F", f"{'0' * 24}01000000"}


def _listening() -> Iterator[tuple[str, str]]:
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                yield fields[9], fields[1].partition(":")[0]


def _sockets(pid: int) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                yield str(link.readlink()).removeprefix("socket:[").removesuffix("]")


def test_no_cluster_here_is_said(monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> None:  # noqa: ARG001
    """Ray's own reason, in a sentence of ours."""
    with pytest.raises(RunError, match="cannot be used"):
        ray_node.connect("ray://127.0.0.1:1")
