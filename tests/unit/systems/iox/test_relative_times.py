"""Conditions on times of data tables that count from now: settled once, whoever reads the rows, and for good where they delete."""

from __future__ import annotations

import datetime
import json
import pickle
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import InvalidOption, InvalidTime, between
from bucketcatalog.systems.iox.cli.conditions import condition, in_range
from bucketcatalog.systems.iox.predicates import Predicate

from ....kit.data_tables import Lake
from ....kit.world import DAY, HOUR, START, time_at

NOON = START // DAY * DAY + 12 * HOUR
KINDS = [pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "Europe/Amsterdam")]


class Now:
    """A clock that counts how often it was asked, and goes on by a day each time where it is to."""

    def __init__(self) -> None:
        self.time, self.step = NOON, 0

    def __call__(self) -> int:
        found, self.time = self.time, self.time + self.step
        return found


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Now:
    found = Now()
    monkeypatch.setattr("bucketcatalog.clock.now_us", found)
    return found


def days(kind: pa.DataType) -> pa.Table:
    """A row for each of four days, at eleven, and how long ago that was."""
    times = [time_at(NOON - day * DAY - HOUR) for day in range(4)]
    times = [time if kind.tz else time.replace(tzinfo=None) for time in times]
    return pa.table({"v": list(range(4)), "time": pa.array(times, kind)})


@pytest.fixture(params=KINDS, ids=str)
def lake(request: pytest.FixtureRequest, now: Now) -> Lake:
    found = Lake()
    found.table().append(days(request.param))
    return found


CONDITIONS: list[tuple[Any, list[int]]] = [
    (between("yesterday"), [0, 1]),
    (between("2 days", "today"), [1]),
    (["1h", "1d1h"], [0, 1]),
    ("1h ago", [0]),
    (time_at(NOON).date(), []),
    (between(time_at(NOON).date(), "now"), [0]),
]


@pytest.mark.parametrize(("where", "found"), CONDITIONS, ids=str)
def test_rows_since_a_time_that_counts_from_now_are_the_same_wherever_and_whenever_they_are_read(
    lake: Lake, now: Now, where: Any, found: list[int]
) -> None:
    read = lake.scan(where={"time": where})
    sent = pickle.dumps(read.tasks(1))
    now.time += 30 * DAY
    assert sorted(read.to_arrow()["v"].to_pylist()) == sorted(read.only(["v"]).to_arrow()["v"].to_pylist()) == found
    tasks = pickle.loads(sent)
    assert sorted(v for task in tasks for rows in task.read(lake.store) for v in rows["v"].to_pylist()) == found


def test_what_is_deleted_stays_what_it_was_then(lake: Lake, now: Now) -> None:
    assert lake.table().delete_where([("time", ">=", "yesterday"), ("time", "<", "today")]) is not None
    now.time += 30 * DAY
    assert sorted(lake.values()) == [0, 2, 3]


def test_all_conditions_of_a_deletion_count_from_one_now(lake: Lake, now: Now) -> None:
    now.step = DAY
    lake.table().delete_where([("time", ">=", "yesterday"), ("time", "<", "today")])
    assert len(lake.values()) == 3


def test_a_predicate_that_counts_from_now_is_none() -> None:
    row = {"id": "x", "chunks": [], "path": None}
    said = [{"column": "time", "comparison": ">=", "value": json.dumps("24h")}]
    kept = Predicate.parse({**row, "conditions": said})
    with pytest.raises(InvalidTime, match="is not a time"):
        kept.of("t", days(pa.timestamp("us", "UTC")))


@pytest.mark.parametrize("where", ["1 fortnight", between("2024"), ["now", "x"], between(None, "999999w")], ids=str)
def test_what_is_no_time_is_refused(lake: Lake, where: Any) -> None:
    with pytest.raises(
        InvalidOption, match=r"The condition on column 'time' of 'data.t' does not fit: .*(is not a time|years 1)"
    ):
        lake.scan(where={"time": where})


def test_conditions_that_are_typed_count_from_now(now: Now) -> None:
    columns = days(pa.timestamp("us", "UTC")).schema
    assert condition("time >= 2 days ago", "t", columns).value == time_at(NOON - 2 * DAY)
    assert condition("time < 'today'", "t", columns).value == time_at(NOON - 12 * HOUR)
    now.step = DAY
    since, until = in_range("time", "yesterday", "now", "t", columns)
    assert until.value - since.value == datetime.timedelta(hours=36)
    with pytest.raises(InvalidTime, match="2 days ago"):
        condition("time >= 2 fortnights ago", "t", columns)
