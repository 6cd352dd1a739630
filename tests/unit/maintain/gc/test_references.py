"""Rows that name existing data: only data that no boundary has reached, and of whoever has looked lately."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bucketcatalog import DataCollected, InvalidRows, StaleRead

from ....kit.collecting import Yard, dead, thing
from ....kit.world import HOUR, MINUTE, names, obj, rows, version


def test_data_that_a_boundary_has_reached_cannot_be_used_again(yard: Yard) -> None:
    writer = dead(yard, "a")
    snapshot = yard.world.snapshot()
    (gone,) = rows(snapshot, "deleted_objects", ["owner", "bucket_id", "name", "_version"])
    yard.collect()
    with pytest.raises(DataCollected, match="may be deleted"), writer.transaction() as tx:
        tx.put("objects", thing("a"), data_of=gone)
    with pytest.raises(DataCollected), writer.transaction() as tx:
        tx.put("objects", pa.Table.from_pylist([thing("a")]), data_of=pa.Table.from_pylist([gone]))
    yard.world.clock.tick(7 * HOUR)
    yard.collect()
    with pytest.raises(DataCollected), writer.transaction() as tx:
        tx.put("objects", thing("a"), data_of=[gone])


@pytest.mark.parametrize("as_arrow", [False, True])
def test_a_row_is_put_back_while_no_boundary_reaches_it_and_then_its_data_stays(yard: Yard, as_arrow: bool) -> None:
    writer = dead(yard, "a")
    (gone,) = rows(yard.world.snapshot(), "deleted_objects", ["owner", "bucket_id", "name", "_version"])
    yard.world.clock.tick()
    with writer.transaction(operation="restore") as tx:
        if as_arrow:
            tx.put("objects", pa.Table.from_pylist([thing("a")]), data_of=pa.Table.from_pylist([{**gone, "more": 1}]))
        else:
            tx.put("objects", thing("a"), data_of=gone)
    done = yard.collected()
    assert (done.shared, done.garbage) == (1, 0) and yard.has("a") and names(yard.world.snapshot()) == ["a"]


def test_a_row_that_does_not_name_the_data_it_says_is_refused(yard: Yard) -> None:
    writer = yard.world.writer()
    yard.put(writer, thing("a"))
    of_a = obj("a", _version=version(obj("a"), yard.world.snapshot()))
    with pytest.raises(InvalidRows, match="does not name the data"), writer.transaction() as tx:
        tx.put("objects", thing("b"), data_of=of_a)
    with pytest.raises(InvalidRows, match="2 rows"), writer.transaction() as tx:
        tx.put("objects", [thing("b", data="a"), thing("c", data="a")], data_of=of_a)
    with pytest.raises(InvalidRows, match="does not say which version"), writer.transaction() as tx:
        tx.put("objects", thing("b", data="a"), data_of=obj("a"))
    with pytest.raises(InvalidRows, match="_version"), writer.transaction() as tx:
        tx.put("objects", thing("b", data="a"), data_of=pa.Table.from_pylist([obj("a")]))
    for form in (list, pa.Table.from_pylist):
        given = form([of_a, obj("a", _version=None)])
        with pytest.raises(InvalidRows, match=r"Row 1 .* does not say which version"), writer.transaction() as tx:
            tx.put("objects", [thing("b", data="a"), thing("c", data="a")], data_of=given)


def test_a_version_that_is_not_there_has_no_data_to_share(yard: Yard) -> None:
    writer = yard.world.writer()
    yard.put(writer, thing("a"))
    of_a = version(obj("a"), yard.world.snapshot())
    with pytest.raises(DataCollected, match="not there"), writer.transaction() as tx:
        tx.put("objects", thing("b", data="a"), data_of=obj("elsewhere", _version=of_a))


def test_what_was_looked_up_six_hours_ago_cannot_be_committed(yard: Yard) -> None:
    writer = yard.world.writer()
    yard.put(writer, thing("a"))
    of_a = obj("a", _version=version(obj("a"), yard.world.snapshot()))
    tx = writer.transaction()
    tx.__enter__()
    tx.put("objects", thing("b", data="a"), data_of=of_a)
    yard.world.clock.tick(6 * HOUR - 5 * MINUTE)
    with pytest.raises(StaleRead, match=r"was read, or began to be written, 355m ago.* Next: .* within 354m"):
        tx.__exit__(None, None, None)
    yard.put(writer, thing("c"))
    assert names(yard.world.snapshot()) == ["a", "c"]
