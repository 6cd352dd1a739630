"""The times of the protocol: what has to be longer than what is, and each inequality would notice if it were not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bucketcatalog import limits
from bucketcatalog.errors import InvalidOption
from bucketcatalog.limits import HOUR, MINUTE, Limits

SHORTER = {
    limits.a_transaction_arrives_within_the_bound: ("LATENESS_BOUND", 6 * MINUTE - 1),
    limits.nobody_who_keeps_to_limits_claims_too_much: ("MAX_LATENESS_BOUND", 6 * MINUTE - 1),
    limits.what_was_looked_up_can_be_committed: ("MAX_SNAPSHOT_AGE", 6 * MINUTE),
    limits.a_checkpoint_is_a_reader_until_it_is_published: ("PUBLISH_WITHIN", 6 * HOUR + 1),
    limits.files_outlive_their_readers: ("SAFE_PRUNE_GRACE", 6 * HOUR + 6 * MINUTE - 1),
    limits.segments_outlive_who_may_refer_to_them: ("LEFT_BEHIND", 6 * HOUR + 6 * MINUTE - 1),
    limits.markers_outlive_who_puts_them: ("MARKER_DELAY", 6 * HOUR),
    limits.data_outlives_who_may_name_it: ("BOUNDARY_WAIT", 6 * HOUR + 6 * MINUTE - 1),
    limits.parts_outlive_who_may_name_them: ("SAFE_COLLECTION_GRACE", 6 * HOUR - 1),
    limits.tombstones_outlive_their_readers: ("SAFE_COLLECTION_GRACE", 6 * HOUR - 1),
    limits.a_pin_is_renewed_in_time: ("PLAIN_PIN_AGE", 30 * HOUR),
    limits.no_put_under_way_is_thrown_away: ("UNFINISHED_PUT_AGE", 6 * MINUTE),
    limits.a_second_process_is_noticed_in_time: ("LOOK_WITHIN", MINUTE + 1),
    limits.nothing_arrives_behind_a_seal: ("SEALED_AFTER", 11 * MINUTE),
    limits.a_wrong_clock_is_noticed_in_time: ("LEARNT_TIME_LASTS", MINUTE + 1),
}
"""For each inequality a time that breaks it."""


@pytest.mark.parametrize("holds", limits.INEQUALITIES, ids=lambda holds: holds.__name__)
def test_the_times_are_in_order(holds: Callable[[], bool]) -> None:
    assert holds()
    assert holds.__doc__


@pytest.mark.parametrize("holds", limits.INEQUALITIES, ids=lambda holds: holds.__name__)
def test_an_inequality_notices_a_time_that_breaks_it(holds: Callable[[], bool], monkeypatch: pytest.MonkeyPatch) -> None:
    name, value = SHORTER[holds]
    monkeypatch.setattr(limits, name, value)
    assert not holds()


def test_every_inequality_of_the_module_is_checked() -> None:
    found = {
        value
        for value in vars(limits).values()
        if callable(value) and getattr(value, "__annotations__", {}).get("return") == "bool"
    }
    assert found == set(limits.INEQUALITIES)


def test_a_writer_promises_no_more_than_readers_count_on() -> None:
    assert Limits().lateness_bound == limits.LATENESS_BOUND
    assert Limits(commit_delay=0, clock_skew=0).lateness_bound == 0
    for wide in ({"commit_delay": 5 * MINUTE + 1}, {"clock_skew": MINUTE + 1}, {"commit_delay": -1}):
        with pytest.raises(InvalidOption, match="at most 300 s of delay and 60 s of skew"):
            Limits(**wide)
