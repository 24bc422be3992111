"""What a run's log keeps: of what is replaced only the newest, and nothing that is over."""

import pytest

from seedgrid.core.events import Cancelled, Done, Event, Loading, Queued, Started
from seedgrid.engine.event_log import EventLog


@pytest.mark.parametrize("after", [Started(cells=(0,)), Done(elapsed_s=1), Cancelled(elapsed_s=1)])
def test_of_a_loading_model_only_the_last_word_is_kept(after: Event) -> None:
    """A model of 40 GB tells of itself a thousand times; once it is there, nobody asks."""
    log = EventLog()
    begun = Loading(model="foxes")
    told = [Loading(model="foxes", num_bytes=part, total=9) for part in range(3)]
    for event in (begun, *told):
        log.note(event)
    assert log.events == (begun, told[-1])
    log.note(after)
    assert log.events == (begun, after)


def test_of_what_waits_only_the_last_position_is_kept() -> None:
    """And the numbers go on rising, so that whoever asks again misses nothing."""
    log = EventLog()
    for position in (2, 1, 0):
        log.note(Queued(position=position))
    assert log.events == log.since(1) == (Queued(position=0),)
    assert log.next_number == 3
