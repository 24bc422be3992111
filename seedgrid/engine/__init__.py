"""The engine paints jobs and announces events. Only one thread of a process calls torch.

`engine.py` has the public methods, `run.py` is what callers follow, `queue.py` decides whose turn
it is, `batches.py` has the batches that a run has still to paint, `worker.py` is the thread that
paints, `saver.py` the thread that saves at the same time.
"""

from seedgrid.core.plan import Job
from seedgrid.engine.engine import Engine
from seedgrid.engine.queue import UNBOUNDED, Bounds
from seedgrid.engine.run import Run
from seedgrid.engine.worker import Patience

__all__ = ["UNBOUNDED", "Bounds", "Engine", "Job", "Patience", "Run"]
