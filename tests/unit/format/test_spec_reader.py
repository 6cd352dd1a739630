"""A reader that was written from docs/spec alone says the same as the engine, and reads and writes what the engine does."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

import pytest

from bucketcatalog import Catalog, CatalogWarning
from bucketcatalog.format.records import Link, Void
from bucketcatalog.log.files import LogFiles
from bucketcatalog.maintain.restore import restore
from bucketcatalog.maintain.verify.findings import Severity
from bucketcatalog.store.local import LocalStore
from bucketcatalog.write.commit import Committed
from bucketcatalog.write.derived_ids import NAMESPACE

from ...kit import spec_reader
from ...kit.spec_reader import LIVE, SpecReader, Style, compact, message, seal, transaction_uuid
from ...kit.spec_reader import reader as reading
from ...kit.spec_reading import Script, compare, copied
from ...kit.world import MINUTE, World, bucket, messages, names, obj, proto, rows

pytestmark = pytest.mark.filterwarnings("ignore::bucketcatalog.CatalogWarning")


def checkpoint_of(reader: SpecReader, writer: str) -> tuple[str, int, bytes]:
    """The newest checkpoint of a writer."""
    return max(ref for ref in reader.checkpoints if ref[0] == writer)


@pytest.fixture(params=["soon", "much later"])
def script(request: pytest.FixtureRequest) -> Script:
    """A catalog up to its checkpoint; ``much later`` the checkpoint no longer lists what it covers by name."""
    script = Script(World())
    script.begin()
    if request.param == "much later":
        script.world.clock.tick(60 * MINUTE)
    return script


def test_transactions_alone_say_what_the_engine_says(script: Script, tmp_path: Path) -> None:
    script.go_on()
    script.arrive_late()
    reader = SpecReader(copied(script.world, tmp_path))

    assert compare(reader.from_transactions(), Catalog(tmp_path).snapshot()) > 150
    assert reader.from_transactions().conflicts()


def test_every_moment_says_what_the_engine_says(script: Script, tmp_path: Path) -> None:
    script.go_on()
    reader = SpecReader(copied(script.world, tmp_path))
    catalog = Catalog(tmp_path)

    for time in sorted({transaction.commit_time for transaction in reader.transactions.values()}):
        compare(reader.from_transactions(time), catalog.snapshot(timestamp=f"@{time}"))


def test_a_checkpoint_and_its_tail_say_what_the_engine_says(script: Script, tmp_path: Path) -> None:
    with script.world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    script.go_on()
    script.arrive_late()
    reader = SpecReader(copied(script.world, tmp_path))
    snapshot = Catalog(tmp_path).snapshot()
    ref = checkpoint_of(reader, "compactor-1")

    assert len(snapshot.view.checkpoints) == 1
    assert compare(reader.from_checkpoints(ref), snapshot) > 150
    assert reader.from_checkpoints(ref).live("objects") == reader.from_transactions().live("objects")


def test_the_orders_of_a_checkpoint_are_those_of_its_lowest_level(script: Script, tmp_path: Path) -> None:
    script.go_on()
    with script.world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
        script.commit("node-1", ("put", "buckets", bucket("empty")))
        compactor.checkpoint(scope="all")
    reader = SpecReader(copied(script.world, tmp_path))
    counts = []
    for ref in reader.checkpoints:
        orders = reader.orders(ref)
        assert orders.keys() == {("buckets", "deleted_at(deleted_at)"), ("objects", "deleted_at(deleted_at,*)")}
        assert all(said == made for said, made in orders.values())
        counts.append({table: len(said) for (table, _), (said, _) in orders.items()})
    first, second = sorted(counts, key=lambda count: count["buckets"])
    assert first["objects"] == second["objects"] > 5 and second["buckets"] == first["buckets"] + 1 > 1


def test_columns_of_few_values_and_of_one_width_say_what_the_engine_says(tmp_path: Path) -> None:
    world = World()
    writer = world.writer("node-1")
    given = [
        obj(f"n{n:05}", content_type=["a", None][n % 2], sharks=["s1", "s2"][: n % 3], content_md5=n.to_bytes(16, "big"))
        for n in range(2_000)
    ]
    world.commit(writer, ("put", "objects", given))
    writer.checkpoint()
    reader = SpecReader(copied(world, tmp_path))

    assert compare(reader.from_checkpoints(checkpoint_of(reader, "node-1")), Catalog(tmp_path).snapshot()) >= 2_000
    assert compare(reader.from_transactions(), Catalog(tmp_path).snapshot()) >= 2_000


OLDER_AND_NEWER = [
    """message Row {
      option (table) = { name: "test.rows" key: "k" };
      int32 k = 1; optional string gone = 2; optional int32 wider = 3; string again = 4; }""",
    """message Row {
      option (table) = { name: "test.rows" key: "k" };
      int32 k = 1; optional int64 wider = 3; optional string again = 5; optional string new = 6; }""",
]


def test_columns_that_only_an_older_definition_has_say_what_the_engine_says(tmp_path: Path) -> None:
    world = World()
    given = [{"k": 1, "gone": "g", "wider": -5, "again": "a"}, {"k": 2, "wider": 1 << 40, "again": "b", "new": "n"}]
    for number, (definition, row) in enumerate(zip(OLDER_AND_NEWER, given, strict=True)):
        catalog = world.catalog()
        catalog.register(messages(proto(definition))["Row"])
        with world.writer(f"maintainer-{number}", catalog=catalog) as writer:
            world.commit(writer, ("put", "test.rows", row))
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    reader = SpecReader(copied(world, tmp_path))
    ours = checkpoint_of(reader, "compactor-1")
    (first, _) = rows(Catalog(tmp_path).snapshot(), "test.rows")

    assert first == {"k": 1, "gone": "g", "wider": -5, "again_4": "a", "again": None, "new": None}
    assert compare(reader.from_transactions(), Catalog(tmp_path).snapshot()) == 2
    assert compare(reader.from_checkpoints(ours), Catalog(tmp_path).snapshot()) == 2
    foreign = compact(reader, "compactor-foreign")
    assert compare(SpecReader(tmp_path).from_checkpoints(foreign), Catalog(tmp_path).snapshot()) == 2


REMOVED = [
    "int32 k = 1; optional string gone = 2; repeated string words = 3; optional string kept = 4;",
    'reserved 2, 3; reserved "gone"; int32 k = 1; optional string kept = 4; optional int32 words = 5;',
    "int32 k = 1; optional string kept = 4; repeated string words = 3; reserved 2;",
]
LEFT = [["k", "gone", "words", "kept"], ["k", "kept", "words"], ["k", "words", "kept", "words_5"]]


@pytest.mark.parametrize("latest", [0, 1, 2])
def test_columns_whose_numbers_were_reserved_are_shown_by_neither(tmp_path: Path, latest: int) -> None:
    world = World()
    given: list[dict[str, Any]] = [
        {"gone": "g", "words": ["w"], "kept": "x"},
        {"kept": "y", "words": 7},
        {"kept": "z", "words": ["v"]},
    ]
    for number in range(latest + 1):
        catalog = world.catalog()
        body = f'message Row {{ option (table) = {{ name: "test.rows" key: "k" }}; {REMOVED[number]} }}'
        catalog.register(messages(proto(body))["Row"])
        with world.writer("one", catalog=catalog) as writer:
            world.commit(writer, ("put", "test.rows", [{"k": 10 * number + at, **given[number]} for at in range(70)]))
            if number == 0:
                writer.checkpoint()
    assert world.snapshot().scan("test.rows").schema.names == LEFT[latest]
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    reader = SpecReader(copied(world, tmp_path))
    ours = checkpoint_of(reader, "compactor-1")

    assert world.snapshot().scan("test.rows").schema.names == LEFT[latest]
    assert compare(reader.from_transactions(), Catalog(tmp_path).snapshot()) >= 70
    assert compare(reader.from_checkpoints(ours), Catalog(tmp_path).snapshot()) >= 70
    foreign = compact(reader, "compactor-foreign")
    assert compare(SpecReader(tmp_path).from_checkpoints(foreign), Catalog(tmp_path).snapshot()) >= 70


@pytest.mark.parametrize("in_segments", [False, True])
def test_a_restore_says_what_the_engine_says_also_where_its_events_lie_in_segments(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_segments: bool
) -> None:
    then = script.world.snapshot().version
    script.go_on()
    script.world.clock.tick()
    if in_segments:
        monkeypatch.setattr("bucketcatalog.write.staging.INLINE_ROWS", 0)
    with Catalog(script.world.store).writer("maintainer-3", clock=script.world.clock) as held:
        database = Catalog(script.world.store).database("default")
        done = restore(database, held, "objects", None, then, skip_collected=False)
    assert done.put and done.updated + done.deleted
    reader = SpecReader(copied(script.world, tmp_path))

    assert len(list(tmp_path.rglob("*.parquet"))) == in_segments
    assert compare(reader.from_transactions(), Catalog(tmp_path).snapshot()) > 150


def test_checkpoints_of_several_writers_combine(script: Script, tmp_path: Path) -> None:
    for name in ("node-1", "node-2"):
        script.writers[name].checkpoint()
    script.go_on()
    reader = SpecReader(copied(script.world, tmp_path))
    both = [checkpoint_of(reader, name) for name in ("node-1", "node-2")]

    assert compare(reader.from_checkpoints(*both), Catalog(tmp_path).snapshot()) > 150


def test_a_checkpoint_of_a_checkpoint_says_the_same(script: Script, tmp_path: Path) -> None:
    with script.world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
        script.go_on()
        script.arrive_late()
        compactor.checkpoint(scope="all")
    reader = SpecReader(copied(script.world, tmp_path))

    compare(reader.from_checkpoints(checkpoint_of(reader, "compactor-1")), Catalog(tmp_path).snapshot())


STYLES = {
    "as ours": Style(),
    "otherwise": Style(flags=True, own_row_stamps=True, superseded=False),
    "in levels": Style(levels=3, own_row_stamps=True),
    "in itself": Style(levels=2, inline=True, every_column=True, block_rows=5),
    "in small blocks": Style(plain=True, block_rows=3),
    "with every column": Style(flags=True, every_column=True, block_rows=50),
}


@pytest.mark.parametrize("style", STYLES)
def test_a_checkpoint_that_was_written_from_the_specification_is_read_and_found_right(
    script: Script, tmp_path: Path, style: str
) -> None:
    script.writers["node-1"].checkpoint()
    script.go_on()
    script.arrive_late()
    ref = compact(SpecReader(copied(script.world, tmp_path)), "compactor-foreign", STYLES[style])
    reader, catalog = SpecReader(tmp_path), Catalog(tmp_path)
    snapshot = catalog.snapshot()

    assert ref[0] in {checkpoint.writer for checkpoint in snapshot.view.checkpoints}
    assert compare(reader.from_checkpoints(ref), snapshot) > 150
    assert compare(reader.from_transactions(), snapshot) > 150
    assert [str(f) for f in catalog.verify(deep=True) if f.severity is Severity.ERROR] == []


def test_live_blocks_and_those_that_late_puts_ask_for_are_enough(script: Script, tmp_path: Path) -> None:
    with script.world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    script.go_on()
    script.arrive_late()
    reader = SpecReader(copied(script.world, tmp_path))
    answer = reader.from_checkpoints(checkpoint_of(reader, "compactor-1"), classes=frozenset({LIVE}))

    everything = reader.from_transactions()
    for name in everything.tables:
        assert answer.live(name) == everything.live(name)


def test_live_blocks_alone_are_not_enough_for_late_puts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(World())
    script.begin()
    with script.world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    script.arrive_late()
    reader = SpecReader(copied(script.world, tmp_path))
    monkeypatch.setattr(reading, "needed", lambda tail, classes: lambda header: getattr(header, "class") in classes)
    answer = reader.from_checkpoints(checkpoint_of(reader, "compactor-1"), classes=frozenset({LIVE}))

    assert answer.live("objects") != reader.from_transactions().live("objects")


def test_a_late_transaction_below_what_a_checkpoint_lists_waits_for_the_next(tmp_path: Path) -> None:
    script = Script(World())
    script.begin()
    stray = script.commit("node-1", ("put", "objects", obj("stray")))
    name = f"node-1/default/transactions/{stray.revision:020}/{stray.uuid}.txn"
    data = script.world.store.get(name)
    script.world.store.delete(name)
    script.writers["node-1"] = script.world.writer("node-1")
    script.commit("node-1", ("put", "objects", obj("next")))
    script.commit("node-1", ("put", "objects", obj("and next")))
    script.world.clock.tick(60 * MINUTE)
    with script.world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
        script.world.store.put(name, data)
        reader = SpecReader(copied(script.world, tmp_path / "before"))
        assert "stray" not in [
            row["name"] for row in reader.from_checkpoints(checkpoint_of(reader, "compactor-1")).live("objects")
        ]
        compare(reader.from_checkpoints(checkpoint_of(reader, "compactor-1")), Catalog(tmp_path / "before").snapshot())
        compactor.checkpoint(scope="all")
    reader = SpecReader(copied(script.world, tmp_path / "after"))
    assert "stray" in [row["name"] for row in reader.from_checkpoints(checkpoint_of(reader, "compactor-1")).live("objects")]
    compare(reader.from_checkpoints(checkpoint_of(reader, "compactor-1")), Catalog(tmp_path / "after").snapshot())


def test_what_was_read_is_covered_also_where_something_has_arrived_beside_it_since(tmp_path: Path) -> None:
    script = Script(World())
    world = script.world

    def taken_back(writer: str, commit: Committed) -> tuple[str, bytes]:
        name = f"{writer}/default/transactions/{commit.revision:020}/{commit.uuid}.txn"
        data = world.store.get(name)
        world.store.delete(name)
        return name, data

    stray = taken_back("node-1", script.commit("node-1", ("put", "objects", obj("stray"))))
    script.writers["node-1"] = world.writer("node-1")
    script.commit("node-1", ("put", "objects", obj("next")))
    catalog = world.catalog()
    catalog.snapshot()
    with world.writer("late", catalog=catalog) as writer:
        late = taken_back("late", world.commit(writer, ("put", "objects", obj("late"))))
    script.commit("node-1", ("put", "objects", obj("and next")))
    world.clock.tick(60 * MINUTE)
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    for name, data in (stray, late):
        world.store.put(name, data)
    reader = SpecReader(copied(world, tmp_path))
    answer = reader.from_checkpoints(checkpoint_of(reader, "compactor-1"))

    assert [row["name"] for row in answer.live("objects")] == ["and next", "late", "next"]
    compare(answer, Catalog(tmp_path).snapshot())


def test_a_forked_timeline_says_what_the_engine_says(script: Script, tmp_path: Path) -> None:
    other = script.world.writer("node-1")
    script.commit("node-1", ("put", "objects", obj("fork", etag="one")))
    script.world.commit(other, ("put", "objects", [obj("fork", etag="two"), obj("branch")]))
    with script.world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    script.commit("node-2", ("put", "objects", obj("after")))
    reader = SpecReader(copied(script.world, tmp_path))

    with pytest.warns(CatalogWarning, match="forked"):
        snapshot = Catalog(tmp_path).snapshot()
    compare(reader.from_transactions(), snapshot)
    compare(reader.from_checkpoints(checkpoint_of(reader, "compactor-1")), snapshot)
    (entry,) = (e for e in reader.checkpoints[checkpoint_of(reader, "compactor-1")].coverage if e.writer == "node-1")
    revisions = [head.revision for head in (*entry.recent, *entry.branches)]
    assert len(revisions) > len(set(revisions))


def test_the_engine_reads_a_transaction_that_was_written_from_the_specification(script: Script, tmp_path: Path) -> None:
    reader = SpecReader(copied(script.world, tmp_path))
    newest = max(t.commit_time for t in reader.transactions.values())
    sample = next(t for t in reader.transactions.values() if any(d.name == "objects" for d in t.tables))
    time = newest + 1
    uuid = transaction_uuid("by-hand", time)
    tx = message("Transaction")(format_version=1, writer="by-hand", database="default", uuid=uuid, commit_time=time)
    tx.lateness_bound = 6 * MINUTE
    tx.tables.extend(d for d in sample.tables if d.name == "objects")
    table = spec_reader.table_of(tx.tables[0])
    row = table.row(
        owner=UUID(obj("")["owner"]).bytes, bucket_id=UUID(obj("")["bucket_id"]).bytes, name="by hand", content_length=3
    )
    tx.actions.add(table="objects", kind=spec_reader.PUT, row=row.SerializeToString())
    place = tmp_path / f"by-hand/default/transactions/{0:020}/{UUID(bytes=uuid)}.txn"
    place.parent.mkdir(parents=True)
    place.write_bytes(seal(tx.SerializeToString()))

    snapshot = Catalog(LocalStore(tmp_path)).snapshot()
    assert "by hand" in names(snapshot)
    compare(SpecReader(tmp_path).from_transactions(), snapshot)


def test_the_engine_honours_a_tag_that_was_written_from_the_specification(tmp_path: Path) -> None:
    world = World()
    named = world.commit(world.writer("node-1"), ("put", "objects", obj("a")))
    world.commit(world.writer("node-1"), ("put", "objects", obj("b")))
    reader = SpecReader(copied(world, tmp_path))
    time = max(t.commit_time for t in reader.transactions.values()) + 1
    uuid = transaction_uuid("by-hand", time)
    tx = message("Transaction")(format_version=1, writer="by-hand", database="default", uuid=uuid, commit_time=time)
    tx.lateness_bound = 6 * MINUTE
    head = message("Head")(revision=named.revision, uuid=UUID(named.uuid).bytes)
    tx.reads.add(writer="node-1", heads=[head])
    tag = tx.tags.add(name="by-hand", created=time)
    tag.cut.writers.add(writer="node-1", heads=[head])
    place = tmp_path / f"by-hand/default/transactions/{0:020}/{UUID(bytes=uuid)}.txn"
    place.parent.mkdir(parents=True)
    place.write_bytes(seal(tx.SerializeToString()))

    catalog = Catalog(LocalStore(tmp_path))
    assert names(catalog.snapshot(version="by-hand")) == ["a"]
    compare(SpecReader(tmp_path).from_transactions(), catalog.snapshot())


@pytest.mark.parametrize("follows", [False, True])
def test_voided_transactions_are_absent_to_both(tmp_path: Path, follows: bool) -> None:
    world = World()
    with world.writer("node-1") as writer:
        world.commit(writer, ("put", "objects", [obj("a"), obj("b")]))
        world.clock.tick(1440 * MINUTE)
        world.commit(writer, ("put", "objects", [obj("a", etag="future"), obj("c")]), ("delete", "objects", obj("b")))
        world.clock.tick(-1440 * MINUTE)
    files = LogFiles(world.store, "default")
    ahead = files.transaction("node-1", max(files.transactions("node-1")))
    with world.writer("maintainer-1") as maintainer:
        world.clock.tick()
        maintainer.void([Void("node-1", Link(ahead.revision, ahead.uuid, ahead.digest))])
    if follows:
        with world.writer("node-1") as writer:
            world.commit(writer, ("put", "objects", obj("d")))
            assert writer.checkpoint() is not None
    world.clock.tick()
    with world.writer("compactor-1") as compactor:
        assert compactor.checkpoint(scope="all") is not None
    with world.writer("node-2") as writer:
        world.commit(writer, ("put", "objects", obj("e")))
    reader = SpecReader(copied(world, tmp_path))
    snapshot = world.snapshot()
    assert [row["name"] for row in rows(snapshot)] == ["a", "b", *(["d"] if follows else []), "e"]
    assert compare(reader.from_transactions(), snapshot) == len(rows(snapshot))
    for writer_name in ("compactor-1", *(["node-1"] if follows else [])):
        assert compare(reader.from_checkpoints(checkpoint_of(reader, writer_name)), snapshot) == len(rows(snapshot))


def test_ids_of_incarnations_are_computed_as_the_specification_says(script: Script) -> None:
    namespace = uuid5(NAMESPACE_URL, "urn:bucketcatalog:incarnation:v1")
    key = UUID(bucket("b")["owner"]).bytes + b"b"
    first = spec_id(namespace, key)
    assert namespace.bytes == NAMESPACE
    assert script.world.snapshot().get("buckets", **bucket("b"))["id"] == str(first)
    script.go_on()
    assert script.world.snapshot().get("buckets", **bucket("b"))["id"] == str(spec_id(namespace, key + first.bytes))


def spec_id(namespace: UUID, data: bytes) -> UUID:
    """The version 5 uuid of bytes, for ``uuid.uuid5`` takes text alone."""
    return UUID(bytes=hashlib.sha1(namespace.bytes + data).digest()[:16], version=5)


def test_the_reader_shares_no_code_with_the_package() -> None:
    modules = {path.stem: ast.parse(path.read_text()) for path in Path(spec_reader.__file__).parent.glob("*.py")}
    nodes = [node for tree in modules.values() for node in ast.walk(tree)]
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {f"{'.' * node.level}{node.module}" for node in nodes if isinstance(node, ast.ImportFrom)}
    own = {f".{name}" for name in modules}

    assert ".reader" in imported
    assert not [name for name in imported - own if name.startswith((".", "bucketcatalog", "pyspark", "tests"))]
