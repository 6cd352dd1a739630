"""``age`` against the same counted in Python."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from bucketcatalog import InvalidOption
from bucketcatalog.questions import age

from ...kit.pruning import keep_time
from ...kit.world import DAY, HOUR, START, World, obj, time_at
from .conftest import Past

EDGES = {"1d": DAY, "7d": 7 * DAY, "30d": 30 * DAY, "90d": 90 * DAY, "180d": 180 * DAY, "365d": 365 * DAY, "730d": 730 * DAY}


@pytest.mark.parametrize("edges", [EDGES, {"2h": 2 * HOUR, "36h": 36 * HOUR}])
@pytest.mark.parametrize("ago", [None, 3 * DAY])
def test_each_object_counts_for_its_class_and_age(past: Past, edges: dict[str, int], ago: int | None) -> None:
    now = past.world.clock() - (ago or 0)
    rows = past.state(None if ago is None else now)[0].values()
    counts: dict[tuple[str | None, str], list[int]] = defaultdict(lambda: [0, 0])
    names = ["0s", *edges]
    for row in rows:
        old = sum(row["modified"] <= time_at(now - edge) for edge in edges.values())
        counts[row["storage_class"], names[old]][0] += 1
        counts[row["storage_class"], names[old]][1] += row["content_length"] or 0
    found = age(past.catalog, edges=list(edges), as_of=None if ago is None else f"@{now}").to_pylist()
    classes = [*sorted({c for c, _ in counts if c}), *([None] if any(c is None for c, _ in counts) else [])]
    ends: list[Any] = [*edges, None]
    assert [(row["storage_class"], row["from_age"], row["below_age"]) for row in found] == [
        (name, start, end) for name in classes for start, end in zip(names, ends, strict=True)
    ]
    assert [[row["objects"], row["bytes"]] for row in found] == [counts[row["storage_class"], row["from_age"]] for row in found]


def test_what_is_as_old_as_an_edge_is_no_younger_and_what_is_of_the_future_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    keep_time(world, monkeypatch)
    now = START + 60 * DAY
    ages = {"new": 0, "old": 30 * DAY, "younger": 30 * DAY - 1, "future": -DAY}
    with world.writer() as writer:
        rows = [obj(name, modified=time_at(now - old), content_length=1) for name, old in ages.items()]
        world.commit(writer, ("put", "objects", rows))
    world.clock.now = now
    assert age(world.catalog(), edges=["30d"])["objects"].to_pylist() == [3, 1]


def test_the_edges_are_those_of_the_guide_unless_others_are_given(past: Past) -> None:
    assert age(past.catalog).equals(age(past.catalog, edges=tuple(EDGES)))
    assert age(past.catalog, bucket="empty").num_rows == 0


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([], "are no list of ages"),
        ("30d", "are no list of ages"),
        (["7d", "1d"], "The edges 7d, 1d do not ascend"),
        (["7d", "7d"], "do not ascend"),
        (["0s"], "do not ascend. Next: Begin with the youngest age, above 0"),
        (["old"], "'old' is not an age"),
    ],
)
def test_what_are_no_edges_is_refused(past: Past, edges: Any, message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        age(past.catalog, edges=edges)
