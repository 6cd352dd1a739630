"""Accounting: what is used and what collection frees, by each kind, against plain sums over the rows; and how that grows."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bucketcatalog import Catalog, InvalidOption
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.store.wrappers import Wrapped
from bucketcatalog.systems.manta.accounting import BY, growth, usage
from bucketcatalog.systems.manta.operations import Manta

from ....kit.manta.nodes import after_a_second
from ....kit.pruning import checkpoint
from ....kit.world import BUCKET, ID_1, ID_2, OTHER, OWNER, World, obj, rows

Row = dict[str, Any]
Groups = Callable[[Row], Iterable[tuple[Any, ...]]]
GROUPS: dict[str, Groups] = {
    "owner": lambda row: [(row["owner"],)],
    "bucket": lambda row: [(row["owner"], row["bucket_id"])],
    "content_type": lambda row: [(row["owner"], row["content_type"])],
    "shark": lambda row: [(shark,) for shark in row["sharks"] or ()],
}
"""What a row counts in, once for each."""
SHARKS = ["dc1:1.stor", "dc1:2.stor", "dc2:1.stor", "dc2:7.stor", "dc1:1.stor"]


def summed(given: Iterable[Row], by: str) -> dict[tuple[Any, ...], tuple[int, int]]:
    """Objects and bytes by group, plainly."""
    found: dict[tuple[Any, ...], tuple[int, int]] = {}
    for row in given:
        for group in GROUPS[by](row):
            objects, size = found.get(group, (0, 0))
            found[group] = objects + 1, size + (row["content_length"] or 0)
    return found


def said(counts: pa.Table) -> dict[tuple[Any, ...], tuple[int, ...]]:
    """What a table of counts says by group; each group has one row, and they are in order, nulls behind the others."""
    numbers = [name for name in counts.schema.names if counts.schema.field(name).type == pa.int64()]
    groups = [name for name in counts.schema.names if name not in numbers]
    found = [(tuple(row[name] for name in groups), tuple(row[name] for name in numbers)) for row in counts.to_pylist()]
    in_order = sorted(found, key=lambda each: [(value is None, value or "") for value in each[0]])
    assert found == in_order and len(dict(found)) == len(found)
    return dict(found)


def of(given: Iterable[Row], owner: str | None, bucket_id: str | None, prefix: str) -> Iterator[Row]:
    for row in given:
        if owner in (None, row["owner"]) and bucket_id in (None, row["bucket_id"]) and row["name"].startswith(prefix):
            yield row


def random_row(chance: random.Random) -> Row:
    return {
        "owner": chance.choice([OWNER, OTHER]),
        "bucket_id": chance.choice([BUCKET, ID_1, ID_2]),
        "name": f"{chance.choice(['2024/', '2025/', '2024_', ''])}{chance.randrange(120)}",
        "id": ID_1,
        "content_length": chance.choice([None, 0, 1, chance.randrange(1 << 20), 1 << 50]),
        "content_type": chance.choice([None, "", "text/plain", "image/png"]),
        "sharks": chance.choices(SHARKS, k=chance.randrange(4)),
    }


def fill(world: World) -> None:
    """Random objects of three writers, of which many are overwritten or deleted; there are checkpoints among them."""
    chance = random.Random(149)
    writers = [world.writer(name) for name in ("node-1", "node-2", "node-3")]
    for number in range(24):
        writer = chance.choice(writers)
        given = {(row["owner"], row["bucket_id"], row["name"]): row for row in (random_row(chance) for _ in range(30))}
        world.commit(writer, ("put", "objects", list(given.values())))
        live = rows(world.snapshot(), "objects", ["owner", "bucket_id", "name", "id", "_version"])
        gone = chance.sample(live, len(live) // 5)
        world.commit(
            writer, ("delete", "objects", [{name: row[name] for name in ("owner", "bucket_id", "name")} for row in gone])
        )
        if number % 10 == 9:
            checkpoint(world)


@pytest.fixture(scope="module")
def filled() -> World:
    world = World()
    fill(world)
    return world


@pytest.fixture(scope="module")
def now(filled: World) -> Snapshot:
    return filled.snapshot()


@pytest.fixture(scope="module")
def checkpointed() -> Snapshot:
    """The same objects, with nothing after the last checkpoint."""
    world = World()
    fill(world)
    checkpoint(world)
    return world.snapshot()


WITHIN = [
    (None, None, ""),
    (OWNER, None, ""),
    (OTHER, BUCKET, ""),
    (OWNER, ID_2, "2024/"),
    (OWNER, BUCKET, "2024_"),
    (OWNER, BUCKET, "none"),
    (ID_1, None, ""),
    (OWNER, OWNER, ""),
]


class Chopped:
    """A snapshot whose rows come in batches of a few, as those of many blocks do."""

    def __init__(self, snapshot: Snapshot, most: int) -> None:
        self.snapshot = snapshot
        self.most = most

    def scan(self, table: str, **options: Any) -> Chopped:
        self.rows = self.snapshot.scan(table, **options).to_arrow()
        return self

    def to_batches(self) -> list[pa.RecordBatch]:
        found: list[pa.RecordBatch] = self.rows.to_batches(max_chunksize=self.most)
        return found


class TestUsage:
    @pytest.mark.parametrize("within", WITHIN, ids=str)
    @pytest.mark.parametrize("deleted", [False, True])
    @pytest.mark.parametrize("by", BY)
    def test_it_is_what_plain_sums_are(self, now: Snapshot, by: str, deleted: bool, within: tuple[Any, ...]) -> None:
        owner, bucket_id, prefix = within
        given = rows(now, "deleted_objects" if deleted else "objects")
        assert len(given) > 100
        expected = summed(of(given, owner, bucket_id, prefix), by)
        found = usage(now, by, deleted=deleted, owner=owner, bucket_id=bucket_id, prefix=prefix)
        assert said(found) == expected
        assert found.schema.names == [*BY[by], "objects", "bytes"] and found.schema.field("bytes").type == pa.int64()

    @pytest.mark.parametrize("deleted", [False, True])
    @pytest.mark.parametrize("by", BY)
    def test_a_checkpoint_of_everything_changes_nothing(
        self, now: Snapshot, checkpointed: Snapshot, by: str, deleted: bool
    ) -> None:
        found = [usage(snapshot, by, deleted=deleted) for snapshot in (now, checkpointed)]
        assert found[0].equals(found[1]) and found[0].num_rows > 1

    @pytest.mark.parametrize("by", BY)
    @pytest.mark.parametrize("is_merged", [False, True])
    def test_groups_of_which_nothing_is_left_are_none(self, world: World, node: Manta, by: str, is_merged: bool) -> None:
        for owner in (OWNER, OTHER):
            key = {**obj("a"), "owner": owner}
            node.createobject(**key, id=ID_1, content_length=3, content_type=owner, sharks=[f"dc:{owner}"])
        after_a_second(world, node.deleteobject, **key)
        if is_merged:
            checkpoint(world)
        live, ended = (said(usage(world.snapshot(), by, deleted=deleted)) for deleted in (False, True))
        assert [group[-1] for group in live] == [{"bucket": BUCKET, "shark": f"dc:{OWNER}"}.get(by, OWNER)]
        assert [group[-1] for group in ended] == [{"bucket": BUCKET, "shark": f"dc:{OTHER}"}.get(by, OTHER)]
        assert [*live.values(), *ended.values()] == [(1, 3), (1, 3)]

    @pytest.mark.parametrize("by", BY)
    @pytest.mark.parametrize("deleted", [False, True])
    def test_of_nothing_it_is_nothing(self, world: World, node: Manta, by: str, deleted: bool) -> None:
        world.commit(world.writer("other"), ("put", "buckets", {"owner": OWNER, "name": "photos"}))
        found = usage(world.snapshot(), by, deleted=deleted)
        assert found.num_rows == 0 and found.schema.names == [*BY[by], "objects", "bytes"]

    def test_lengths_that_are_not_known_are_no_bytes(self, world: World, node: Manta) -> None:
        for name, length in [("a", None), ("b", None), ("c", 7)]:
            node.createobject(**obj(name, id=ID_1, content_length=length, sharks=["dc:1"]))
        for by in BY:
            assert [*said(usage(world.snapshot(), by)).values()] == [(3, 7)]

    def test_each_copy_counts_where_it_lies_also_two_in_one_datacenter_and_on_one_server(self, world: World, node: Manta) -> None:
        node.createobject(**obj("a", id=ID_1, content_length=10, sharks=["dc1:1", "dc1:2", "dc2:1"]))
        node.createobject(**obj("b", id=ID_1, content_length=5, sharks=["dc1:1", "dc1:1"]))
        node.createobject(**obj("c", id=ID_1, content_length=1))
        found = said(usage(world.snapshot(), "shark"))
        assert found == {("dc1:1",): (3, 20), ("dc1:2",): (1, 10), ("dc2:1",): (1, 10)}

    @pytest.mark.parametrize("by", BY)
    def test_what_is_counted_of_many_batches_is_added_up_however_often(self, now: Snapshot, by: str) -> None:
        given = rows(now, "deleted_objects")
        assert len(given) > 7 * 64
        chopped: Any = Chopped(now, 7)
        assert said(usage(chopped, by, deleted=True)) == summed(given, by)

    def test_many_sharks_are_as_many_as_they_are(self, world: World) -> None:
        given = [obj(f"{n:05}", content_length=n, sharks=[f"dc:{n % 500}", f"dc:{n % 3}"]) for n in range(3_000)]
        world.commit(world.writer(), ("put", "objects", given))
        assert said(usage(world.snapshot(), "shark")) == summed(given, "shark")

    def test_an_object_that_was_overwritten_counts_on_both_sides(self, world: World, node: Manta) -> None:
        for length in (3, 4):
            after_a_second(world, node.createobject, **obj("a", id=ID_1, content_length=length))
        live, ended = (said(usage(world.snapshot(), "owner", deleted=deleted)) for deleted in (False, True))
        assert (live, ended) == ({(OWNER,): (1, 4)}, {(OWNER,): (1, 3)})

    def test_what_was_collected_counts_nowhere(self, world: World, node: Manta) -> None:
        node.createobject(**obj("a", id=ID_1, content_length=3))
        after_a_second(world, node.deleteobject, **obj("a"))
        node.removedeletedobject(**obj("a"), id=ID_1)
        assert [usage(world.snapshot(), by, deleted=True).num_rows for by in BY] == [0] * 4


class TestRefusals:
    @pytest.mark.parametrize("by", ["name", "", None, "owners"])
    def test_what_nothing_is_counted_by_is_refused(self, now: Snapshot, by: Any) -> None:
        for call in (lambda: usage(now, by), lambda: growth(now, now, by), lambda: growth(None, now, by)):
            with pytest.raises(InvalidOption, match="Nothing is counted by"):
                call()

    @pytest.mark.parametrize("by", BY)
    @pytest.mark.parametrize("within", [{"bucket_id": BUCKET}, {"owner": OWNER, "prefix": "a"}, {"prefix": "a"}], ids=str)
    def test_a_bucket_without_its_owner_and_a_prefix_without_its_bucket_are_refused(
        self, now: Snapshot, by: str, within: dict[str, str]
    ) -> None:
        for deleted in (False, True):
            with pytest.raises(InvalidOption, match="told with its owner"):
                usage(now, by, deleted=deleted, **within)


class Ranges(Wrapped):
    """A store that notes which ranges of segments are read."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.rows: list[tuple[int, int]] = []

    def get(self, name: str, *, most: int | None = None) -> bytes:
        found: bytes = self.inner.get(name, most=most)
        self._note(name, 0, len(found))
        return found

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        self._note(name, offset, length)
        found: bytes = self.inner.get_range(name, offset, length)
        return found

    def _note(self, name: str, offset: int, length: int) -> None:
        """Only what lies before the index is rows."""
        if name.endswith(".parquet") and offset < (end := rows_end(self.inner.get(name))):
            self.rows.append((offset, min(offset + length, end)))


def rows_end(data: bytes) -> int:
    """Where the rows of a segment end, as its Parquet footer says."""
    file = pq.read_metadata(io.BytesIO(data))
    groups = (file.row_group(number) for number in range(file.num_row_groups))
    chunks = [group.column(number) for group in groups for number in range(group.num_columns)]
    return max(chunk.data_page_offset + chunk.total_compressed_size for chunk in chunks)


@pytest.fixture(scope="module")
def merged() -> World:
    """60,000 objects of two owners, in a checkpoint."""
    world = World()
    chance = random.Random(1)
    for owner in (OWNER, OTHER):
        given = [obj(f"{chance.random()}", content_length=n, id=ID_1) | {"owner": owner} for n in range(30_000)]
        world.commit(world.writer(), ("put", "objects", given))
    checkpoint(world)
    return world


class TestCost:
    @staticmethod
    def read(world: World, by: str, **options: Any) -> tuple[int, pa.Table]:
        """How many ranges of rows are read for an answer, and the answer."""
        store = Ranges(world.store)
        found = usage(Catalog(store).snapshot(), by, **options)
        return len(store.rows), found

    @pytest.mark.parametrize("by", ["owner", "bucket"])
    def test_by_owner_and_bucket_no_object_is_read_of_a_checkpoint(self, merged: World, by: str) -> None:
        read, found = self.read(merged, by)
        assert [*said(found).values()] == [(30_000, 30_000 * 29_999 // 2)] * 2 and read == 0
        read, found = self.read(merged, by, owner=OTHER)
        assert [*said(found).values()] == [(30_000, 30_000 * 29_999 // 2)] and read == 0

    def test_by_content_type_and_shark_and_below_a_prefix_they_are(self, merged: World) -> None:
        below = {"owner": OWNER, "bucket_id": BUCKET, "prefix": "0.5"}
        for by, options in [("content_type", {}), ("shark", {}), ("owner", below), ("bucket", below)]:
            assert self.read(merged, by, **options)[0] > 0

    def test_growth_between_checkpoints_reads_no_object_either(self, merged: World) -> None:
        store = Ranges(merged.store)
        snapshot = Catalog(store).snapshot()
        assert [row[2:] for row in said(growth(snapshot, snapshot, "bucket")).values()] == [(0, 0)] * 2 and store.rows == []


class TestGrowth:
    def test_since_nothing_it_is_everything(self, now: Snapshot) -> None:
        for by in BY:
            found = growth(None, now, by)
            assert found.schema.names == [*BY[by], "objects", "bytes", "objects_grown", "bytes_grown"]
            assert said(found) == {group: (*counts, *counts) for group, counts in said(usage(now, by)).items()}

    def test_between_a_moment_and_itself_it_is_none(self, now: Snapshot) -> None:
        for by in BY:
            assert said(growth(now, now, by)) == {group: (*n, 0, 0) for group, n in said(usage(now, by)).items()}

    def test_creation_deletion_and_overwriting_are_what_they_add_and_take(self, world: World, node: Manta) -> None:
        for name, length in [("a", 10), ("b", 20), ("c", 40)]:
            node.createobject(**obj(name, id=ID_1, content_length=length))
        before = world.snapshot()
        after_a_second(world, node.createobject, **obj("d", id=ID_1, content_length=1))
        after_a_second(world, node.deleteobject, **obj("b"))
        after_a_second(world, node.deleteobject, **obj("c"))
        after_a_second(world, node.createobject, **obj("a", id=ID_2, content_length=15))
        after = world.snapshot()
        assert said(growth(before, after, "owner")) == {(OWNER,): (2, 16, -1, -54)}
        assert said(growth(after, before, "owner")) == {(OWNER,): (3, 70, 1, 54)}

    def test_buckets_that_are_new_and_that_have_vanished_are_both_told(self, world: World, node: Manta) -> None:
        def put(bucket_id: str, length: int) -> None:
            after_a_second(world, node.createobject, **obj("a", id=ID_1, content_length=length) | {"bucket_id": bucket_id})

        put(BUCKET, 1)
        put(ID_1, 2)
        before = world.snapshot()
        after_a_second(world, node.deleteobject, **obj("a") | {"bucket_id": ID_1})
        put(ID_2, 4)
        assert said(growth(before, world.snapshot(), "bucket")) == {
            (OWNER, BUCKET): (1, 1, 0, 0),
            (OWNER, ID_1): (0, 0, -1, -2),
            (OWNER, ID_2): (1, 4, 1, 4),
        }

    @pytest.mark.parametrize("by", BY)
    def test_it_is_the_difference_of_two_usages_at_any_two_moments(self, filled: World, by: str) -> None:
        log = sorted(rows(filled.snapshot(), "log"), key=lambda row: row["commit_timestamp"])
        moments = [log[at]["commit_timestamp"] for at in (0, len(log) // 2, len(log) - 1)]
        earlier, middle, later = (filled.snapshot(timestamp=moment) for moment in moments)
        for one, two in [(earlier, middle), (middle, later), (later, earlier)]:
            before, after = said(usage(one, by)), said(usage(two, by))
            expected = {
                group: (*(now := after.get(group, (0, 0))), *(b - a for a, b in zip(before.get(group, (0, 0)), now, strict=True)))
                for group in {*before, *after}
            }
            assert said(growth(one, two, by)) == expected

    def test_from_before_there_was_anything_it_is_everything_too(self, world: World, node: Manta) -> None:
        world.commit(world.writer("other"), ("put", "buckets", {"owner": OWNER, "name": "photos"}))
        empty = world.snapshot()
        node.createobject(**obj("a", id=ID_1, content_length=3, sharks=["d:1"]))
        for by in BY:
            assert [*said(growth(empty, world.snapshot(), by)).values()] == [(1, 3, 1, 3)]
            assert [*said(growth(world.snapshot(), empty, by)).values()] == [(0, 0, -1, -3)]


@pytest.mark.parametrize("by", BY)
def test_an_owner_is_one_however_it_is_spelled_and_what_is_none_is_refused(world: World, by: str) -> None:
    owner = "abcdefab-0000-4000-8000-000000000001"
    with world.writer("w") as writer:
        row = {"owner": owner, "bucket_id": owner, "name": "a", "content_length": 7, "content_type": "t", "sharks": ["d:1"]}
        world.commit(writer, ("put", "objects", row))
    found = usage(world.snapshot(), by, owner=owner.upper())
    assert found["bytes"].to_pylist() == [7] and found.equals(usage(world.snapshot(), by, owner=owner))
    with pytest.raises(InvalidOption, match="no uuid"):
        usage(world.snapshot(), by, owner="nobody")
