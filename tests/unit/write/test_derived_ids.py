"""Ids of rows that are given none: the same for one incarnation, whoever makes it, and another for the next."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog.write.writer import Writer

from ...kit.world import ID_1, OWNER, World, as_arrow, bucket, messages, proto, version


class TestIncarnations:
    def test_a_bucket_has_the_same_id_whoever_makes_it(self) -> None:
        ids = set()
        for count in (1, 65):
            for arrow in (False, True):
                world = World()
                given = [bucket("b")] + [bucket(f"x{n}") for n in range(count - 1)]
                world.commit(world.writer(f"w{count}"), ("put", "buckets", as_arrow(given) if arrow else given))
                ids.add(world.snapshot().get("buckets", **bucket("b"))["id"])  # type: ignore[index]
        assert len(ids) == 1 and uuid.UUID(ids.pop()).version == 5

    def test_a_bucket_that_is_put_again_keeps_its_id_and_one_made_anew_gets_another(self, world: World, writer: Writer) -> None:
        def current() -> str:
            return str(world.snapshot().get("buckets", **bucket("b"))["id"])  # type: ignore[index]

        world.commit(writer, ("put", "buckets", bucket("b")))
        first = current()
        world.commit(writer, ("put", "buckets", bucket("b", region="x")))
        assert current() == first
        seen = {first}
        for step in range(3):
            world.commit(writer, ("delete", "buckets", bucket("b")))
            if step == 1:
                writer.checkpoint()
            world.commit(writer, ("put", "buckets", bucket("b")))
            assert current() not in seen
            seen.add(current())

    def test_a_table_of_ones_own_has_them_from_its_first_row_on(self, world: World, writer: Writer) -> None:
        declared = messages(
            proto("""message Crate {
            option (table) = { name: "crates.crates" key: "name" id: "id" };
            string name = 1;
            optional bytes id = 2 [(column) = { type: LOGICAL_TYPE_UUID default: COLUMN_DEFAULT_INCARNATION }];
        }""")
        )
        catalog = world.catalog()
        catalog.register(declared.values())
        ids = set()
        for name in ("w", "v"):
            with catalog.writer(name, database="default", clock=world.clock) as other, other.transaction() as tx:
                tx.put("crates.crates", {"name": "red"})
            ids.add(world.snapshot().get("crates.crates", name="red")["id"])  # type: ignore[index]
        assert len(ids) == 1 and uuid.UUID(ids.pop()).version == 5

    def test_the_id_changes_within_one_transaction_too(self, world: World, writer: Writer) -> None:
        world.commit(writer, ("put", "buckets", bucket("b")))
        first = world.snapshot().get("buckets", **bucket("b"))
        world.commit(writer, ("delete", "buckets", bucket("b")), ("put", "buckets", bucket("b")))
        second = world.snapshot().get("buckets", **bucket("b"))

        assert first is not None and second is not None and first["id"] != second["id"]

    def test_purged_buckets_keep_their_id_for_the_next_incarnation(self, world: World, writer: Writer) -> None:
        world.commit(writer, ("put", "buckets", bucket("b")))
        first = world.snapshot().get("buckets", **bucket("b"))
        name = version(bucket("b"), world.snapshot(), "buckets")
        world.commit(writer, ("delete", "buckets", bucket("b")))
        world.commit(writer, ("purge", "buckets", bucket("b", _version=name)))
        writer.checkpoint()
        world.commit(writer, ("put", "buckets", bucket("b")))
        second = world.snapshot().get("buckets", **bucket("b"))

        assert first is not None and second is not None and first["id"] != second["id"]

    def test_given_ids_are_kept(self, world: World, writer: Writer) -> None:
        world.commit(writer, ("put", "buckets", [bucket("a", id=ID_1), bucket("b")]))

        assert world.snapshot().get("buckets", **bucket("a"))["id"] == ID_1  # type: ignore[index]


@pytest.mark.parametrize("form", [list, pa.Table.from_pylist], ids=["dicts", "Arrow"])
def test_bucket_put_again_in_one_call_keeps_the_id_that_the_call_gave_it(form: Callable[[Any], Any]) -> None:
    """The second PUT finds a live version, the first, so it gets that one's id (docs/spec/ids.md, rule 1)."""
    world = World()
    world.commit(world.writer(), ("put", "buckets", form([{"owner": OWNER, "name": "b", "id": id_} for id_ in (ID_1, None)])))
    (bucket,) = world.snapshot().scan("buckets", columns=["id"]).to_arrow().to_pylist()
    assert bucket["id"] == ID_1
