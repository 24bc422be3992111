"""Let torch's threads wait for each other asleep, not at work, when the machine is busy.

libgomp's threads meet many times a step. One that comes first spins, in case the other comes soon;
beside other busy programs the other may not be running at all, and the first burns the time that it
would need to. So it spins a third as long as it is used to: as long as a quiet machine needs. Not a
bit of any picture depends on it. Measured in docs/performance.md. Needs no torch.
"""

import os
from typing import Final

SPIN_COUNT: Final = "100000"
"""A third of what libgomp takes by itself; 10,000 costs a twentieth on a quiet machine."""

_USERS_OWN: Final = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")


def tune() -> None:
    """Set how long threads spin, unless the user has; libgomp reads it when torch is imported.

    Source: https://gcc.gnu.org/onlinedocs/libgomp/GOMP_005fSPINCOUNT.html
    """
    if not any(name in os.environ for name in _USERS_OWN):
        os.environ["GOMP_SPINCOUNT"] = SPIN_COUNT
