"""A worker joins a cluster that listens to other computers, as `seedgrid worker` begins one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cluster_painters import marks
from stores import MakeRecipes
from test_cluster import SIXTEEN, SOON_S, begun, wait_for

from seedgrid.core.plan import plan_grid
from seedgrid.diffusion.away import ray_node

pytestmark = pytest.mark.sweep


def test_a_worker_that_joins_takes_work(make_recipes: MakeRecipes, tmp_path: Path) -> None:
    """`seedgrid worker` on a run that two others hold: the third batch goes to the third."""
    reachable = dict.fromkeys(ray_node.LOCAL_SETTINGS, "1")  # `--cluster local` listens to nobody
    with begun(tmp_path, ray_node.SETTINGS | reachable) as cluster:
        jobs = plan_grid(make_recipes("held", SIXTEEN))
        run = cluster.engine.submit(jobs, owner="me", fresh=True)
        wait_for(lambda: len(marks(cluster.folder)) == 2)
        address = f"ray://{cluster.address}"
        command = [sys.executable, "-m", "seedgrid", "worker", address, "--workers", "1"]
        silent = subprocess.DEVNULL
        with subprocess.Popen(command, env=os.environ, stdout=silent, stderr=silent) as process:
            try:
                wait_for(lambda: len(marks(cluster.folder)) == 3)
                (cluster.folder / "go").touch()
                assert len(run.result(SOON_S)) == 16
            finally:
                process.terminate()
