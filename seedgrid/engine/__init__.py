"""The engine: jobs in, events out, one thread that touches torch.

`engine.py` is the door, `run.py` what watchers hold, `queue.py` decides whose turn it is,
`batches.py` has the rest of a run, `worker.py` is the thread that paints, `saver.py` the one that
saves at the same time.
"""

from seedgrid.core.plan import Job
from seedgrid.engine.engine import Engine
from seedgrid.engine.queue import UNBOUNDED, Bounds
from seedgrid.engine.run import Run
from seedgrid.engine.worker import Patience

__all__ = ["UNBOUNDED", "Bounds", "Engine", "Job", "Patience", "Run"]
