"""Each kind of file, wrong in each way: a typed error that names it or the right answer; and with ``ignore_corruption`` the rest.

What could not be read is listed with what it held, ``verify`` names it, and no row is shown that is not live.
"""

from __future__ import annotations

import pickle
from uuid import UUID

import pytest

from bucketcatalog import CorruptionError, InvalidVersion, UnsupportedFormat
from bucketcatalog.format.losses import Losses
from bucketcatalog.format.sealing import seal, unseal
from bucketcatalog.format.transactions import decode_transaction, encode_transaction
from bucketcatalog.log.salvage import SalvagingFiles
from bucketcatalog.maintain.verify.findings import Severity
from bucketcatalog.model import paths
from bucketcatalog.model.cuts import Head
from bucketcatalog.model.keys import KeyRange
from bucketcatalog.model.uuids import uuid_bytes
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.v1 import log_pb2

from ...kit.corrupting import (
    COLUMNAR,
    DAMAGES,
    EVERYTHING,
    INLINE,
    OF_SEGMENT,
    TAIL,
    Specimen,
    chunk_of,
    filled,
    flipped,
    last_checkpoint,
    specimen,
)
from ...kit.world import MINUTE, World, names, obj, rows

pytestmark = pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")

NOTHING: list[str] = []
FILES = ["missing", "truncated", "flipped", "swapped", "foreign", "newer"]
SEGMENTS = ["missing", "truncated", "flipped", "index flipped", "swapped", "foreign"]
CASES = {
    # kind of file: the ways it can be wrong, whether that is an error by default, what is lost by reading on
    "covered transaction": (FILES, False, NOTHING),
    "columnar transaction": (FILES, False, NOTHING),
    "transaction": (FILES, True, TAIL),
    "checkpoint": (FILES, True, NOTHING),
    "marker": (["missing"], False, NOTHING),
    "segment": (SEGMENTS, True, NOTHING),
    "segment of events": (SEGMENTS, True, OF_SEGMENT),
}
EACH = [(kind, damage) for kind, (damages, *_) in CASES.items() for damage in damages]


def lost(kind: str, damage: str) -> list[str]:
    """What is not in the answer when that is read past."""
    if kind == "transaction" and damage == "missing":
        return TAIL  # nothing refers to the last transaction of a timeline
    return CASES[kind][2]


def damaged(kind: str, damage: str) -> tuple[Specimen, str]:
    one = specimen()
    assert one.read()[0] == EVERYTHING
    name = one.files[kind]
    DAMAGES[damage](one, name)
    return one, name


@pytest.mark.parametrize(("kind", "damage"), EACH)
def test_by_default_it_is_an_error_that_names_the_file_or_the_answer_is_right(kind: str, damage: str) -> None:
    one, name = damaged(kind, damage)
    if kind == "transaction" and damage == "missing":
        assert one.read()[0] == [name for name in EVERYTHING if name not in TAIL]  # it might never have been there
    elif CASES[kind][1]:
        with pytest.raises((CorruptionError, UnsupportedFormat)) as error:
            one.read()
        assert name in error.value.message and error.value.next_step
    else:
        assert one.read()[0] == EVERYTHING


@pytest.mark.parametrize(("kind", "damage"), EACH)
def test_reading_on_gives_the_rest_and_says_what_is_missing(kind: str, damage: str) -> None:
    one, name = damaged(kind, damage)
    found, snapshot = one.read(ignore_corruption=True)
    gone = lost(kind, damage)
    assert found == [row for row in EVERYTHING if row not in gone]
    if gone and (kind, damage) != ("transaction", "missing"):
        assert {loss.file for loss in snapshot.missing} == {name}
        assert {row["file"] for row in rows(snapshot, "damage")} == {name}
        (loss,) = snapshot.missing
        held = sum(held.rows for held in loss.held) or len(gone)
        assert held == len(gone) and loss.message and loss.code in {"CORRUPT", "TRUNCATED", "MISSING", "UNSUPPORTED_FORMAT"}
    else:
        assert snapshot.missing == () and rows(snapshot, "damage") == []


@pytest.mark.parametrize(("kind", "damage"), EACH)
def test_verify_names_the_file(kind: str, damage: str) -> None:
    one, name = damaged(kind, damage)
    errors = [f for f in one.world.catalog().verify(deep=True) if f.severity is Severity.ERROR]
    if (kind, damage) == ("transaction", "missing"):
        assert errors == []
    elif kind == "marker":
        codes = {f.code: f.file for f in one.world.catalog().verify()}
        assert codes == {"UNMARKED_CHECKPOINT": one.files["checkpoint"], "UNREFERENCED_SEGMENT": one.files["segment"]}
    else:
        assert name in {f.file for f in errors}
        assert all(f.remedy for f in errors)


@pytest.mark.parametrize(("kind", "damage"), EACH)
def test_repair_mends_it_or_says_what_is_lost(kind: str, damage: str) -> None:
    one, name = damaged(kind, damage)
    one.world.clock.tick()
    made = one.world.catalog().repair(writer="maintainer-1", clock=one.world.clock, dry_run=False)
    if CASES[kind][2] and (kind, damage) != ("transaction", "missing"):
        assert made.actions == () and name in {finding.file for finding in made.lost}
        with pytest.raises((CorruptionError, UnsupportedFormat)):
            one.read()
    else:
        assert all(action.done for action in made.actions)
        assert {finding.file for finding in made.lost} <= {name}
        assert one.read()[0] == [row for row in EVERYTHING if (kind, damage, row) != ("transaction", "missing", "c")]


def test_a_marker_that_leads_nowhere_is_an_error_and_passed_over_by_who_reads_on() -> None:
    one = specimen()
    one.store.put("w/default/newest/99999999999999999990-00000000-0000-7000-8000-000000000000", b"")
    with pytest.raises(CorruptionError, match=r"ckpt is gone"):
        one.read()
    found, snapshot = one.read(ignore_corruption=True)
    assert found == EVERYTHING and snapshot.missing == ()


def test_transaction_rewritten_under_its_name_is_not_the_parent_that_its_child_names() -> None:
    world = World()
    with world.writer() as writer:
        first = world.commit(writer, ("put", "objects", obj("a")))
        world.commit(writer, ("put", "objects", obj("b")))
    name = paths.transaction("w", "default", Head(0, uuid_bytes(first.uuid)))
    message = log_pb2.Transaction.FromString(unseal(world.store.get(name), name, "a transaction"))
    del message.actions[:]
    world.store.put(name, seal(message.SerializeToString(deterministic=True)))
    with pytest.raises(CorruptionError, match="digest") as error:
        world.snapshot()
    assert name in error.value.message


class TestWithoutTheTransactions:
    """The same where nothing is left to replay, as after pruning."""

    @pytest.fixture
    def pruned(self) -> Specimen:
        one = specimen()
        for kind in ("covered transaction", "columnar transaction"):
            one.store.delete(one.files[kind])
        assert one.read()[0] == EVERYTHING
        return one

    @pytest.mark.parametrize("damage", SEGMENTS)
    def test_a_broken_segment_costs_its_key_ranges_alone(self, pruned: Specimen, damage: str) -> None:
        DAMAGES[damage](pruned, pruned.files["segment"])
        with pytest.raises((CorruptionError, UnsupportedFormat)):
            pruned.read()
        found, snapshot = pruned.read(ignore_corruption=True)
        assert found == [*TAIL, *OF_SEGMENT]
        (loss,) = snapshot.missing
        assert loss.file == pruned.files["segment"]
        assert [(held.table, held.rows) for held in loss.held] == [("objects", len(INLINE) + len(COLUMNAR))]
        assert snapshot.get("objects", **obj("c")) is not None and snapshot.get("objects", **obj("a1")) is None

    @pytest.mark.parametrize("damage", FILES)
    def test_a_broken_checkpoint_costs_what_only_it_covered(self, pruned: Specimen, damage: str) -> None:
        DAMAGES[damage](pruned, pruned.files["checkpoint"])
        with pytest.raises((CorruptionError, UnsupportedFormat)):
            pruned.read()
        found, snapshot = pruned.read(ignore_corruption=True)
        assert found == [*TAIL, *OF_SEGMENT]
        (loss,) = snapshot.missing
        assert [str(held) for held in loss.held] == ["revisions 0 to 1 of w"]


def test_a_broken_block_of_a_delete_brings_no_row_back() -> None:
    world = World()
    with world.writer("w") as writer, world.writer("compactor-1") as compactor:
        world.commit(writer, ("put", "objects", [obj(f"{n:05}") for n in range(6_000)]))
        compactor.checkpoint(scope="all")
        world.commit(writer, ("delete", "objects", [obj("00005"), obj("00007")]))
        compactor.checkpoint(scope="all")
    snapshot = world.snapshot()
    upper = {s.uuid: s for c in snapshot.view.checkpoints for s in c.segments if s.run.level}
    assert len(upper) == 1
    name = max(info.name for info in world.store.list("compactor-1/") if info.name.endswith(".parquet"))
    data = bytearray(world.store.get(name))
    data[chunk_of(bytes(data), "name")] ^= 1
    world.store.put(name, bytes(data))
    with pytest.raises(CorruptionError):
        names(world.snapshot())
    salvaged = world.snapshot(ignore_corruption=True)
    assert names(salvaged) == [f"{n:05}" for n in range(6_000) if not 5 <= n <= 7]
    assert rows(salvaged, "deleted_objects") == []
    assert salvaged.get("objects", **obj("00005")) is salvaged.get("objects", **obj("00006")) is None
    where = {"name": ["00004", "00005", "00006", "00008"]}
    assert salvaged.scan("objects", where=where, columns=["name"]).to_arrow()["name"].to_pylist() == ["00004", "00008"]
    page = salvaged.list("objects", owner=obj("")["owner"], bucket_id=obj("")["bucket_id"], limit=7)
    assert page.rows["name"].to_pylist() == ["00000", "00001", "00002", "00003", "00004", "00008", "00009"]
    assert [row["value"] for row in rows(salvaged, "sums") if row["name"] == "objects"] == [5_997]
    (loss,) = salvaged.missing
    assert [(held.table, held.rows) for held in loss.held] == [("objects", 2)]


def test_what_the_horizon_alone_covers_is_read_past_its_damaged_segment() -> None:
    world = World()
    world.commit(world.writer("w"), ("put", "objects", [obj("a"), obj("b")]))
    world.clock.tick(120 * MINUTE)
    world.catalog().prune("0s", grace="1h", writer="maintainer-1", dry_run=False, force=True, clock=world.clock)
    world.commit(world.writer("w"), ("put", "objects", obj("c")))
    name = next(info.name for info in world.store.list("maintainer-1/") if info.name.endswith(".parquet"))
    world.store.put(name, world.store.get(name)[:-100])
    snapshot = world.catalog().snapshot(ignore_corruption=True)
    assert names(snapshot) in ([], ["c"]) and name in {loss.file for loss in snapshot.missing}


@pytest.mark.parametrize("what", ["missing", "flipped"])
def test_without_the_horizons_checkpoint_the_rest_is_read_and_what_was_pruned_is_named(what: str) -> None:
    world = World()
    writer = world.writer("w")
    for name in "abc":
        world.commit(writer, ("put", "objects", obj(name)))
    world.clock.tick(60 * MINUTE)
    for _ in range(3):
        world.catalog().prune("0s", grace="1h", writer="maintainer-1", dry_run=False, force=True, clock=world.clock)
        world.clock.tick(120 * MINUTE)
    assert [info.name.split("/")[3] for info in world.store.list("w/") if info.name.endswith(".txn")] == [f"{2:020}"]
    world.commit(writer, ("put", "objects", obj("d")))
    horizon = world.snapshot().view.horizon
    assert horizon is not None and horizon.boundary.checkpoint is not None
    uuid = str(UUID(bytes=horizon.boundary.checkpoint.uuid))
    (lost,) = [info.name for info in world.store.list("") if info.name.endswith(f"{uuid}.ckpt")]
    data = bytearray(world.store.get(lost))
    world.store.delete(lost)
    if what == "flipped":
        data[len(data) // 2] ^= 1
        world.store.put(lost, bytes(data))
    with pytest.raises(CorruptionError, match=lost):
        world.snapshot()
    with pytest.warns(match="What was pruned is left out"):
        snapshot = world.snapshot(ignore_corruption=True)
    assert names(snapshot) == ["c", "d"]
    (loss,) = snapshot.missing
    assert [str(held) for held in loss.held] == ["revisions 0 to 1 of w"]


def test_a_past_state_is_salvaged_too() -> None:
    one = specimen()
    version = one.read()[1].version
    DAMAGES["flipped"](one, one.files["columnar transaction"])
    DAMAGES["flipped"](one, one.files["checkpoint"])
    for options in ({"version": version}, {"version": "w@2"}, {"timestamp": f"@{one.world.clock.now}"}, {}):
        snapshot = one.world.catalog().snapshot(ignore_corruption=True, **options)
        assert [n for n in names(snapshot) if n[0] != "d"] == [*INLINE, *TAIL]
        assert {loss.file for loss in snapshot.missing} == {one.files["columnar transaction"]}


def test_a_transaction_that_was_replaced_is_left_out() -> None:
    one = specimen()
    for kind in ("marker", "checkpoint"):
        one.store.delete(one.files[kind])
    name = one.files["covered transaction"]
    t = decode_transaction(one.store.get(name), name)
    one.store.put(name, encode_transaction(t, t.actions[:1], ()))
    with pytest.raises(CorruptionError, match="digest"):
        one.read()
    found, snapshot = one.read(ignore_corruption=True)
    assert found == [row for row in EVERYTHING if row not in INLINE]
    assert [loss.file for loss in snapshot.missing] == [name]


def test_whoever_reads_on_is_warned_of_each_loss() -> None:
    one, name = damaged("transaction", "flipped")
    with pytest.warns(match=name):
        one.read(ignore_corruption=True)
    world = filled(World())
    one, (name, last) = Specimen(world, {}), last_checkpoint(world)
    flipped(one, paths.segment("compactor-1", "default", last.segments[0].uuid))
    with pytest.warns(match=r"Left out: \d+ rows of objects, keys"):
        one.read(ignore_corruption=True)
    flipped(one, name)
    with pytest.warns(match=r"ckpt is passed over"):
        one.read(ignore_corruption=True)


def test_whoever_reads_on_is_warned_of_what_may_have_had_the_version_that_is_not_there() -> None:
    world = World()
    world.commit(world.writer("w"), ("put", "objects", obj("a")))
    with world.writer("maintainer-1") as tagger:
        tagger.tag("t")
    name = next(info.name for info in world.store.list("maintainer-1/") if info.name.endswith(".txn"))
    assert names(world.snapshot(version="t")) == ["a"]
    DAMAGES["flipped"](Specimen(world, {}), name)
    with pytest.warns(match=f"{name} is damaged.*Left out: revision 0 of maintainer-1") as warned, pytest.raises(InvalidVersion):
        world.catalog().snapshot(version="t", ignore_corruption=True)
    assert [each.filename for each in warned] == [__file__]


def test_a_whole_catalog_reads_the_same_with_and_without() -> None:
    one = specimen()
    found, snapshot = one.read(ignore_corruption=True)
    assert found == EVERYTHING and snapshot.missing == () and rows(snapshot, "damage") == []
    assert one.read()[1].missing == ()


def test_what_travels_to_another_process_reads_on_there_too() -> None:
    one, name = damaged("segment of events", "flipped")
    snapshot = one.read(ignore_corruption=True)[1]
    files = pickle.loads(pickle.dumps(snapshot.files))
    assert isinstance(files, SalvagingFiles) and files.on_damage.found == ()
    other = Snapshot(files, snapshot.view)
    assert names(other) == [row for row in EVERYTHING if row not in OF_SEGMENT]
    assert {loss.file for loss in other.missing} == {name}


@pytest.mark.parametrize(
    ("keys", "other", "left"),
    [
        (KeyRange(b"b", b"f"), KeyRange(b"c", b"d"), [KeyRange(b"b", b"c"), KeyRange(b"d", b"f")]),
        (KeyRange(b"b", b"f"), KeyRange(b"a", b"z"), []),
        (KeyRange(b"b", b"f"), KeyRange(b"x", b"z"), [KeyRange(b"b", b"f")]),
        (KeyRange(b"b", b"f"), KeyRange(b"", b"c"), [KeyRange(b"c", b"f")]),
        (KeyRange(), KeyRange(b"c", None), [KeyRange(b"", b"c")]),
        (KeyRange(), KeyRange(), []),
    ],
)
def test_a_range_without_another(keys: KeyRange, other: KeyRange, left: list[KeyRange]) -> None:
    assert keys.without(other) == left


def test_losses_are_noted_once() -> None:
    losses = Losses()
    error = CorruptionError("x is damaged.", next_step="-")
    assert losses.add("x", error) is not None and losses.add("x", error) is None
    assert len(losses.found) == 1
