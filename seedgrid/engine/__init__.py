"""The engine: jobs in, events out, one thread that owns the backend.

    with Engine(backend, library) as engine:
        run = engine.submit(plan_grid(recipes), owner="me")
        for event in run.events():
            ...

Knows nothing of screens, prompts or files. `engine.py` is the door, `run.py` what watchers hold,
`event_log.py` what they hear, `fair_queue.py` who is next, `worker.py` the thread that paints,
`painter_pool.py` several, `painting.py` how one run is painted, `saving.py` what the thread beside
it does, `watchdog.py` who notices when one does not come back.
"""

from seedgrid.engine.admission import UNBOUNDED, Bounds, Load
from seedgrid.engine.engine import Engine
from seedgrid.engine.painter_pool import PainterState
from seedgrid.engine.run import Run, State
from seedgrid.engine.store import Store
from seedgrid.engine.warming import Warmth
from seedgrid.engine.watchdog import Patience

__all__ = [
    "UNBOUNDED",
    "Bounds",
    "Engine",
    "Load",
    "PainterState",
    "Patience",
    "Run",
    "State",
    "Store",
    "Warmth",
]
