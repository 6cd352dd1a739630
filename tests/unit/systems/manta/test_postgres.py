"""What goes from a real PostgreSQL server into a catalog and back: all of it, once, in whatever pieces."""

from __future__ import annotations

import datetime
import uuid
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, InvalidOption, InvalidRows, StaleBatch, StoreUnavailable
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.systems.manta.postgres_rows import EMPTY, NULL_VALUES

from ....kit.postgres import postgres as postgres
from ....kit.world import BUCKET, ID_1, ID_2, OTHER, OWNER
from .sources import COLUMNS, CREATED, NAMES, TIME, Source, bucket, everything, fill, obj, put, scanned
from .sources import catalog as catalog
from .sources import empty as empty
from .sources import native as native
from .sources import source as source


@pytest.mark.parametrize("seed", [1, 2])
def test_what_goes_in_and_out_again_is_equal_on_the_server_and_in_the_catalog(
    source: Source, empty: Source, catalog: Catalog, seed: int
) -> None:
    fill(source, seed, 120)
    imported = source.bring(catalog, batch=17)
    counts = {table: source.run(f"SELECT count(*) FROM {table}")[0][0] for table in COLUMNS}
    assert imported.rows == counts
    assert min(counts.values()) > 50
    assert imported.mapped[EMPTY] > 0
    exported = empty.take(catalog)
    assert exported.rows == counts
    assert sum(exported.mapped.values()) == counts["manta_bucket_deleted_bucket"] + counts["manta_bucket_deleted_object"]
    assert source.differences(empty.name) == dict.fromkeys(COLUMNS, 0)
    again = Catalog(MemoryStore())
    assert empty.bring(again, batch=1_000).mapped == {EMPTY: 0, NULL_VALUES: 0}
    assert everything(again) == everything(catalog)


def test_all_columns_of_a_row_arrive(native: Source, catalog: Catalog) -> None:
    row = obj(
        "a\t'\"\\{},\n😀",
        **CREATED,
        creator=OTHER,
        content_length=2**63 - 1,
        content_md5=bytes(range(16)),
        content_type="text/plain",
        headers={'k"=>\\': "v\n"},
        roles=[OTHER, OTHER],
        sharks=["dc:1", "NULL", ""],
        properties={"é": ["\u2028", 1]},
    )
    native.insert("manta_bucket_object", row)
    native.bring(catalog)
    assert catalog.snapshot().scan("manta_bucket_object").to_arrow().to_pylist() == [
        {**row, "headers": [('k"=>\\', "v\n")], "properties": '{"é": ["\u2028", 1]}'}
    ]


def test_deleted_rows_become_tombstones_that_keep_their_time_and_live_ones_stay_live(native: Source, catalog: Catalog) -> None:
    times = [TIME + datetime.timedelta(days=day) for day in range(3)]
    native.insert("manta_bucket_deleted_object", *(obj("a", str(uuid.UUID(int=at)), deleted_at=times[at]) for at in (2, 0, 1)))
    native.insert("manta_bucket_deleted_object", obj("b", deleted_at=TIME))
    native.insert("manta_bucket_deleted_bucket", bucket("x", deleted_at=TIME), bucket("y", deleted_at=TIME))
    native.insert("manta_bucket_object", obj("a", ID_2))
    native.insert("manta_bucket", bucket("x"))
    before = datetime.datetime.now(datetime.UTC)
    native.bring(catalog)
    assert scanned(catalog, "objects", "name", "id") == [("a", ID_2)]
    assert scanned(catalog, "buckets", "name", "id", "properties") == [("x", BUCKET, None)]
    kept = [[("deleted_at", f"2020-0{month}-{day:02}T12:34:56.789012Z")] for month, day in ((2, 29), (3, 1), (3, 2))]
    ended = [("a", str(uuid.UUID(int=at)), kept[at]) for at in range(3)]
    assert scanned(catalog, "deleted_objects", "name", "id", "user_metadata") == [*ended, ("b", ID_1, kept[0])]
    text = '{"deleted_at":"2020-02-29T12:34:56.789012Z"}'
    assert scanned(catalog, "deleted_buckets", "name", "properties") == [("x", text), ("y", text)]
    assert all(time >= before for (time,) in scanned(catalog, "deleted_objects", "deleted_at"))
    assert scanned(catalog, "conflicts", "table") == []


@pytest.mark.parametrize("batch", [1, 2, 3, 4, 5, 7])
def test_exact_duplicates_at_the_edge_of_a_batch_are_neither_lost_nor_doubled(
    native: Source, catalog: Catalog, batch: int
) -> None:
    for name, times in (("a", 3), ("b", 1), ("c", 4), ("d", 2)):
        native.insert("manta_bucket_deleted_object", *[obj(name)] * times)
        native.insert("manta_bucket_deleted_bucket", *[bucket(name)] * times)
    native.bring(catalog, batch=batch)
    assert [name for (name,) in scanned(catalog, "deleted_objects", "name")] == [*"aaabccccdd"]
    assert [name for (name,) in scanned(catalog, "deleted_buckets", "name")] == [*"aaabccccdd"]
    assert scanned(catalog, "objects", "name") == scanned(catalog, "buckets", "name") == []


def test_keys_are_read_in_the_servers_own_order(native: Source, catalog: Catalog) -> None:
    there = "SELECT collname FROM pg_collation WHERE collname IN ('und-x-icu', 'C.utf8') ORDER BY collname DESC LIMIT 1"
    (collation,) = native.run(there)[0]
    for table in COLUMNS:
        native.run(f'ALTER TABLE {table} ALTER name TYPE text COLLATE "{collation}"')
    names = ["a", "B", "b", "_c", "C", "ä", "z", "Z", "-a", "é", "É"]
    native.insert("manta_bucket_object", *(obj(name) for name in names))
    native.insert("manta_bucket_deleted_object", *(obj(name) for name in names))
    native.bring(catalog, batch=2)
    assert scanned(catalog, "objects", "name") == scanned(catalog, "deleted_objects", "name") == sorted((name,) for name in names)


class Killed(Exception):
    """What ends a run."""


def killing(after: int) -> Any:
    """Progress that ends the run after so many batches."""
    told: list[int] = []

    def progress(rows: int) -> None:
        told.append(rows)
        if len(told) == after:
            raise Killed

    return progress


def test_a_run_that_died_after_any_batch_is_gone_on_with(native: Source) -> None:
    fill(native, 3, 8)
    whole = Catalog(MemoryStore())
    batches = native.bring(whole, batch=5).batches
    assert batches > 8
    for after in range(1, batches + 1):
        catalog = Catalog(MemoryStore())
        with pytest.raises(Killed):
            native.bring(catalog, batch=5, progress=killing(after))
        resumed = native.bring(catalog, batch=5)
        assert (resumed.batches, resumed.resumed) == (batches - after, True)
        assert everything(catalog) == everything(whole)


def test_a_run_that_dies_after_every_batch_comes_to_its_end(native: Source, catalog: Catalog) -> None:
    fill(native, 4, 8)
    whole = Catalog(MemoryStore())
    for _ in range(native.bring(whole, batch=5).batches):
        with pytest.raises(Killed):
            native.bring(catalog, batch=5, progress=killing(1), writer="another" if _ % 2 else "importer")
    assert native.bring(catalog, batch=5).batches == 0
    assert everything(catalog) == everything(whole)


def test_a_second_run_on_another_machine_stops_both_before_a_row_is_there_twice(native: Source, catalog: Catalog) -> None:
    fill(native, 5, 8)
    whole = Catalog(MemoryStore())
    native.bring(whole, batch=5)
    began: list[int] = []

    def another(rows: int) -> None:
        if not began:
            began.append(rows)
            with pytest.raises(Killed):
                native.bring(catalog, batch=5, writer="another", progress=killing(2))

    with pytest.raises(StaleBatch, match="Another import"):
        native.bring(catalog, batch=5, progress=another)
    native.bring(catalog, batch=5)
    assert everything(catalog) == everything(whole)


def test_what_the_server_ends_is_typed_and_gone_on_with(native: Source, catalog: Catalog) -> None:
    native.insert("manta_bucket_object", *(obj(name) for name in "abc"))
    others = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    with pytest.raises(StoreUnavailable, match="ended the connection"):
        native.bring(catalog, batch=1, progress=lambda rows: native.run(others))
    assert scanned(catalog, "objects", "name") == [("a",)]
    assert native.bring(catalog).rows["manta_bucket_object"] == 2


def test_a_finished_import_reads_what_lies_behind_it_alone(native: Source, catalog: Catalog) -> None:
    native.insert("manta_bucket_object", obj("b"))
    native.insert("manta_bucket_deleted_object", obj("b"))
    native.bring(catalog)
    native.insert("manta_bucket_object", obj("a"), obj("c"))
    again = native.bring(catalog)
    assert (again.batches, again.rows["manta_bucket_object"]) == (1, 1)
    assert scanned(catalog, "objects", "name") == [("b",), ("c",)]


@pytest.mark.parametrize(
    ("live", "deleted"), [("manta_bucket_object", "manta_bucket_deleted_object"), ("manta_bucket", "manta_bucket_deleted_bucket")]
)
def test_rows_that_were_deleted_after_live_ones_were_imported_are_refused(
    native: Source, catalog: Catalog, live: str, deleted: str
) -> None:
    row = (obj if "object" in live else bucket)("a")
    native.insert(live, row)
    native.bring(catalog)
    native.insert(deleted, row)
    with pytest.raises(InvalidOption, match=f"{deleted} has got rows since rows of {live} were imported"):
        native.bring(catalog)
    assert scanned(catalog, "objects" if "object" in live else "buckets", "name") == [("a",)]


def test_schemas_of_one_server_are_told_apart(native: Source, source: Source, catalog: Catalog) -> None:
    native.insert("manta_bucket_object", obj("b"))
    source.insert("manta_bucket_object", obj("a"))
    native.bring(catalog)
    other = source.bring(catalog)
    assert (other.resumed, other.batches) == (False, 1)
    assert scanned(catalog, "objects", "name") == [("a",), ("b",)]
    assert native.bring(catalog).batches == source.bring(catalog).batches == 0


@pytest.mark.parametrize("table", ["manta_bucket_object", "manta_bucket_deleted_object"])
def test_a_schema_that_shares_keys_with_another_one_is_refused_before_it_ends_what_that_has_brought(
    native: Source, source: Source, catalog: Catalog, table: str
) -> None:
    native.insert("manta_bucket_object", obj("a"), obj("b"))
    native.bring(catalog)
    before = catalog.snapshot().version
    source.insert(table, obj("b"), obj("c"))
    with pytest.raises(InvalidRows, match=rf"{table} has a row of the key .*'b'.*another schema has brought") as caught:
        source.bring(catalog)
    assert "databases of their own" in caught.value.next_step
    assert catalog.snapshot().version == before and scanned(catalog, "objects", "name") == [("a",), ("b",)]


@pytest.mark.parametrize("how", ["live", "ended", "after an import"])
def test_a_database_with_rows_of_somebody_elses_is_refused(native: Source, catalog: Catalog, how: str) -> None:
    native.insert("manta_bucket_object", obj("a"))
    if how == "after an import":
        native.bring(catalog)
    with catalog.writer("w") as writer, writer.transaction() as tx:
        tx.put("objects", obj("b"))
        if how == "ended":
            tx.delete("objects", {name: obj("b")[name] for name in ("owner", "bucket_id", "name")})
    with pytest.raises(InvalidOption, match=r"'default' has (deleted_)?objects that no import put there.*commit w@") as caught:
        native.bring(catalog)
    assert "a database of its own" in caught.value.next_step


def test_what_was_never_imported_is_exported_with_the_catalogs_times(empty: Source, catalog: Catalog) -> None:
    put(catalog, obj("a", user_metadata={"deleted_at": "soon"}), obj("b", etag="e"), delete=True)
    put(catalog, obj("b"))
    exported = empty.take(catalog)
    assert exported.rows["manta_bucket_deleted_object"] == 2
    assert sum(exported.mapped.values()) == 0
    assert exported.hstore == empty.schema.hstore
    ended = scanned(catalog, "deleted_objects", "name", "deleted_at")
    assert empty.run("SELECT name, deleted_at FROM manta_bucket_deleted_object ORDER BY name") == ended
    indexes = {name for (name,) in empty.run(f"SELECT indexname FROM pg_indexes WHERE schemaname = '{empty.name}'")}
    assert {"manta_bucket_deleted_object_id_idx", "manta_bucket_deleted_bucket_deleted_at_idx", "manta_bucket_pkey"} <= indexes


def test_a_version_is_exported_as_it_was(empty: Source, catalog: Catalog) -> None:
    put(catalog, obj("a"))
    then = catalog.snapshot().version
    put(catalog, obj("b"))
    told: list[int] = []
    assert empty.take(catalog, version=then, progress=told.append).rows["manta_bucket_object"] == 1
    assert told == [1]
    assert empty.run("SELECT name FROM manta_bucket_object") == [("a",)]


def test_lists_and_maps_of_any_text_are_read_by_the_server_as_they_are(empty: Source, catalog: Catalog) -> None:
    texts = [*NAMES, "", *map(chr, range(1, 32))]
    put(catalog, obj("a", headers={text: text for text in texts}, sharks=texts))
    empty.take(catalog)
    headers, sharks = empty.run("SELECT headers, sharks FROM manta_bucket_object")[0]
    assert (headers, sharks) == ({text: text for text in texts}, texts)


def test_many_rows_are_one_table_of_whole_batches(native: Source, empty: Source, catalog: Catalog) -> None:
    native.run(
        "INSERT INTO manta_bucket_object (id, name, owner, bucket_id, sharks) "
        f"SELECT gen_random_uuid(), 'n' || i, '{OWNER}', '{BUCKET}', ARRAY['dc:' || i] FROM generate_series(1, 20000) i"
    )
    told: list[int] = []
    native.bring(catalog, progress=told.append)
    assert told == [10_000, 20_000]
    names = catalog.snapshot().scan("objects", columns=["name"]).to_arrow()["name"]
    assert len(pa.compute.unique(names)) == 20_000
    empty.take(catalog)
    assert native.differences(empty.name) == dict.fromkeys(COLUMNS, 0)
