"""All interleavings of a reaping, which looks and commits, with a bucket that is put again by somebody who has seen it live."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pytest

from bucketcatalog import Catalog, CommitUnknown
from bucketcatalog.maintain.gc.reap import reap

from .racing import HOUR, OWNER, Hooked, Lost, Step, Yard, commit, commit_whenever, interleavings, passing, recreate, wait


def begin_to_put_again(yard: Yard) -> None:
    """Somebody looks for the bucket, to put it again under its id."""
    tx = yard.writer("p").transaction()
    tx.__enter__()
    tx.put("buckets", {"owner": OWNER, "name": "cats", "region": "elsewhere"})
    yard.held["p"] = (tx, yard.store)


def reap_race(begin: Step, steps: Sequence[Step], slots: Sequence[Sequence[int]]) -> bool:
    """Run one interleaving of a reaping: two waits, its boundary, two waits, its look; whether it has ended anything."""
    yard, todo, left = Yard(), list(slots), list(steps)
    with yard.writer("b") as writer, writer.transaction() as tx:
        tx.put("buckets", {"owner": OWNER, "name": "cats"})
    (bucket,) = Catalog(yard.store).snapshot().scan("buckets").to_arrow()["id"].to_pylist()
    yard.upload("a", bucket)
    begin(yard)
    yard.now += 1_000_000
    with yard.writer("d") as writer, writer.transaction() as tx:
        tx.delete("buckets", {"owner": OWNER, "name": "cats"})

    def others() -> None:
        for _ in todo.pop(0) if todo else ():
            left.pop(0)(yard)

    others()
    wait(yard, others)
    catalog = Catalog(yard.store)
    with catalog.writer("maintainer-1", clock=yard.clock) as held:
        reap(catalog.database("default").look, held, 6 * HOUR)
    wait(yard, others)
    catalog = Catalog(Hooked(yard.store, others))
    with suppress(CommitUnknown), catalog.writer("maintainer-1", clock=yard.clock) as held:
        reap(catalog.database("default").look, held, 6 * HOUR)
    while todo:
        others()
    snapshot = Catalog(yard.store).snapshot()
    buckets = set(snapshot.scan("buckets").to_arrow()["id"].to_pylist())
    if bucket in buckets and not snapshot.scan("objects").to_arrow().num_rows:
        raise Lost("an object was ended whose bucket is live")
    return not snapshot.scan("objects").to_arrow().num_rows


def reap_all(steps: Sequence[Step]) -> int:
    """Every interleaving; in how many the object was ended."""
    return sum(reap_race(begin_to_put_again, steps, slots) for slots in interleavings([len(steps)], 7))


@pytest.mark.parametrize(
    "steps", [[commit("p")], [commit("p"), passing(4)], [passing(170), commit("p")], [recreate, commit("p")]]
)
def test_no_object_of_a_live_bucket_is_reaped(steps: Sequence[Step]) -> None:
    assert reap_all(steps) > 0


def test_a_bucket_put_again_by_whoever_looked_long_ago_would_lose_its_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    commit_whenever(monkeypatch)
    with pytest.raises(Lost):
        reap_all([commit("p")])
