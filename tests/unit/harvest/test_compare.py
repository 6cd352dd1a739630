"""The steps from one sorted side to another, however both come in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bucketcatalog.harvest.compare import Merger, NamedRows, Step, bytes_in

NAMES = st.dictionaries(st.text(alphabet="ab\u00e9\uffee\U0001f600/", max_size=4), st.integers(0, 2), max_size=12)
SPLITS = st.lists(st.integers(1, 5), min_size=1, max_size=12)


def sides(rows: dict[str, int], splits: Sequence[int], *, live: bool) -> list[NamedRows]:
    """The rows in byte order of their names, in pieces."""
    ordered = sorted((name.encode(), id_) for name, id_ in rows.items())
    found, at = [], 0
    while at < len(ordered):
        piece = ordered[at : at + splits[len(found) % len(splits)]]
        at += len(piece)
        names = pa.array([name for name, _ in piece], pa.binary())
        ids = pa.array([f"{id_:032x}" for _, id_ in piece])
        if live:
            version = [bytes([id_]) * 16 for _, id_ in piece]
            extra = pa.record_batch(
                [pa.array(version, pa.binary(16)), pa.array([9] * len(piece), pa.int32()), told(piece, live=True), sizes(piece)],
                ["uuid", "sequence", "told", "content_length"],
            )
            whole = partial(pa.RecordBatch.append_column, extra, "whole", names)
            placed = extra.append_column("place", pa.array(range(len(piece)), pa.int64()))
            found.append(NamedRows(names, ids, placed, whole))
        else:
            extra = pa.record_batch([names, told(piece, live=False), sizes(piece)], ["name", "told", "content_length"])
            found.append(NamedRows(names, ids, extra))
    return found


def told(piece: Sequence[tuple[bytes, int]], *, live: bool) -> pa.Array:
    """What may differ behind one id: the sides tell another thing where a name has an ``a``, the source nothing where it has an ``é``."""
    values = [None if not live and "\u00e9".encode() in name else int(live and b"a" in name) for name, _ in piece]
    return pa.array(values, pa.int32())


def sizes(piece: Sequence[tuple[bytes, int]]) -> pa.Array:
    """How long each version of an object is."""
    return pa.array([size(name, id_) for name, id_ in piece], pa.int64())


def size(name: bytes, id_: int) -> int:
    return 10 * len(name) + id_


def merged(merger: Merger, source: Sequence[NamedRows]) -> Iterator[Step]:
    """What has to change in all, as a harvest asks for it."""
    for side in source:
        yield from merger.take(side)
    yield from merger.rest()


@given(NAMES, NAMES, SPLITS, SPLITS, st.sampled_from([(), ("told",)]))
def test_the_steps_together_are_the_difference_of_the_two_sides(
    mine: dict[str, int], theirs: dict[str, int], my_splits: list[int], their_splits: list[int], compared: tuple[str, ...]
) -> None:
    merger = Merger(iter(sides(theirs, their_splits, live=True)), compared=compared)
    steps = list(merged(merger, sides(mine, my_splits, live=False)))
    put = [name for step in steps if step.put is not None for name in step.put.column("name").to_pylist()]
    gone = [name for step in steps for name in step.gone.to_pylist()]
    updated = [name for step in steps if step.update is not None for name in step.update.column("name").to_pylist()]
    same = {n for n in mine if theirs.get(n) == mine[n]}
    assert put == sorted(n.encode() for n in mine if n not in same)
    assert gone == sorted(n.encode() for n in theirs if n not in mine)
    assert updated == sorted(n.encode() for n in same if compared and "a" in n and "\u00e9" not in n)
    assert sum(step.created for step in steps) == len(mine.keys() - theirs.keys())
    assert sum(step.unchanged for step in steps) == len(same) - len(updated)
    for step in steps:
        _check_versions(step, theirs)
        assert step.updated == (0 if step.known is None else len(step.known))
        if step.known is not None and step.update is not None:
            assert step.known.column("whole").to_pylist() == step.update.column("name").to_pylist()
    new, old = mine.keys() - theirs.keys(), (mine.keys() & theirs.keys()) - same
    assert sum(step.created_bytes for step in steps) == sum(size(n.encode(), mine[n]) for n in new)
    assert sum(step.replaced_bytes for step in steps) == sum(size(n.encode(), theirs[n]) for n in old)
    assert sum(step.unchanged_bytes for step in steps) == sum(
        size(n.encode(), mine[n]) for n in same if n.encode() not in updated
    )
    assert sum(bytes_in(step.lost) for step in steps) == sum(size(n.encode(), theirs[n]) for n in theirs.keys() - mine.keys())


def _check_versions(step: Step, theirs: dict[str, int]) -> None:
    assert [int(version[:2], 16) for version in step.versions.to_pylist()] == [theirs[n.decode()] for n in step.gone.to_pylist()]
    assert all(version.endswith(":9") for version in step.versions.to_pylist())
