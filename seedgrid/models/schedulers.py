"""Schedulers by their common names, and which fit which family.

Those that add noise at each step draw it from the picture's own CPU generator. Not offered:

- `DPMSolverSDEScheduler`, "DPM++ SDE" of k-diffusion: ignores generators, and a seed gives other
  noise on a GPU. "DPM++ SDE" here is the stochastic form of `DPMSolverSinglestepScheduler`.
- `LMSDiscreteScheduler`: needs SciPy, which SeedGrid does not require.
- `EDM…`, `TCD…`, `SASolver…`: made for models of other families.
"""

import functools
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final

from seedgrid.models.families import Family, Sampling


@dataclass(frozen=True)
class Scheduler:
    """One scheduler of the table."""

    name: str
    scheduler_class: str  # The class in diffusers
    changes: Mapping[str, Any] = field(default_factory=dict)  # To the model's own configuration
    _: KW_ONLY
    samplings: tuple[Sampling, ...] = ("noise",)  # The kinds of families that it fits
    max_steps: int | None = None  # The most steps, if fewer than the model's schedule has
    variance_exploding: bool = False  # Its latents grow with the noise level, as in k-diffusion


_KARRAS: Final = {"use_karras_sigmas": True}
_NO_KARRAS: Final = {"use_karras_sigmas": False}
_DPM: Final = {"algorithm_type": "dpmsolver++"}
_SDE: Final = {"algorithm_type": "sde-dpmsolver++"}
# An odd number of steps needs a last step of lower order.
_SINGLE: Final = {"lower_order_final": True}
_FLOW: Final = {"use_flow_sigmas": True, "prediction_type": "flow_prediction"}
_FLOW_DPM: Final = _DPM | _NO_KARRAS | _FLOW
_BOTH: Final[tuple[Sampling, ...]] = ("noise", "unscaled")

_ALL: Final = (
    Scheduler("DDIM", "DDIMScheduler", samplings=("noise", "unscaled", "implicit")),
    Scheduler("DDPM", "DDPMScheduler", samplings=_BOTH),
    Scheduler("PNDM", "PNDMScheduler"),
    Scheduler("Euler", "EulerDiscreteScheduler", _NO_KARRAS, variance_exploding=True),
    Scheduler("Euler a", "EulerAncestralDiscreteScheduler", variance_exploding=True),
    Scheduler("Heun", "HeunDiscreteScheduler", _NO_KARRAS, variance_exploding=True),
    Scheduler("DPM2", "KDPM2DiscreteScheduler", _NO_KARRAS, variance_exploding=True),
    Scheduler("DPM2 a", "KDPM2AncestralDiscreteScheduler", _NO_KARRAS, variance_exploding=True),
    Scheduler("DPM++ 2M", "DPMSolverMultistepScheduler", _DPM | _NO_KARRAS, samplings=_BOTH),
    Scheduler("DPM++ 2M Karras", "DPMSolverMultistepScheduler", _DPM | _KARRAS),
    Scheduler("DPM++ 2M SDE", "DPMSolverMultistepScheduler", _SDE | _NO_KARRAS, samplings=_BOTH),
    Scheduler("DPM++ 2M SDE Karras", "DPMSolverMultistepScheduler", _SDE | _KARRAS),
    Scheduler("DPM++ SDE", "DPMSolverSinglestepScheduler", _SDE | _NO_KARRAS | _SINGLE),
    Scheduler("DPM++ SDE Karras", "DPMSolverSinglestepScheduler", _SDE | _KARRAS | _SINGLE),
    Scheduler("DEIS", "DEISMultistepScheduler", _NO_KARRAS),
    Scheduler("UniPC", "UniPCMultistepScheduler", _NO_KARRAS),
    Scheduler("LCM", "LCMScheduler", samplings=("consistency", "noise"), max_steps=50),
    Scheduler("Flow Euler", "FlowMatchEulerDiscreteScheduler", samplings=("flow",)),
    Scheduler("Flow DPM++ 2M", "DPMSolverMultistepScheduler", _FLOW_DPM, samplings=("flow",)),
    Scheduler("Flow UniPC", "UniPCMultistepScheduler", _NO_KARRAS | _FLOW, samplings=("flow",)),
    Scheduler("SCM", "SCMScheduler", samplings=("trigflow",)),
)

TABLE: Final[dict[str, Scheduler]] = {scheduler.name: scheduler for scheduler in _ALL}  # By name

_USUAL: Final = ("Euler", "Euler a", "DPM++ 2M Karras", "UniPC", "DDIM")
_USUAL_FLOW: Final = ("Flow Euler", "Flow DPM++ 2M", "Flow UniPC")
_WITHOUT_PREDICTION: Final = ("DPMSolver", "DEIS", "UniPC", "PNDM")  # No `pred_original_sample`
_CLASS_DEFAULTS: Final = {
    "use_karras_sigmas": False,
    "algorithm_type": "dpmsolver++",
    "use_flow_sigmas": False,
    "prediction_type": "epsilon",
}


def names_for(sampling: Sampling) -> tuple[str, ...]:
    """Return the names of the schedulers that fit, in the order of the table."""
    return tuple(name for name, entry in TABLE.items() if sampling in entry.samplings)


def names_like(name: str) -> tuple[str, ...]:
    """Return common schedulers for the same families; none for LCM or a name not in the table."""
    entry = TABLE.get(name)
    if entry is None or "consistency" in entry.samplings:
        return ()
    sampling = entry.samplings[0]
    usual = (other for other in (*_USUAL, *_USUAL_FLOW) if other != name)
    return tuple(other for other in usual if sampling in TABLE[other].samplings)


def own_name(family: Family, config: Mapping[str, Any]) -> str:
    """Return a model's own scheduler; if not in the table, DDPM for `unscaled`, else the first."""
    names = names_for(family.sampling)
    for name in names:
        entry = TABLE[name]
        if entry.scheduler_class == config.get("_class_name") and all(
            config.get(key, _CLASS_DEFAULTS[key]) == value
            for key, value in entry.changes.items()
            if key in _CLASS_DEFAULTS
        ):
            return name
    return "DDPM" if family.sampling == "unscaled" else names[0]


def min_steps(name: str, config: Mapping[str, Any], family: Family | None = None) -> int:
    """Return the minimum number of steps of a scheduler with a model's configuration.

    PNDM begins with four Runge-Kutta steps unless the model skips them; DPM2 a takes a root that
    rounding can make negative at two steps. Some families use the predicted picture of a single
    step, which not every scheduler has.
    """
    predicts = not TABLE[name].scheduler_class.startswith(_WITHOUT_PREDICTION)
    if family is not None and family.single_step_predicts and not predicts:
        return max(2, min_steps(name, config))
    if name == "PNDM" and not config.get("skip_prk_steps", False):
        return 4
    return 3 if name == "DPM2 a" else 1


def make_scheduler(name: str, config: Mapping[str, Any]) -> Any:
    """Make a new scheduler, for a single call, since schedulers keep state."""
    import diffusers

    changes = dict(TABLE[name].changes)
    if "use_flow_sigmas" in changes and "flow_shift" not in config:
        # Flow Euler's configuration calls it `shift`; another value would change the noise levels.
        changes["flow_shift"] = config.get("shift", 1.0)
    scheduler_class = getattr(diffusers, TABLE[name].scheduler_class)
    scheduler = scheduler_class.from_config(dict(config), **changes)
    original = scheduler.set_timesteps

    @functools.wraps(original)  # Pipelines read the signature.
    def set_timesteps(*args: Any, **kwargs: Any) -> None:
        # Karras' noise levels of a schedule that ends in pure noise round to the same time
        # repeatedly. diffusers looks up the first step by its time, finds a later one, and runs
        # out of steps: "index 29 is out of bounds for dimension 0 with size 29".
        original(*args, **kwargs)
        times = scheduler.timesteps
        if hasattr(scheduler, "set_begin_index") and (times == times[0]).sum() > 1:
            scheduler.set_begin_index(0)

    scheduler.set_timesteps = set_timesteps
    return scheduler
