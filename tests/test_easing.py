"""Out of memory is a ladder: each rung is tried, said, and stands where it changes bits."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from command import run_python
from diffusers import AutoencoderKL
from painting import recipes_for
from stores import MakeRecipes

from seedgrid.core.errors import RunError
from seedgrid.core.events import Eased
from seedgrid.core.plan import plan_grid
from seedgrid.core.request import Request
from seedgrid.diffusion.backend import Placement
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.engine import Engine
from seedgrid.studio import Studio
from seedgrid.testing.fake import FakeBackend, Fault
from seedgrid.verify.claim import read_claim
from seedgrid.verify.verifying import verify

ON_A_PROCESSOR = ["memory_decoding", "memory_attention", "memory_tiles"]


def full(device: str = "cpu") -> Fault:
    error = RunError("memory_full", width=64, height=64, lock_width=4, device=device)
    return Fault(error=error)


def told(engine: Engine, make_recipes: MakeRecipes) -> tuple[Any, list[str]]:
    """Paint a grid; return the run and what was said while it was painted."""
    run = engine.submit(plan_grid(make_recipes()), owner="somebody")
    codes = [event.notice.code for event in run.events() if isinstance(event, Eased)]
    return run, codes


@pytest.mark.parametrize("num_failures", range(len(ON_A_PROCESSOR) + 1))
def test_each_rung_is_tried_and_said(
    engine: Engine, backend: FakeBackend, make_recipes: MakeRecipes, num_failures: int
) -> None:
    """What fails so many times is painted on the next rung, with all those before it."""
    backend.faults.extend(full() for _ in range(num_failures))
    run, codes = told(engine, make_recipes)
    assert codes == ON_A_PROCESSOR[:num_failures]
    assert [notice.code for notice in run.notices] == codes
    placement = backend.calls[-1].placement
    assert placement.vae_slicing == (num_failures > 0)
    assert placement.attention == ("sliced" if num_failures > 1 else "default")
    assert placement.vae_tiling == (num_failures > 2)
    assert [entry.recipe.lock_width for entry in run.result()] == [4] * 4


def test_past_the_last_rung_it_is_an_error_and_the_next_run_is_as_usual(
    engine: Engine, backend: FakeBackend, make_recipes: MakeRecipes
) -> None:
    """Advice instead of a crash; what one run had to do without, the next one has."""
    backend.faults.extend(full() for _ in range(len(ON_A_PROCESSOR) + 1))
    run, codes = told(engine, make_recipes)
    with pytest.raises(RunError, match="smaller size"):
        run.result()
    assert codes == ON_A_PROCESSOR
    again, codes = told(engine, make_recipes)
    assert (codes, len(again.result())) == ([], 4)
    assert backend.calls[-1].placement == engine.placement


def test_portable_pictures_are_eased_to_no_other_bits(
    engine: Engine, backend: FakeBackend, make_recipes: MakeRecipes
) -> None:
    """Their recipe names neither attention nor tiles, and promises the bits."""
    backend.faults.extend([full(), full()])
    recipes = [each.replace(arithmetic="portable-1") for each in make_recipes()]
    run = engine.submit(plan_grid(recipes), owner="somebody")
    with pytest.raises(RunError, match="smaller size"):
        run.result()
    assert [notice.code for notice in run.notices] == ON_A_PROCESSOR[:1]


def test_what_follows_tiles_is_decoded_in_tiles(studio: Studio) -> None:
    """A refinement of a large final in one piece once filled the memory."""
    request = Request(prompt="a fox", seeds=(1,), width=64, height=64)
    (one,) = studio.start_grid(request, placement=Placement(vae_tiling=True)).result()
    studio.refine(one, [", artsy"])
    assert studio.backend.calls[-1].placement.vae_tiling


def test_what_was_decoded_one_by_one_is_verified_so(
    tmp_path: Path, sd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real model that cannot decode two pictures at once: the passport says what was done."""
    true = AutoencoderKL._decode

    def only_one(vae: Any, latents: torch.Tensor, *args: Any, **named: Any) -> Any:
        if latents.shape[0] > 1:
            torch.empty(1 << 60, dtype=torch.uint8)  # Really asks the allocator for an exabyte.
        return true(vae, latents, *args, **named)

    monkeypatch.setattr(AutoencoderKL, "_decode", only_one)
    folder, placement = str(sd), Placement(threads=1, previews=False)
    with Studio(folder, tmp_path / "library", placement=placement) as studio:
        recipes = recipes_for(DiffusersBackend(), Path(folder), num_inference_steps=2)
        run = studio.engine.submit(plan_grid(recipes), owner="somebody", library=studio.library)
        entries = run.result()
        assert [notice.code for notice in run.notices] == ["memory_freed", "memory_decoding"]
        assert {entry.passport.vae_slicing for entry in entries} == {True}
        assert [entry.recipe.id for entry in entries] == [recipe.id for recipe in recipes]
        claims = [read_claim(entry.path) for entry in entries]
        assert {found.verdict for found in verify(claims, studio.backend)} == {"identical"}


STARVED = """
import json, resource
from pathlib import Path
import torch
from seedgrid.core.errors import is_memory_error

def starved(spare, size):
    data = int(Path("/proc/self/status").read_text().split("VmData:")[1].split()[0]) * 1024
    layer, x = torch.nn.Conv2d(64, 64, 3), torch.ones(1, 64, size, size)
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (data + spare, hard))
    try:
        layer(x)
    except (MemoryError, RuntimeError) as error:
        return [str(error), is_memory_error(error)]
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))

torch.set_num_threads(1)
with torch.no_grad():
    torch.nn.Conv2d(64, 64, 3)(torch.ones(1, 64, 64, 64))
    found = [starved(0, 150 + 7 * n) for n in range(4)]
    found += [starved(spare * 1024**2, 400) for spare in (10, 20, 30)]
print(json.dumps([each for each in found if each]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA counts so on Linux only")
def test_whatever_torch_says_without_memory_is_understood() -> None:
    """A real limit on a process: oneDNN "could not create a primitive", which was a refusal."""
    found = json.loads(run_python("-W", "ignore", "-c", STARVED).stdout)
    assert found
    assert [said for said, is_understood in found if not is_understood] == []
