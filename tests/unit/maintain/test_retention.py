"""The retention policy: which checkpoint becomes the horizon, as a function of values."""

from __future__ import annotations

import pytest

from bucketcatalog import InvalidOption, clock
from bucketcatalog.format.checkpoints import Checkpoint
from bucketcatalog.limits import SAFE_PRUNE_GRACE
from bucketcatalog.maintain.retention import Retention, of_everyone, possible_horizons
from bucketcatalog.model.cuts import Cut, Head

DAY = 24 * 3_600_000_000
NOW = 100 * DAY


def checkpoint(day: int, *writers: str, reads: Cut | None = None) -> Checkpoint:
    """A checkpoint of these writers' cut as of a day."""
    cut = Cut.of((writer, Head(day, clock.uuid7(day * DAY).bytes)) for writer in writers)
    return Checkpoint(
        writer="compactor-1",
        database="db",
        revision=day,
        uuid=clock.uuid7(day * DAY).bytes,
        cut=cut,
        coverage={},
        created=0,
        lateness_bound=0,
        reads=Cut() if reads is None else reads,
    )


BEGAN = {"a": 1 * DAY, "b": 2 * DAY}
EVERYONE = [checkpoint(day, "a", "b") for day in (10, 80, 90, 99)]


@pytest.mark.parametrize(
    ("days", "keep", "expected"),
    [
        *[(0, 1, 99), (1, 1, 99), (2, 1, 90), (15, 1, 80), (20, 1, 80), (21, 1, 10), (90, 1, 10), (91, 1, None)],
        *[(0, 2, 90), (0, 3, 80), (0, 4, 10), (0, 5, None), (15, 2, 80), (15, 4, 10)],
    ],
)
def test_the_newest_that_is_old_enough_and_has_enough_newer_ones(days: int, keep: int, expected: int | None) -> None:
    for order in (EVERYONE, EVERYONE[::-1]):
        found = [c.revision for c in possible_horizons(order, BEGAN, NOW, Retention(days * DAY, keep))]
        assert next(iter(found), None) == expected
        assert found == sorted(found, reverse=True)


def test_a_checkpoint_that_lacks_a_writer_of_its_time_or_what_its_transactions_had_read_is_none_of_everyone() -> None:
    lacking = [checkpoint(95, "a"), checkpoint(96, "a", "b", reads=checkpoint(97, "c").cut)]
    assert of_everyone([*EVERYONE, *lacking], BEGAN) == EVERYONE
    assert of_everyone([checkpoint(50, "a", "b")], BEGAN | {"later": 51 * DAY}) != []
    assert of_everyone([checkpoint(50, "a", "b")], BEGAN | {"later": 49 * DAY}) == []


def test_of_equal_cuts_one_counts() -> None:
    again = checkpoint(99, "a", "b")
    same = Checkpoint(**{name: getattr(again, name) for name in Checkpoint.__slots__} | {"cut": EVERYONE[-1].cut})
    assert len(of_everyone([*EVERYONE, same], BEGAN)) == len(EVERYONE)


@pytest.mark.parametrize(
    ("policy", "refused", "forced"),
    [
        (Retention(DAY), False, False),
        (Retention(359_999_999), True, False),
        (Retention(360_000_000, 1, SAFE_PRUNE_GRACE), False, False),
        (Retention(DAY, 1, SAFE_PRUNE_GRACE - 1), True, False),
        (Retention(0, 1, 0), True, False),
        (Retention(DAY, 0), True, True),
        (Retention(-1), True, True),
    ],
)
def test_what_somebody_may_need_is_refused_unless_forced(policy: Retention, refused: bool, forced: bool) -> None:
    for force, expected in ((False, refused), (True, forced)):
        if expected:
            with pytest.raises(InvalidOption):
                policy.check(360_000_000, force=force)
        else:
            policy.check(360_000_000, force=force)
