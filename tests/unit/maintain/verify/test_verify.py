"""``verify`` names what is wrong with a catalog, what it held and what to do, and is silent about one that is whole."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bucketcatalog import CorruptionError, DatabaseNotFound, StoreUnavailable
from bucketcatalog.format.checkpoints import Checkpoint, encode_checkpoint
from bucketcatalog.format.footers import footer_start
from bucketcatalog.format.held import Held
from bucketcatalog.format.records import Boundary, CheckpointLink
from bucketcatalog.format.segments import index_span
from bucketcatalog.format.transactions import encode_transaction
from bucketcatalog.log.files import LogFiles
from bucketcatalog.maintain.verify import report, walk
from bucketcatalog.maintain.verify.deep import differing_keys
from bucketcatalog.maintain.verify.findings import Finding, Severity, sorts, unreadable
from bucketcatalog.model import paths
from bucketcatalog.model.cuts import Cut
from bucketcatalog.model.facts import Facts
from bucketcatalog.model.uuids import uuid_text
from bucketcatalog.state.plan import Part
from bucketcatalog.state.read import read_slice
from bucketcatalog.store import Store
from bucketcatalog.store.wrappers import Wrapped

from ....kit.corrupting import filled, last_checkpoint
from ....kit.world import BUCKET, HOUR, MINUTE, OWNER, World, bucket, messages, obj, proto, stored

pytestmark = pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")


@pytest.fixture
def world() -> World:
    return filled(World())


def found(world: World, **options: Any) -> list[Finding]:
    return list(world.catalog().verify(**options))


def codes(world: World, **options: Any) -> set[str]:
    return {finding.code for finding in found(world, **options)}


def test_a_whole_catalog_has_no_findings(world: World) -> None:
    assert found(world, deep=True) == []


def test_an_unknown_database_is_an_error(world: World) -> None:
    with pytest.raises(DatabaseNotFound):
        found(world, database="other")


def test_every_database_is_verified_unless_one_is_named(world: World) -> None:
    world.commit(world.writer("a", database="other"), ("put", "objects", obj("x")))
    world.store.delete(stored(world, ".txn")[0])
    assert codes(world) == {"MISSING_TRANSACTION"}
    assert codes(world, database="other") == set()


def test_what_is_gone_is_named_with_what_it_held(world: World) -> None:
    gone = stored(world, ".txn")[1]
    world.store.delete(gone)
    (finding,) = found(world)
    assert (finding.code, finding.file) == ("MISSING_TRANSACTION", gone)
    assert [str(held) for held in finding.held] == ["revision 1 of a"]
    line = str(finding)
    assert line.startswith(f"error MISSING_TRANSACTION {gone}: It is gone;") and "Next: Restore" in line and "\n" not in line


def test_several_revisions_that_are_gone_are_one_finding(world: World) -> None:
    for name in stored(world, ".txn")[1:3]:
        world.store.delete(name)
    assert [str(held) for finding in found(world) for held in finding.held if finding.code == "MISSING_TRANSACTION"] == [
        "revisions 1 to 2 of a"
    ]


@pytest.mark.parametrize(
    ("ending", "code"), [(".txn", "DAMAGED_TRANSACTION"), (".ckpt", "DAMAGED_CHECKPOINT"), (".parquet", "DAMAGED_BLOCK")]
)
def test_every_damaged_file_is_found(world: World, ending: str, code: str) -> None:
    damaged = stored(world, ending)
    for name in damaged:
        data = bytearray(world.store.get(name))
        data[60] ^= 4
        world.store.put(name, bytes(data))
    assert {finding.file for finding in found(world, deep=True) if finding.code == code} == set(damaged)


@pytest.mark.parametrize("ending", [".txn", ".ckpt", ".parquet"])
def test_a_line_says_once_what_a_damaged_file_held(world: World, ending: str) -> None:
    parts = set()
    for name in sorted(stored(world, ending), key=lambda name: len(world.store.get(name)))[-2:]:
        data = world.store.get(name)
        places: list[int | None] = [*range(30, len(data), len(data) // 12), None]
        if ending == ".parquet":
            footer = footer_start(data[-8:], len(data), name)
            start, stop = index_span(data[footer - 4 : footer], footer, name)
            places += [start - 9, stop - 9]
        for at in places:
            damaged = bytearray(data)
            if at is None:
                world.store.delete(name)
            else:
                damaged[at] ^= 4
                world.store.put(name, bytes(damaged))
            for finding in found(world):
                line = str(finding)
                assert line.count(" It held ") == bool(finding.held)
                assert [line.count(str(held)) for held in finding.held] == [1] * len(finding.held)
                parts |= {part for part in ("its rows", "index", "filters") if f" {part} " in line}
            world.store.put(name, data)
    assert ending != ".parquet" or parts >= {"its rows", "index", "filters"}


def test_errors_come_first_then_warnings_then_remarks(world: World) -> None:
    world.clock.tick(HOUR)
    ahead = world.writer("ahead")
    world.commit(ahead, ("put", "objects", obj("early")))
    world.clock.tick(-HOUR)
    late = World(Moved(world.store, 7 * MINUTE))
    late.store.put("a/default/segments/x", b"?")
    *_, name = sorted(stored(world, ".parquet"))
    data = bytearray(world.store.get(name))
    data[60] ^= 4
    late.store.put(name, bytes(data))
    lines = found(late, deep=True)
    assert [finding.severity for finding in lines] == sorted((f.severity for f in lines), key=list(Severity).index)
    assert {"DAMAGED_BLOCK", "FUTURE_TRANSACTION", "LATE_ARRIVAL", "UNKNOWN_FILE"} <= {finding.code for finding in lines}


def test_every_missing_file_is_found(world: World) -> None:
    segments = {s.uuid for s in last_checkpoint(world)[1].segments}
    for uuid in segments:
        (name,) = [n for n in stored(world, ".parquet") if uuid_text(uuid) in n]
        world.store.delete(name)
    assert {f.file.rpartition("/")[2] for f in found(world) if f.code == "MISSING_SEGMENT"} == {
        f"{uuid_text(uuid)}.parquet" for uuid in segments
    }


def test_what_lies_within_a_published_horizon_may_be_gone(world: World) -> None:
    _, checkpoint = last_checkpoint(world)
    link = CheckpointLink("compactor-1", checkpoint.revision, checkpoint.uuid, checkpoint.digest)
    gone = [n for n in stored(world, ".txn") if n.startswith("a/")]
    world.clock.tick()
    with world.writer("maintainer-1") as maintainer:
        world.snapshot()
        maintainer.bound("prune", Boundary(horizon=checkpoint.cut, checkpoint=link, floors={"a": 2}))
    for n in gone[:2]:
        world.store.delete(n)
    assert found(world) == []
    world.commit(world.writer("b"), ("put", "objects", obj("newer")))
    beyond = [n for n in stored(world, ".txn") if n.startswith("b/")][-2]
    world.store.delete(beyond)
    assert {(f.code, f.file) for f in found(world)} == {("MISSING_TRANSACTION", beyond)}


def test_a_marker_without_its_checkpoint_and_a_checkpoint_without_its_marker(world: World) -> None:
    name, checkpoint = last_checkpoint(world)
    world.store.delete(name)
    assert {f.file for f in found(world) if f.code == "MISSING_CHECKPOINT"} == {name}
    other = World(world.store)
    other.store.put(name, encode_checkpoint(checkpoint))
    other.store.delete(paths.newest_marker("compactor-1", "default", checkpoint.head))
    assert {(f.code, f.severity) for f in found(world)} == {
        ("UNMARKED_CHECKPOINT", Severity.INFO),
        ("UNREFERENCED_SEGMENT", Severity.INFO),
    }


CHANGES: dict[str, Callable[[Checkpoint], Checkpoint]] = {
    "totals": lambda c: replace(c, totals={}),
    "features": lambda c: replace(c, features=frozenset()),
    "definitions": lambda c: replace(c, definitions=()),
    "coverage": lambda c: replace(c, coverage={}),
    "list_from": lambda c: replace(c, coverage={w: replace(v, list_from=v.list_from + 9) for w, v in c.coverage.items()}),
    "runs": lambda c: replace(
        c,
        totals={},
        segments=tuple(replace(s, run=replace(s.run, rows=s.run.rows + 1)) for s in c.segments),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_checkpoint_that_contradicts_itself_or_its_segments_is_found(world: World, change: str) -> None:
    name, checkpoint = last_checkpoint(world)
    world.store.put(name, encode_checkpoint(CHANGES[change](checkpoint)))
    assert {(f.code, f.file) for f in found(world)} == {("WRONG_CHECKPOINT", name)}


def test_a_checkpoint_that_says_less_than_its_transactions_is_found_only_by_a_deep_look(world: World) -> None:
    name, checkpoint = last_checkpoint(world)
    *kept, dropped = checkpoint.segments
    assert dropped.run.table == "objects"
    rows = dropped.run.rows
    totals = {t: replace(n, live=n.live - rows) if t == "objects" else n for t, n in checkpoint.totals.items()}
    world.store.put(name, encode_checkpoint(replace(checkpoint, segments=tuple(kept), totals=totals)))
    assert {f.code for f in found(world) if f.severity is Severity.ERROR} == set()
    (finding,) = [f for f in found(world, deep=True) if f.severity is Severity.ERROR]
    assert (finding.code, finding.file, finding.held[0].table, finding.held[0].rows) == ("DIFFERENT_STATE", name, "objects", 1)


@pytest.mark.parametrize("less", [False, True])
@pytest.mark.parametrize(
    ("what", "part", "table", "column"),
    [
        ("order 'deleted_at'", "orders.order_entries", "buckets", "536870909"),
        ("order 'deleted_at'", "orders.order_entries", "objects", "8"),
        ("sum 'bytes'", "sums._counted", "objects", "536870911"),
    ],
)
def test_what_is_kept_beside_rows_and_is_not_of_them_is_found_by_a_deep_look(
    what: str, part: str, table: str, column: str, less: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, _, function = part.partition(".")
    honest = getattr(importlib.import_module(f"bucketcatalog.state.{module}"), function)

    def wrong(*arguments: Any) -> Any:
        made = honest(*arguments)
        if module == "orders" and arguments[0].table.name != table:
            return made
        if less:
            return made.slice(0, len(made) - 1)
        rows = made.rows if isinstance(made, Facts) else made
        index = rows.schema.get_field_index(column)
        values = pc.add(rows.column(index).cast(pa.int64()), pa.scalar(1, pa.int64())).cast(rows.column(index).type)
        rows = rows.set_column(index, rows.schema.field(index), values)
        return replace(made, rows=rows) if isinstance(made, Facts) else rows

    world = World()
    with world.writer() as writer:
        of_two_buckets = [obj(f"x{n}", content_length=n) | {"bucket_id": str(UUID(int=n % 2))} for n in range(9)]
        world.commit(writer, ("put", "objects", of_two_buckets))
        world.commit(writer, ("delete", "objects", [{name: of_two_buckets[n][name] for name in obj("")} for n in (3, 5)]))
        world.commit(
            writer, ("put", "buckets", [bucket("one"), bucket("two")]), ("delete", "buckets", [bucket("one"), bucket("two")])
        )
        with monkeypatch.context() as patch:
            patch.setattr(f"bucketcatalog.state.{part}", wrong)
            name = writer.checkpoint().name
    assert [f.code for f in found(world) if f.severity is Severity.ERROR] == []
    wrongs = [f for f in found(world, deep=True) if f.severity is Severity.ERROR]
    assert {(f.code, f.file) for f in wrongs} == {("DIFFERENT_STATE", name)}
    assert any(f"Its {what} of table {table} is not what" in f.message for f in wrongs)


def rewritten(world: World, name: str, **changes: Any) -> None:
    """Put a transaction back with something else in it, sealed as it should be."""
    prefix = name[: name.index("transactions/")] + "transactions/"
    file = paths.parse_log_file(prefix, name)
    assert file is not None
    t = LogFiles(world.store, "default").transaction(prefix.split("/")[0], file.head)
    world.store.put(name, encode_transaction(replace(t, **changes), t.actions, ()))


def test_a_transaction_that_was_replaced_by_another_is_a_broken_chain(world: World) -> None:
    name = stored(world, ".txn")[1]
    rewritten(world, name, operation="forged")
    assert {(f.code, f.file) for f in found(world)} == {("BROKEN_CHAIN", name)}


def test_a_commit_time_that_does_not_rise_is_found(world: World) -> None:
    writer = world.writer("late")
    world.clock.tick(-5 * MINUTE)
    world.commit(writer, ("put", "objects", obj("z")))
    world.clock.tick(5 * MINUTE)
    name = stored(world, ".txn")[-1]
    assert name.startswith("late/")
    others = {w: heads for w, heads in world.snapshot().cut.heads.items() if w != "late"}
    rewritten(world, name, reads=Cut(others))
    assert [f.file for f in found(world) if f.code == "TIME_ORDER"] == [name]


def test_an_open_fork_and_a_transaction_from_the_future_are_warnings(world: World) -> None:
    for writer in (world.writer("a"), world.writer("a")):
        world.commit(writer, ("put", "objects", obj("forked")))
    ahead = world.writer("ahead")
    world.clock.tick(60 * MINUTE)
    world.commit(ahead, ("put", "objects", obj("ahead")))
    world.clock.tick(-60 * MINUTE)
    assert {(f.code, f.severity) for f in found(world)} == {
        ("OPEN_FORK", Severity.WARNING),
        ("FUTURE_TRANSACTION", Severity.WARNING),
    }


@pytest.mark.parametrize("how", ["exchanged", "gone"])
def test_neighbours_that_cannot_be_read_are_damage_and_no_fork(how: str) -> None:
    world = World()
    with world.writer("w") as writer:
        for n in range(4):
            world.commit(writer, ("put", "objects", obj(str(n))))
        writer.checkpoint()
    _, one, two, _ = stored(world, ".txn")
    first, second = world.store.get(one), world.store.get(two)
    if how == "exchanged":
        world.store.put(one, second)
        world.store.put(two, first)
        expected = [("DAMAGED_TRANSACTION", one), ("DAMAGED_TRANSACTION", two)]
    else:
        world.store.delete(one)
        world.store.delete(two)
        expected = [("MISSING_TRANSACTION", two)]
    assert [(finding.code, finding.file) for finding in found(world, deep=True)] == expected
    made = world.catalog().repair(writer="maintainer-1", clock=world.clock)
    assert made.actions == () and [finding.file for finding in made.lost] == [file for _, file in expected]


@pytest.mark.parametrize("gone", [True, False])
def test_keys_of_what_was_held_are_shown_as_their_columns_and_bounded(gone: bool) -> None:
    world = World()
    with world.writer("w") as writer:
        world.commit(writer, ("put", "objects", [obj("cat\x1b.jpg"), obj("z" * 900)]))
        writer.checkpoint()
    (name,) = stored(world, ".parquet")
    if gone:
        world.store.delete(name)
    else:
        data = bytearray(world.store.get(name))
        data[60] ^= 1
        world.store.put(name, bytes(data))
    finding = next(f for f in found(world) if f.file == name)
    assert finding.held[0].shown is not None and len(finding.held[0].shown[1]) < 300
    text = str(finding)
    assert f"owner='{OWNER}', bucket_id='{BUCKET}', name='cat\\x1b.jpg'" in text and "zzz..." in text
    assert "b'" not in text and "z" * 100 not in text and "\n" not in text


class Moved(Wrapped):
    """A store whose objects all were written at another time."""

    def __init__(self, inner: Store, by: int) -> None:
        super().__init__(inner)
        self.by = by

    def list(self, prefix: str, *, after: str = "", limit: int | None = None) -> Any:
        for info in self.inner.list(prefix, after=after, limit=limit):
            yield replace(info, modified_us=info.modified_us + self.by)


@pytest.mark.parametrize(("by", "code"), [(7 * MINUTE, "LATE_ARRIVAL"), (-2 * MINUTE, "CLOCK_AHEAD")])
def test_what_the_stores_times_say_of_arrivals_is_a_hint_a_writer(world: World, by: int, code: str) -> None:
    moved = World(Moved(world.store, by))
    hints = found(moved)
    assert {f.code for f in hints} == {code} and len(hints) == 3
    assert {f.severity for f in hints} == {Severity.INFO}


def test_files_that_no_reader_knows_are_remarks(world: World) -> None:
    strange = ["a/default/transactions/x", "a/default/newest/x", "a/default/segments/x.parquet", "a/default/more/x"]
    for name in strange:
        world.store.put(name, b"")
    assert {(f.code, f.file) for f in found(world)} == {("UNKNOWN_FILE", n) for n in [*strange[:3], "a/default/more/"]}


def test_segments_that_nothing_names_are_remarks(world: World) -> None:
    name = stored(world, ".parquet")[0]
    world.store.put(paths.segment("a", "default", bytes(16)), world.store.get(name))
    assert [(f.code, f.severity) for f in found(world)] == [("UNREFERENCED_SEGMENT", Severity.INFO)]


def test_definitions_that_contradict_each_other_are_named() -> None:
    world = World()
    with ExitStack() as stack:
        for number, kind in enumerate(("string", "int64")):
            body = f'message Thing {{ option (table) = {{name: "t.thing" key: "k"}}; string k = 1; {kind} v = 2; }}'
            catalog = world.catalog()
            catalog.register(messages(proto(body))["Thing"])
            writer = catalog.writer(f"maintainer-{number}", clock=world.clock)
            stack.enter_context(writer.transaction()).put("t.thing", {"k": "a"})
    (finding,) = found(world)
    assert (finding.code, finding.file) == ("CONTRADICTING_TABLE", "t.thing")


def test_two_states_differ_in_just_the_keys_that_say_different_things(world: World) -> None:
    table_state = world.snapshot().state("objects")
    (slice_,) = table_state.plan()
    state = read_slice(table_state.blocks, table_state.table, slice_, Part.EVERYTHING)
    assert len(differing_keys(state, state, table_state.table)) == 0
    fewer = state.filter(pa.array([n not in (5, 9) for n in range(len(state))]))
    assert len(differing_keys(state, fewer, table_state.table)) == len(differing_keys(fewer, state, table_state.table)) == 2
    at = state.rows.schema.get_field_index("_seq")
    shifted = replace(state, rows=state.rows.set_column(at, "_seq", pa.array([7] * len(state), pa.int32())))
    assert len(differing_keys(state, shifted, table_state.table)) > 1_900
    nothing = state.slice(0, 0)
    assert len(differing_keys(nothing, nothing, table_state.table)) == 0
    assert len(differing_keys(nothing, state.slice(0, 3), table_state.table)) == 3


def test_what_repair_has_listed_as_lost_does_not_send_anybody_to_repair() -> None:
    for code, sort in sorts().items():
        finding = Finding(code, "file", "It is gone.")
        assert finding.remedy == sort.remedy.replace("FILE", "file") and "repair() says" not in finding.as_lost().remedy


def test_every_code_has_a_remedy_of_one_line() -> None:
    assert all(code.isupper() and "\n" not in sort.remedy and sort.remedy.endswith(".") for code, sort in sorts().items())


def test_what_was_found_before_reading_fails_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = list(report._as_found(walk.Walk(LogFiles(world.store, "default")), print, deep=False, left_out=print))

    def failing(*_: Any, **__: Any) -> Iterator[Finding]:
        yield Finding("LATE_ARRIVAL", "file", "It arrived late.")
        yield from whole
        raise StoreUnavailable("the store is away")

    monkeypatch.setattr(report, "_as_found", failing)
    told: list[Finding] = []
    with pytest.raises(StoreUnavailable):
        told.extend(report.verify(LogFiles(world.store, "default")))
    assert "LATE_ARRIVAL" in {finding.code for finding in told}


def test_names_that_read_like_a_sentence_cut_no_finding_short() -> None:
    held = Held("objects", 3, shown=("name='a It held b'", "name='c'"))
    error = CorruptionError(f"w/x.ckpt is damaged: the checksum of {held} does not match. It held {held}.")
    assert unreadable(error, "BLOCK", "w/x.ckpt", held).message == "It is damaged: the checksum of its rows does not match."
