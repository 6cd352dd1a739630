from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bucketcatalog.harvest.compare import Side, Step, merge

NAMES = st.dictionaries(st.text(alphabet="ab\u00e9\uffee\U0001f600/", max_size=4), st.integers(0, 2), max_size=12)
SPLITS = st.lists(st.integers(1, 5), min_size=1, max_size=12)


def sides(rows: dict[str, int], splits: Sequence[int], *, live: bool) -> list[Side]:
    """The rows in byte order of their names, in pieces."""
    ordered = sorted((name.encode(), id_) for name, id_ in rows.items())
    found, at = [], 0
    while at < len(ordered):
        piece = ordered[at : at + splits[len(found) % len(splits)]]
        at += len(piece)
        names = pa.array([name for name, _ in piece], pa.binary())
        ids = pa.array([bytes([id_]) * 16 for _, id_ in piece], pa.binary(16))
        if live:
            version = [bytes([id_]) * 16 for _, id_ in piece]
            extra = pa.record_batch(
                [pa.array(version, pa.binary(16)), pa.array([9] * len(piece), pa.int32())], ["uuid", "sequence"]
            )
        else:
            extra = pa.record_batch([names], ["name"])
        found.append(Side(names, ids, extra))
    return found


@given(NAMES, NAMES, SPLITS, SPLITS)
def test_the_steps_together_are_the_difference_of_the_two_sides(
    mine: dict[str, int], theirs: dict[str, int], my_splits: list[int], their_splits: list[int]
) -> None:
    steps = list(merge(iter(sides(mine, my_splits, live=False)), iter(sides(theirs, their_splits, live=True))))
    put = [name for step in steps if step.put is not None for name in step.put.column("name").to_pylist()]
    gone = [name for step in steps for name in step.gone.to_pylist()]
    assert put == sorted(n.encode() for n in mine if n not in theirs or mine[n] != theirs[n])
    assert gone == sorted(n.encode() for n in theirs if n not in mine)
    assert sum(step.created for step in steps) == len(mine.keys() - theirs.keys())
    assert sum(step.unchanged for step in steps) == sum(1 for n in mine if theirs.get(n) == mine[n])
    for step in steps:
        _check_versions(step, theirs)


def _check_versions(step: Step, theirs: dict[str, int]) -> None:
    assert [int(version[:2], 16) for version in step.versions.to_pylist()] == [theirs[n.decode()] for n in step.gone.to_pylist()]
    assert all(version.endswith(":9") for version in step.versions.to_pylist())
