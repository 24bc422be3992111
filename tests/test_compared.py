"""What the probe is made of: bad neighbours, comparisons, and what one picture of a grid was."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from pictures import make_recipe
from torch import nn

from seedgrid.diffusion.poison import ALONE, KINDS, MILD, Batch, is_finite, mapped, tensors_in
from seedgrid.diffusion.probe_findings import Findings, LeakFound
from seedgrid.diffusion.watched_parts import called_by, changed, denoisers, fits, text_encoders
from seedgrid.diffusion.witness import Record, Witness, numbers_in, own_numbers

PAIR = Batch(width=2, own=1)
FOUR = Batch(width=4, own=1)


def rows(*values: float) -> torch.Tensor:
    """One number a row, and its double."""
    return torch.tensor([[float(value), 2.0 * value] for value in values])


class Doubling(nn.Module):
    """A denoiser of one multiplication; it may write into what it is given."""

    def __init__(self, *, writes: bool = False) -> None:
        super().__init__()
        self.writes = writes

    def forward(self, sample: torch.Tensor, _time: int = 0, **_named: Any) -> tuple[torch.Tensor]:
        result = sample * 2
        if self.writes:
            sample.zero_()
        return (result,)


class Decoder(nn.Module):
    """A decoder that adds one."""

    def decode(self, latents: torch.Tensor, **_named: Any) -> dict[str, torch.Tensor]:
        return {"sample": latents + 1, "scale": torch.tensor(8.0)}


def pipeline(**parts: Any) -> Any:
    return SimpleNamespace(components={"unet": Doubling(), "vae": Decoder()} | parts)


# Which rows are whose


def test_rows_of_a_guided_batch_go_round_by_cell() -> None:
    """Row r belongs to cell r % W, in both halves."""
    assert PAIR.own_rows(rows(0, 1, 2, 3))[:, 0].tolist() == [1, 3]
    assert FOUR.others == (0, 2, 3)
    assert ALONE.others == (0,)
    assert FOUR.in_other_slots(rows(*range(8)))[:, :, 0].tolist() == [[0, 2, 3], [4, 6, 7]]


def test_own_rows_are_a_copy() -> None:
    """What a part writes afterwards is not what the own rows were."""
    given = rows(0, 1)
    own = PAIR.own_rows(given)
    given.zero_()
    assert own[0, 0] == 1


@pytest.mark.parametrize(
    ("shape", "is_of"),
    [((2, 3), True), ((4,), True), ((3, 2), False), ((0, 2), False), ((), False)],
)
def test_what_has_rows_for_all_cells_is_of_the_batch(shape: tuple[int, ...], is_of: bool) -> None:
    """A multiple of the width, and at least one."""
    assert PAIR.is_of(torch.zeros(shape)) is is_of


def test_copies_are_the_own_picture_in_every_slot() -> None:
    """And the tensor that was given stays as it was."""
    given = rows(*range(8))
    assert FOUR.copies(given)[:, 0].tolist() == [1] * 4 + [5] * 4
    assert given[:, 0].tolist() == list(range(8))


def test_turned_round_has_a_neighbour_in_the_own_slot_alone() -> None:
    """Of the own picture's size, or nearly the own picture, where that was asked for."""
    given = torch.tensor([[1.0, 2.0, 4.0]] * 4)
    turned = FOUR.turned_round(given)
    assert turned[1].tolist() == [4.0, 1.0, 2.0]
    assert torch.equal(turned[[0, 2, 3]], given[[0, 2, 3]])
    assert FOUR.turned_round(given, "near")[1].tolist() == [1.0625, 2.125, 4.25]


@pytest.mark.parametrize(
    ("batch", "tensor"),
    [(FOUR, torch.arange(4.0)), (FOUR, torch.ones(4, 2, dtype=torch.int64)), (ALONE, rows(3))],
)
def test_what_is_no_row_of_numbers_has_no_bad_neighbour(batch: Batch, tensor: torch.Tensor) -> None:
    """Times and token ids stay; and alone there is nobody."""
    assert torch.equal(batch.turned_round(tensor), tensor)
    assert torch.equal(batch.poisoned(tensor, 0), tensor)


def test_a_poisoned_neighbour_is_as_bad_as_its_kind_says() -> None:
    """The five kinds, by turns, made of the own row."""
    given = torch.tensor([[0.0, 0.0], [1.0, 3.0]])
    bad = [PAIR.poisoned(given, turn)[0].tolist() for turn in range(6)]
    assert all(map(torch.isnan, torch.tensor(bad[0])))
    assert bad[1] == [-60.0, 0.0]  # large
    assert bad[2] == [torch.finfo(torch.float32).max] * 2  # huge
    assert bad[3] == pytest.approx([2.8, 1.0])  # other
    assert bad[4] == [0.0, 0.0]  # nothing
    assert torch.tensor(bad[5]).isnan().all()
    assert PAIR.poisoned(given, 1, MILD)[0].tolist() == pytest.approx([2.8, 1.0])


def test_the_neighbours_of_one_turn_are_of_different_kinds() -> None:
    """The one behind the own slot is of the turn's kind, the next ones of those that follow."""
    bad = FOUR.poisoned(rows(1, 2, 3, 4), 2)
    of_kind = {kind: FOUR.poisoned(rows(1, 2, 3, 4), 0, (kind,))[2] for kind in KINDS}
    for slot, kind in ((2, "huge"), (3, "other"), (0, "nothing")):
        assert torch.equal(bad[slot], of_kind[kind]), kind


def test_what_is_moved_lies_in_memory_as_it_did() -> None:
    """The layout decides which kernels run."""
    given = torch.zeros(4, 3, 2, 2).contiguous(memory_format=torch.channels_last)
    assert FOUR.moved(given, 1).stride() == given.stride()


@pytest.mark.parametrize(
    ("own", "alone", "differs"),
    [
        (1.0, 1.0, False),
        (1.0, 1.0000001, True),
        (torch.nan, torch.nan, False),
        (torch.nan, 1, True),
    ],
)
def test_bits_are_compared_and_nan_is_a_value_like_any(
    own: float, alone: float, differs: bool
) -> None:
    """A picture may be NaN all by itself."""
    theirs = torch.tensor([[alone], [7.0], [alone], [alone]])  # 7 sits in the own slot.
    assert bool(FOUR.differing(torch.tensor([[own]]), theirs).any()) is differs


# Values of any nesting


def test_every_tensor_of_a_nested_value_is_found_and_changed() -> None:
    """Tuples, lists and dicts keep their kind; what is no tensor stays."""
    value = {"a": (torch.ones(1), 5), "b": [torch.zeros(2), "word"], "c": None}
    assert [tensor.numel() for tensor in tensors_in(value)] == [1, 2]
    doubled = mapped(value, lambda tensor: tensor * 2)
    assert doubled["a"][0].item() == 2
    assert (doubled["a"][1], doubled["b"][1], doubled["c"]) == (5, "word", None)
    assert (type(doubled["a"]), type(doubled["b"])) == (tuple, list)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_one_number_that_is_none_is_seen(bad: float) -> None:
    """In any tensor of floats; token ids have none."""
    assert is_finite([torch.ones(2), {"ids": torch.tensor([1])}])
    assert not is_finite([torch.ones(2), {"more": torch.tensor([1.0, bad])}])


# Comparisons


def test_what_is_equal_is_counted_and_holds() -> None:
    """Own rows against those of all other slots, added up over the calls of a part."""
    found = Findings(4)
    for _ in range(2):
        found.note("decoder", FOUR, rows(5), rows(5, 9, 5, 5))
    [check] = found.checks()
    assert (check.name, check.lock_width, check.holds) == ("decoder", 4, True)
    assert (check.compared, check.differing, check.max_difference) == (2 * 6, 0, 0.0)


def test_a_difference_is_counted_and_ends_the_test() -> None:
    """How many values, and by how much the worst."""
    found = Findings(4)
    with pytest.raises(LeakFound):
        found.note("decoder", FOUR, [rows(1), rows(5)], [rows(1, 0, 1, 1), rows(5, 9, 5.5, 8)])
    [check] = found.checks()
    assert (check.holds, check.compared, check.differing) == (False, 12, 4)
    assert check.max_difference == 6.0


def test_a_difference_of_whole_numbers_is_one() -> None:
    """Token ids and masks are compared like numbers."""
    with pytest.raises(LeakFound):
        Findings(2).note("words", PAIR, torch.tensor([[1]]), torch.tensor([[2], [1]]))


def test_nan_beside_a_number_has_no_distance() -> None:
    """And is a difference."""
    found = Findings(2)
    with pytest.raises(LeakFound):
        found.note("decoder", PAIR, rows(torch.nan), rows(1, 1))
    assert found.checks()[0].max_difference is None


@pytest.mark.parametrize(
    ("own", "alone"),
    [([rows(1)], []), ([rows(1)], [rows(1)]), ([rows(1)], [torch.ones(2, 3)])],
)
def test_what_is_not_as_much_or_not_as_large_differs(own: Any, alone: Any) -> None:
    """A part that gives another shape was run otherwise altogether."""
    found = Findings(2)
    with pytest.raises(LeakFound):
        found.note("decoder", PAIR, own, alone)
    [check] = found.checks()
    assert (check.holds, check.compared, check.differing, check.max_difference) == (
        *(False, 1, 1),
        None,
    )


def test_a_part_that_differs_altogether_keeps_what_was_compared_before() -> None:
    """One more comparison, and one more difference."""
    found = Findings(2)
    found.note("unet", PAIR, rows(1), rows(1, 9))
    with pytest.raises(LeakFound):
        found.differs("unet")
    [check] = found.checks()
    assert (check.compared, check.differing) == (3, 1)


def test_a_part_that_nobody_saw_is_not_tested() -> None:
    """A test that compared nothing must not say that the lock holds."""
    found = Findings(2)
    with pytest.raises(LeakFound):
        found.require("denoiser (unet)")
    [check] = found.checks()
    assert (check.holds, check.compared, check.differing) == (False, 1, 1)
    seen = Findings(2)
    seen.note("denoiser (unet)", PAIR, rows(1), rows(1, 9))
    seen.require("denoiser (unet)")
    assert seen.checks()[0].holds


# The parts of a pipeline


def test_what_reads_words_or_pictures_once_is_no_denoiser() -> None:
    """Denoisers are asked at every step; the VAE is watched by itself."""
    words, other = nn.Linear(1, 1), nn.Linear(1, 1)
    own = pipeline(text_encoder_2=words, image_encoder=other, safety_checker=other, scheduler="x")
    assert list(denoisers(own)) == ["unet"]
    assert text_encoders(own) == {"text_encoder_2": words}


def test_only_tensors_with_the_batchs_rows_are_its_own() -> None:
    """As many as the first argument has, or one a cell; a multiple by chance is none."""
    is_row = fits(PAIR, torch.zeros(4, 1))
    assert [is_row(torch.zeros(n, 1)) for n in (2, 4, 6, 3)] == [True, True, False, False]
    assert is_row(torch.zeros(2))
    assert not is_row(torch.tensor(2.0))


def test_a_caller_stands_in_for_a_module_until_the_block_ends() -> None:
    """It gets the plain call and the arguments; afterwards the module is of its own class."""
    part = Doubling()
    with called_by(part, lambda call, given: (call(*given[0], **given[1]), "seen")):
        result, seen = part(rows(1))
    assert (result[0][0, 0].item(), seen) == (2, "seen")
    assert type(part) is Doubling
    assert isinstance(part(rows(1)), tuple)


def test_positions_and_masks_stay_where_they_are_named_so() -> None:
    """Everything else with the batch's rows is changed, by place and by name."""
    given = ((rows(1, 2), 7), {"img_ids": rows(1, 2), "states": [rows(1, 2)], "few": rows(1)})
    args, named = changed(given, lambda t: len(t) == 2, lambda t: t * 0)
    assert not args[0].any()
    assert args[1] == 7
    assert not named["states"][0].any()
    assert named["img_ids"].any()
    assert named["few"].any()


def test_numbers_are_floats_with_a_row_for_every_cell() -> None:
    """Token ids are compared by nobody: they are the neighbour's own."""
    given = ((rows(1, 2), torch.tensor([[1], [2]])), {"states": rows(3, 4), "time": rows(1)})
    found = numbers_in(given, lambda t: len(t) == 2)
    assert [tensor[0, 0].item() for tensor in found] == [1, 3]
    assert [t[:, 0].tolist() for t in own_numbers(PAIR, given, lambda t: len(t) == 2)] == [[2], [4]]


# The witness


def witnessed(own: Any, *calls: torch.Tensor) -> Witness:
    witness = Witness([make_recipe(seed=1), make_recipe(seed=2)])
    with witness.watching(own):
        for sample in calls:
            own.components["unet"](sample, 3, states=sample)
    return witness


def test_a_witness_keeps_the_last_pictures_rows_of_every_call() -> None:
    """What entered each part and what left it, by the part's name and the call's number."""
    own = pipeline()
    witness = Witness([make_recipe(seed=1), make_recipe(seed=2)])
    with witness.watching(own):
        own.components["unet"](rows(1, 2, 3, 4), 3)
        own.components["unet"](rows(5, 6, 7, 8), 3)
        own.components["vae"].decode(rows(0, 9))
    passed = witness.record.passed
    assert (witness.slot, witness.recipe.seed) == (1, 2)
    assert list(passed) == [("unet", 0), ("unet", 1), ("vae", 0)]
    assert passed["unet", 0].entered[0][:, 0].tolist() == [2, 4]
    assert passed["unet", 1].rows[0][:, 0].tolist() == [12, 16]
    assert passed["vae", 0].entered[0][:, 0].tolist() == [9]
    assert passed["vae", 0].rows[0].tolist() == [[10, 19]]
    assert passed["vae", 0].has_rows == [True, False]
    assert passed["vae", 0].left["scale"] == 8
    assert type(own.components["unet"]) is Doubling
    assert "decode" not in vars(own.components["vae"])


def test_a_witness_lets_pass_what_is_not_of_the_batch() -> None:
    """Three rows of two cells: the part gives what it gives, and nothing is kept."""
    own = pipeline()
    witness = Witness([make_recipe(), make_recipe()])
    with witness.watching(own):
        assert own.components["unet"](rows(1, 2, 3))[0][2, 0] == 6
        assert own.components["vae"].decode(rows(1, 2, 3))["sample"][2, 0] == 4
    assert not witness.record.passed


def test_a_witness_gives_the_pipeline_what_its_parts_give() -> None:
    """Watching changes no picture."""
    own = pipeline()
    with Witness([make_recipe(), make_recipe()]).watching(own):
        assert torch.equal(own.components["unet"](rows(1, 2))[0], rows(2, 4))
        assert torch.equal(own.components["vae"].decode(rows(1, 2))["sample"], rows(1, 2) + 1)


def test_what_entered_is_kept_as_it_was_before_the_part_wrote_into_it() -> None:
    """Some parts work in place."""
    witness = witnessed(pipeline(unet=Doubling(writes=True)), rows(1, 2))
    assert witness.record.passed["unet", 0].entered[0].tolist() == [[2, 4]]


@pytest.mark.parametrize(("last", "has_numbers"), [(1.0, True), (torch.nan, False)])
def test_a_witness_without_numbers_proves_nothing(last: float, has_numbers: bool) -> None:
    """Whatever leaks into NaN is NaN."""
    assert witnessed(pipeline(), rows(1, 1), rows(1, last)).has_numbers is has_numbers


def test_what_enters_call_after_call_is_kept_once() -> None:
    """Words are the same at every step, and would be most of the memory."""
    record, again = Record(), rows(3)
    first = record.keep(PAIR, "unet", 0, [rows(1), rows(3)], None).entered
    second = record.keep(PAIR, "unet", 1, [rows(2), again], None).entered
    assert second[1] is first[1]
    assert second[0].tolist() == [[2, 4]]
    other = record.keep(PAIR, "unet", 2, [rows(7)], None).entered
    assert other[0].tolist() == [[7, 14]]
    assert record.keep(PAIR, "other", 1, [rows(3)], None).entered[0].tolist() == [[3, 6]]
