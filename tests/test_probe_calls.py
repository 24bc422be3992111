"""What the probe asks of a pipeline of a few numbers: which batches, and what it compares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from few_numbers import (
    FAMILY,
    STEPS,
    Change,
    Small,
    a_little_of_all,
    a_little_of_the_loudest,
    all_are_numbers,
    painted,
    probe,
    some_are_alike,
    when,
)
from painting import SilentWatch
from pictures import make_recipe
from torch import nn

from seedgrid.core.errors import RunCancelled, RunError
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.poison import KINDS, MILD, WILD
from seedgrid.diffusion.probe import run_probe
from seedgrid.diffusion.watched_parts import Watching, called_by


@pytest.mark.parametrize("is_witnessed", [False, True])
@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_a_sound_pipeline_is_held_to_be_one(width: int, is_witnessed: bool) -> None:
    """At every width, alone and after a grid; and what was compared is told."""
    small = Small()
    witness = painted(small, width) if is_witnessed else None
    report = probe(small, lock_width=width, witness=witness)
    assert report.holds
    assert (report.asked_width, report.tested_width) == (width, width)
    names = {check.name for check in report.checks}
    assert names >= {
        "noise and words",
        "between the parts",
        "denoiser (unet)",
        "decoder",
        "picture",
    }
    assert ("words" in names) == (width > 1)
    assert all(check.compared > 0 and check.lock_width == width for check in report.checks)


@pytest.mark.parametrize("is_witnessed", [False, True])
@pytest.mark.parametrize("leak", [a_little_of_all, a_little_of_the_loudest])
@pytest.mark.parametrize("part", ["unet", "step", "vae", "words", "noise", "picture"])
def test_a_leak_in_any_part_is_found(part: str, leak: Change, is_witnessed: bool) -> None:
    """And a batch of one, in which there is nobody else, is safe."""
    small = Small(**{part: when(lambda rows: len(rows) > 1, leak)})
    report = probe(small, witness=painted(small) if is_witnessed else None)
    assert not report.holds
    assert report.tested_width == 1
    assert sorted({check.lock_width for check in report.checks}) == [1, 2, 4]


@pytest.mark.parametrize(
    ("part", "told"),
    [
        *(("words", "words"), ("noise", "words"), ("vae", "decoder")),
        *(("unet", "denoiser (unet)"), ("picture", "picture"), ("start", "encoder of the start")),
    ],
)
def test_the_part_that_leaks_is_named(part: str, told: str) -> None:
    """By what was compared when it was seen."""
    small = Small(**{part: when(lambda rows: len(rows) == 4, a_little_of_the_loudest)})
    small.encodes = 4 * (part == "start")
    report = probe(small)
    assert [check.name for check in report.checks if not check.holds] == [told]
    assert report.tested_width == 2


@pytest.mark.parametrize("is_witnessed", [False, True])
@pytest.mark.parametrize("time", range(STEPS))
def test_a_leak_at_one_step_is_found(time: int, is_witnessed: bool) -> None:
    """Whatever carries NaN over shows at every step, also where nothing is run again."""
    small = Small()
    plain = small.unet.forward

    def leak(sample: torch.Tensor, now: int, states: torch.Tensor) -> torch.Tensor:
        return plain(sample, now, states) + 1e-3 * (now == time) * sample.mean(0)

    small.unet.forward = leak  # type: ignore[method-assign]
    witness = painted(small) if is_witnessed else None
    assert not probe(small, witness=witness).holds


@pytest.mark.parametrize("is_witnessed", [False, True])
@pytest.mark.parametrize("part", ["unet", "step"])
def test_a_leak_that_waits_for_mild_neighbours_is_found(part: str, is_witnessed: bool) -> None:
    """A guard against NaN hides it wherever one neighbour is none."""
    small = Small(**{part: when(all_are_numbers, a_little_of_the_loudest)})
    assert not probe(small, witness=painted(small) if is_witnessed else None).holds


@pytest.mark.parametrize("is_witnessed", [False, True])
def test_a_leak_that_waits_for_neighbours_that_are_alike_is_found(is_witnessed: bool) -> None:
    """As what merges tokens or ranks them does."""
    small = Small()
    plain = small.unet.forward

    def leak(sample: torch.Tensor, time: int, states: torch.Tensor) -> torch.Tensor:
        return plain(sample, time, states) + 1e-3 * some_are_alike(sample)

    small.unet.forward = leak  # type: ignore[method-assign]
    assert not probe(small, witness=painted(small) if is_witnessed else None).holds


@pytest.mark.parametrize("part", ["reading", "foreseen", "before"])
def test_a_leak_that_waits_for_large_numbers_is_found(part: str) -> None:
    """In a text encoder, whose first layer is poisoned, and in both things that a step is given."""
    waits = lambda rows: rows + 1e-3 * (rows.nan_to_num(0, 0, 0).abs().max() > 9)  # noqa: E731
    small = Small(**{part: waits})
    assert not probe(small, witness=painted(small)).holds


def kind_of(row: torch.Tensor, own: torch.Tensor) -> str:
    """Say how a row was poisoned."""
    if row.isnan().any():
        return "nan"
    if (row == 0).all():
        return "nothing"
    loudest = float(row.abs().max())
    if loudest > 15:
        return "huge" if loudest > 1e30 else "large"
    return "near" if torch.allclose(row, own * 1.0625) else "other"


@pytest.mark.parametrize(
    ("is_witnessed", "met"),
    [
        (True, (set(KINDS), set(MILD), {"near"})),
        (False, (set(KINDS) | {"near"}, set(WILD), set(WILD))),
    ],
)
def test_the_next_neighbour_meets_every_kind_in_time(
    is_witnessed: bool, met: tuple[set[str], ...]
) -> None:
    """All kinds where there is a comparison; where there is none, those that need none."""
    small = Small()
    small.num_steps = 45
    witness = painted(small) if is_witnessed else None
    seen: list[str] = []

    def look(_part: nn.Module, given: tuple[torch.Tensor, ...]) -> None:
        if len(small.batches) == 3 and len(given[0]) == 4:
            own = (0 if is_witnessed else 1) + len(seen)
            seen.append(kind_of(given[0][(own + 1) % 4], given[0][own % 4]))

    with called_by(
        small.unet, lambda call, given: (look(small.unet, given[0]), call(*given[0]))[1]
    ):
        assert probe(small, witness=witness, num_inference_steps=45).holds
    assert tuple(set(seen[after::3]) for after in range(3)) == met


def test_a_step_meets_every_kind_of_neighbour_and_by_turns_mild_ones_alone() -> None:
    """In ten steps: what decides by a neighbour's size must not meet NaN each time."""
    seen: list[str] = []

    def look(rows: torch.Tensor) -> torch.Tensor:
        if len(small.batches) == 3:
            seen.append(kind_of(rows[2], rows[1]))
        return rows

    small = Small(before=look)
    small.num_steps = 10
    assert probe(small, num_inference_steps=10).holds
    assert (set(seen[::2]), set(seen[1::2])) == (set(KINDS), set(MILD))


@pytest.mark.parametrize(("width", "own"), [(4, 0), (3, 1), (2, 0)])
def test_after_a_grid_the_own_picture_sits_where_it_is_decoded_otherwise(
    width: int, own: int
) -> None:
    """Pictures may be decoded in pairs: who was the second of one is the first."""
    small = Small()
    witness = painted(small, width)
    assert probe(small, witness=witness, lock_width=width).holds
    assert small.batches[2].index(witness.recipe) == own


@pytest.mark.parametrize("is_witnessed", [False, True])
@pytest.mark.parametrize("number", [2, 3])
def test_one_decoding_more_beside_some_neighbours_is_a_leak(
    number: int, is_witnessed: bool
) -> None:
    """Beside poisoned ones, or when the own picture is in all other slots: no call more or less."""
    small = Small()
    small.decodes_again = lambda _: len(small.batches) == number + 1
    report = probe(small, witness=painted(small) if is_witnessed else None)
    assert not report.holds
    assert {c.name for c in report.checks if not c.holds} <= {"between the parts", "decoder"}


@pytest.mark.parametrize("number", [0, 2, 3])
def test_it_gives_way_in_each_of_its_calls(number: int) -> None:
    """While words are read, beside poisoned neighbours, and where next to nothing is computed."""
    small = Small()
    witness = painted(small)

    class Later(SilentWatch):
        @property
        def cancelled(self) -> bool:
            return len(small.batches) > number

    with pytest.raises(RunCancelled) as caught:
        run_probe(make_recipe(), small, Later(), family=FAMILY, witness=witness)
    assert caught.value.code == "run_cancelled"
    assert len(small.batches) == number + 1


@pytest.mark.parametrize("encodes", [1, 4])
def test_a_start_is_compared_whether_it_is_encoded_once_or_for_each(encodes: int) -> None:
    """The library encodes it once for each generator; a pipeline may encode all at once."""
    small = Small()
    small.encodes = encodes
    report = probe(small)
    assert report.holds
    assert next(c for c in report.checks if c.name == "encoder of the start").compared > 0


def test_what_one_start_leaves_behind_is_a_leak() -> None:
    """Encoded one by one, each after a picture that is as bad as can be."""
    kept = [torch.zeros(1)]

    def remembering(rows: torch.Tensor) -> torch.Tensor:
        before, kept[0] = kept[0], rows.nan_to_num().mean()
        return rows + 1e-3 * before

    small = Small(start=remembering)
    small.encodes = 1
    assert not probe(small).holds


@pytest.mark.parametrize("is_witnessed", [False, True])
def test_what_is_not_of_the_batch_passes_untouched(is_witnessed: bool) -> None:
    """Parts may be asked for something else on the way, with other numbers of rows."""
    small = Small()
    small.looks_aside = True
    assert probe(small, witness=painted(small) if is_witnessed else None).holds


@pytest.mark.parametrize("asked", [3, 5, 12])
def test_the_next_smaller_usual_widths_are_tried(asked: int) -> None:
    """8, 4, 2 and 1, of those below what was asked for."""
    small = Small(unet=when(lambda rows: len(rows) > 1, a_little_of_all))
    report = probe(small, lock_width=asked)
    tried = sorted({check.lock_width for check in report.checks})
    assert tried == sorted({width for width in (1, 2, 4, 8) if width < asked} | {asked})


def test_a_part_that_never_repeats_holds_at_no_width() -> None:
    """Not even a batch of one comes out alike."""
    calls = iter(range(10_000))
    assert probe(Small(unet=lambda rows: rows + next(calls))).tested_width == 0


def test_a_pipeline_whose_denoiser_is_never_asked_is_not_tested() -> None:
    """A test that saw no denoiser must not say that the lock holds."""
    small = Small()
    small.num_steps = 0
    report = probe(small)
    assert report.tested_width == 0
    assert not next(c for c in report.checks if c.name == "denoiser (unet)").holds


def test_a_call_that_is_made_beside_some_neighbours_only_is_a_leak() -> None:
    """As many calls, whoever sits in the other slots."""
    small = Small()
    once = small.__class__.__call__

    def shorter(recipes: Sequence[Recipe], watching: Watching) -> list[torch.Tensor]:
        small.num_steps = STEPS - (recipes[2:3] == recipes[3:4])
        return once(small, recipes, watching)

    settings = make_recipe(num_inference_steps=STEPS)
    report = run_probe(settings, shorter, SilentWatch(), family=FAMILY)
    assert not report.holds


def test_a_picture_that_is_none_by_itself_is_no_test() -> None:
    """Leaks into NaN cannot be seen, so it is an error and no verdict."""
    with pytest.raises(RunError) as caught:
        probe(Small(vae=lambda rows: rows * torch.nan))
    assert caught.value.code == "picture_nan"


def test_what_leaked_may_stay_in_the_model_and_is_a_leak_still() -> None:
    """At a smaller width the picture is none because of what a greater one left behind."""
    kept: list[torch.Tensor] = []

    def remembering(rows: torch.Tensor) -> torch.Tensor:
        if len(rows) == 4:
            kept.append(rows.mean())
            return a_little_of_all(rows)
        return rows + sum(kept)

    report = probe(Small(unet=remembering))
    assert (report.tested_width, report.holds) == (0, False)


def test_it_stops_when_it_is_told_to() -> None:
    """At the next call of a part."""

    class Told(SilentWatch):
        cancelled = True

    small = Small()
    with pytest.raises(RunCancelled):
        run_probe(make_recipe(), small, Told(), family=FAMILY)
    assert small.unet.num_calls == 0


def test_beside_a_witness_nothing_is_computed_twice() -> None:
    """One batch more than the grid: what was painted is the other side of the comparison."""
    small = Small()
    witness = painted(small)
    small.unet.num_calls = 0
    assert probe(small, witness=witness).holds
    assert small.unet.num_calls == STEPS


def test_alone_every_third_call_is_run_again() -> None:
    """Calls 0, 3 and 6."""
    small = Small()
    assert probe(small).holds
    assert small.unet.num_calls == STEPS + 3


def test_a_witness_of_another_width_is_none() -> None:
    """At a smaller width the probe runs its comparisons itself."""
    small = Small(unet=when(lambda rows: len(rows) == 4, a_little_of_all))
    assert probe(small, witness=painted(small)).tested_width == 2


def test_the_neighbours_differ_in_everything_that_cells_may_differ_in() -> None:
    """Seeds, long words and short, negative ones and a mix of noises where the recipe has none."""
    small = Small()
    probe(small, lock_width=8, prompt="a red fox")
    poisoned = small.batches[2]
    own = poisoned[1]
    assert (own.seed, own.prompt, own.lock_width) == (7, "a red fox", 8)
    others = [cell for place, cell in enumerate(poisoned) if place != 1]
    assert sorted(cell.seed for cell in others) == [8, 9, 10, 11, 12, 13, 14]
    assert {len(cell.prompt.split()) > 77 for cell in others} == {True, False}
    assert {bool(cell.noise_mix) for cell in others} == {True, False}
    assert {cell.negative_prompt for cell in others} == {"", "(dull:4)"}
    assert [len(cell.prompt) for cell in others].count(len("a red fox")) == 2


def test_the_own_picture_is_in_all_other_slots_of_the_second_call() -> None:
    """And in the slot that it had there is another one, of words as long."""
    small = Small()
    probe(small, prompt="a red fox")
    *words, poisoned, turned = small.batches
    assert len(words) == 2
    assert [cell.seed for cell in turned] == [7, 11, 7, 7]
    assert turned[1].prompt == "xof der a"
    assert poisoned[1].seed == 7


def test_words_are_read_beside_short_ones_none_and_a_weighed_one() -> None:
    """Up to the denoiser, which is not asked."""
    small = Small()
    probe(small)
    beside, alike = small.batches[:2]
    assert [cell.prompt for cell in beside[1:]] == ["", "fox", ""]
    assert len({cell.prompt for cell in alike[1:]}) == 1
    assert alike[1].prompt == beside[0].prompt != alike[0].prompt
    assert alike[0].prompt.split(":")[0] == alike[1].prompt.split(":")[0]


@pytest.mark.parametrize("changes", [{"prompt": ""}, {"lock_width": 1}])
def test_where_there_are_no_words_or_no_neighbours_none_are_compared(
    changes: dict[str, Any],
) -> None:
    """Two calls are all."""
    small = Small()
    assert probe(small, **changes).holds
    assert len(small.batches) == 2


def test_who_has_negative_words_and_a_mix_meets_neighbours_without() -> None:
    """Cells of one batch may differ in both; seeds wrap round."""
    small = Small()
    mix = ({"seed": 3, "weight": 0.1},)
    probe(small, negative_prompt="cloudy", noise_mix=mix, seed=2**32 - 2)
    others = [cell for place, cell in enumerate(small.batches[2]) if place != 1]
    assert [cell.negative_prompt for cell in others] == ["", "dull", ""]
    assert [bool(cell.noise_mix) for cell in others] == [False, True, False]
    assert sorted(cell.seed for cell in others) == [0, 1, 2**32 - 1]


def test_the_report_says_what_was_tested() -> None:
    """Of the recipe that was asked for; a smaller width is told beside it."""
    report = probe(Small(vae=when(lambda rows: len(rows) == 4, a_little_of_all)))
    recipe = make_recipe(num_inference_steps=STEPS)
    assert (report.model, report.weights_sha256) == (recipe.model.id, recipe.model.weights_sha256)
    assert (report.dtype, report.size, report.scheduler) == ("float32", "64x48", "DPM++ 2M")
    assert (report.num_inference_steps, report.asked_width, report.tested_width) == (7, 4, 2)
    assert 0 <= report.elapsed_s < 60
    assert report.tested_at.endswith("+00:00")
    assert not report.remembered
