"""What interactive users see of objects: short representations, tab completion of what is public, names for annotations."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import bucketcatalog
from bucketcatalog import Catalog, Changes, Diff, Scan, Snapshot, Transaction, Writer

from ...kit.world import BUCKET, OWNER, World, bucket, obj


@pytest.fixture(scope="module")
def world() -> World:
    """A bucket, objects in it, and writers with long names who are many."""
    found = World()
    for number in range(40):
        with found.writer(f"writer-{number:02}-of-a-long-name") as w:
            found.commit(w, ("put", "objects", obj(f"n{number}", content_length=number)))
    with found.writer() as w:
        found.commit(w, ("put", "buckets", bucket("pets", id=BUCKET)), ("delete", "objects", obj("n0")))
    return found


def shown(world: World) -> dict[str, Any]:
    """One of each thing that people hold in their hands."""
    catalog, snapshot = world.catalog(), world.snapshot()
    with world.writer() as writer, writer.transaction(operation="upload") as transaction:
        return {
            "catalog": catalog,
            "snapshot": snapshot,
            "scan": snapshot.scan("objects", where={"name": ["n1", "n2"] * 500}),
            "tombstones": snapshot.scan("deleted_objects"),
            "named": snapshot.scan("objects", columns=["bucket", "name"]),
            "log": snapshot.scan("log"),
            "changes": catalog.changes(pre_images=True),
            "diff": catalog.diff(),
            "page": snapshot.list("objects", owner=OWNER, bucket_id=BUCKET),
            "writer": writer,
            "transaction": transaction,
        }


def test_nothing_is_shown_on_more_than_a_few_lines(world: World) -> None:
    for name, each in shown(world).items():
        assert len(repr(each)) < 600 and "\n" not in repr(each), name
    told = {name: repr(each) for name, each in shown(world).items()}
    assert told["diff"].startswith("Diff('objects', from nothing to 41 writers, columns: _change_type, owner, ")
    assert told["changes"].startswith("Changes('objects', 41 transactions, columns: _change_type, _table, ")
    assert told["tombstones"].startswith("Scan('objects', tombstones, columns: owner, bucket_id, ")
    assert told["named"] == "LookedUp('objects', columns: bucket, name)"
    assert told["log"].startswith("MetadataScan('log', columns: writer, ")
    assert told["page"] == "Page(39 rows, 0 groups, next_marker=None)"
    assert told["writer"] == "Writer('w', 'default', closed)" and told["transaction"] == "Transaction('upload', has ended)"
    with world.writer() as writer, writer.transaction() as tx:
        assert repr(writer) == "Writer('w', 'default')" and repr(tx) == "Transaction('', is open, 0 events)"


def test_tab_completion_shows_what_is_public_and_that_is_there(world: World) -> None:
    for name, each in shown(world).items():
        listed = dir(each)
        assert [attribute for attribute in listed if not hasattr(each, attribute)] == [], name
        if name != "page":
            assert not [attribute for attribute in listed if attribute.startswith("_")], name
    every = {name: set(dir(each)) for name, each in shown(world).items()}
    assert {"scan", "get", "list", "version", "tables"} <= every["snapshot"] and "state" not in every["snapshot"]
    assert {"to_arrow", "count", "head", "to_parquet", "explain"} <= every["scan"] and "plan" not in every["scan"]
    assert {"snapshot", "writer", "changes", "restore"} <= every["catalog"] and "resolve_database" not in every["catalog"]
    assert {"put", "update", "delete", "purge", "committed"} <= every["transaction"]


def test_the_classes_can_be_named_in_annotations(world: World) -> None:
    found = shown(world)
    classes = {"catalog": Catalog, "snapshot": Snapshot, "scan": Scan, "changes": Changes, "diff": Diff}
    for name, kind in {**classes, "writer": Writer, "transaction": Transaction}.items():
        assert isinstance(found[name], kind) and kind.__doc__
    assert {"Snapshot", "Scan", "Changes", "Diff", "Transaction"} <= {*bucketcatalog.__all__} & {*dir(bucketcatalog)}


def test_reads_and_pages_are_arrow_streams_for_anybody(world: World) -> None:
    for name in ("scan", "tombstones", "named", "log", "changes", "diff", "page"):
        each = shown(world)[name]
        expected = each.rows if name == "page" else each.to_arrow()
        assert pa.table(each).equals(pa.table(expected)), name
        if name != "page":
            assert each.count() == len(expected) and each.head(1).equals(expected.slice(0, 1)), name
            assert each.head(0).num_rows == 0 and each.head(10_000).num_rows == len(expected)
