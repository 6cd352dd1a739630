"""Definitions that were witnessed: one that is dated back takes no table, and no column, from whom a compactor or a maintainer had read."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import Catalog, CatalogWarning, IncompatibleTable
from bucketcatalog.clock import uuid7
from bucketcatalog.format.authority import digest_of_definition
from bucketcatalog.format.checkpoints import Checkpoint, decode_checkpoint, encode_checkpoint
from bucketcatalog.format.definitions import table_of
from bucketcatalog.format.dump import inspect
from bucketcatalog.format.records import Link, Void, Witness
from bucketcatalog.format.sealing import seal, unseal
from bucketcatalog.format.transactions import Transaction
from bucketcatalog.log.files import LogFiles
from bucketcatalog.log.trust import checkpoint_as_counted
from bucketcatalog.maintain.verify.findings import Severity
from bucketcatalog.model import paths
from bucketcatalog.model.cuts import Cut, Stamp
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.v1 import log_pb2

from ...kit.cloning import at, clone
from ...kit.dating import FITS, MISFIT, NUMBER, TEXT, Late, declared, name_of, without_checkpoints
from ...kit.pruning import GRACE, keep_time, prune
from ...kit.spec_reader import SpecReader, compact
from ...kit.spec_reading import compare, copied
from ...kit.world import DAY, HOUR, OWNER, START, World, rows, stored


def transactions_of(world: World, writer: str) -> list[Transaction]:
    files = LogFiles(world.store, "default")
    return [files.transaction(writer, head) for head in sorted(files.transactions(writer))]


def checkpoint_of(world: World, writer: str) -> Checkpoint:
    files = LogFiles(world.store, "default")
    return files.checkpoint(writer, next(files.checkpoints(writer)))


class TestADefinitionThatIsDatedBack:
    def test_takes_no_table_from_the_first_definer_that_a_compactor_had_read(self) -> None:
        late = Late()
        late.put("alice", FITS, {"k": "a", "n": 1}, {"k": "b", "n": 2})
        late.compact()
        late.put("alice", FITS, {"k": "c", "n": 3})
        late.world.commit_unasked(late.world.writer("alice"), declared(FITS), ("delete", "lab.r", {"k": "b"}))
        late.world.clock.tick(DAY)
        expected, before = late.shown(), late.world.snapshot().table("lab.r")
        collected = late.world.catalog().collect(older_than="7h")
        assert [row["k"] for row in expected] == ["a", "c"] and collected.waiting == 1
        late.arrive()
        for world in (late.world, without_checkpoints(late.world)):
            for ignore_corruption in (False, True):
                snapshot = world.snapshot(ignore_corruption=ignore_corruption)
                assert rows(snapshot, "lab.r") == expected
                found = snapshot.table("lab.r")
                assert found == replace(before, misfits=found.misfits) and [m.writer for m in found.misfits] == ["mallory"]
                assert found.definition == before.definition
            assert [row["k"] for row in world.catalog().changes(table="lab.r").to_arrow().to_pylist()] == ["a", "b", "c", "b"]
            assert world.catalog().collect(older_than="7h") == collected
        assert late.errors() == []
        made = late.world.catalog().repair(writer="maintainer-1", clock=late.world.clock, dry_run=False)
        assert (made.actions, made.lost) == ((), ())
        late.put("alice", FITS, {"k": "d", "n": 4})
        late.compact("maintainer-1")
        assert [row["k"] for row in late.shown()] == ["a", "c", "d"] and late.errors() == []

    def test_with_rows_stops_who_needs_these_by_its_own_name(self) -> None:
        late = Late(events=True)
        late.put("alice", FITS, {"k": "a", "n": 1})
        late.compact()
        late.arrive()
        for world in (late.world, without_checkpoints(late.world)):
            with pytest.raises(IncompatibleTable, match=r"mallory/default/.* as alice@0 has defined it first"):
                rows(world.snapshot(), "lab.r")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CatalogWarning)
                assert rows(world.snapshot(ignore_corruption=True), "lab.r") == [{"k": "a", "n": 1}]
        assert {(f.code, f.file) for f in late.errors()} == {("MISFIT_EVENTS", late.name)}
        late.world.catalog().repair(writer="maintainer-1", clock=late.world.clock, dry_run=False, set_aside=["mallory@0"])
        assert late.shown() == [{"k": "a", "n": 1}]

    def test_takes_no_column_from_who_had_added_it(self) -> None:
        late = Late(TEXT)
        late.put("alice", FITS, {"k": "a", "n": 1})
        late.put("bob", NUMBER, {"k": "b", "more": 2})
        late.compact()
        expected = late.shown()
        late.arrive()
        assert late.shown() == expected == rows(without_checkpoints(late.world).snapshot(), "lab.r")
        assert [misfit.writer for misfit in late.world.snapshot().table("lab.r").misfits] == ["mallory"]
        assert late.errors() == []

    def test_is_nothing_to_who_looks_rows_up_to_write_more(self) -> None:
        late = Late()
        late.put("alice", FITS, {"k": "a", "n": 1})
        late.compact()
        late.arrive()
        catalog = late.world.catalog()
        catalog.register(declared(NUMBER))
        with late.world.writer("bob", catalog=catalog) as bob:
            late.world.commit(bob, ("put", "lab.r", {"k": "a", "n": 2, "more": 3}))
            known = catalog.snapshot().known_as(table_of(declared(NUMBER)[0]))
        assert [misfit.writer for misfit in known.table("lab.r").misfits] == ["mallory"]
        assert rows(known, "lab.r") == [{"k": "a", "n": 2, "more": 3}] == late.shown()

    def test_decides_where_nobody_had_read_another(self) -> None:
        """What a plain writer's checkpoint has read says nothing."""
        late = Late()
        late.put("alice", FITS, {"k": "a", "n": 1})
        late.world.writer("alice").checkpoint()
        late.arrive()
        for world in (late.world, without_checkpoints(late.world)):
            with pytest.raises(IncompatibleTable, match=r"'alice'.* as mallory@0 has defined it first"):
                rows(world.snapshot(), "lab.r")

    def test_decides_in_what_is_read_of_a_time_before_it_was_said(self) -> None:
        late = Late()
        late.put("alice", FITS, {"k": "a", "n": 1})
        time = late.world.clock.now
        late.world.clock.tick(HOUR)
        late.compact()
        late.arrive()
        assert late.shown() == [{"k": "a", "n": 1}]
        with pytest.raises(IncompatibleTable, match="as mallory@0 has defined it first"):
            late.shown(timestamp=f"@{time}")


class TestWhatIsSaid:
    def test_each_definition_is_named_once_by_whoever_makes_the_first_checkpoint_of_everybody(self) -> None:
        late = Late()
        late.put("alice", FITS, {"k": "a", "n": 1})
        late.put("bob", FITS, {"k": "b", "n": 2})
        late.put("bob", NUMBER, {"k": "c", "more": 3})
        late.world.commit(late.world.writer("carol"), ("put", "buckets", {"owner": OWNER, "name": "b"}))
        late.compact("compactor-1")
        late.put("alice", FITS, {"k": "d", "n": 4})
        late.compact("maintainer-2")
        (note,), (later,) = transactions_of(late.world, "compactor-1"), transactions_of(late.world, "maintainer-2")
        (first, _), (_, second) = transactions_of(late.world, "alice"), transactions_of(late.world, "bob")
        digests = [digest_of_definition(table.definition) for t in (first, second) for table in t.tables]
        said = {(witness.table, witness.digest, witness.defined_by) for witness in note.witnessed}
        assert said == {("lab.r", digests[0], first.stamp), ("lab.r", digests[1], second.stamp)}
        assert later.witnessed == ()  # what the release says of its own tables needs no witness
        for writer in ("compactor-1", "maintainer-2"):
            found = checkpoint_of(late.world, writer)
            assert found.witnessed == note.witnessed and {w.stamp for w in found.witnessed} == {note.stamp}

    def test_a_checkpoint_alone_says_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        late = Late()
        keep_time(late.world, monkeypatch)
        late.put("alice", FITS, {"k": "a", "n": 1})
        late.world.clock.tick(HOUR)
        late.compact()
        late.world.clock.tick(2 * DAY)
        late.put("alice", FITS, {"k": "b", "n": 2})
        late.compact()
        late.world.clock.tick(2 * DAY)
        late.put("alice", FITS, {"k": "c", "n": 3})
        prune(late.world)
        late.world.clock.tick(GRACE)
        assert any("compactor-1" in file.name for file in prune(late.world).files)
        assert all(t.witnessed == () for t in transactions_of(late.world, "compactor-1"))
        late.put("mallory", MISFIT)  # the past is pruned: she can only be dated behind it
        assert [row["k"] for row in late.shown()] == ["a", "b", "c"]
        assert late.world.snapshot().definitions.first_definer("lab.r") == "alice"
        assert late.errors() == []

    @pytest.mark.parametrize("compacted", [False, True])
    def test_a_clone_says_it_too(self, compacted: bool) -> None:
        late = Late()
        late.put("alice", FITS, {"k": "a", "n": 1})
        if compacted:
            late.compact()
        target = MemoryStore(clock=late.world.clock)
        clone(late.world, target)
        cloned = at(late.world, target)
        target.put(late.name, late.data)
        assert rows(cloned.snapshot(), "lab.r") == [{"k": "a", "n": 1}]
        assert [misfit.writer for misfit in cloned.snapshot().table("lab.r").misfits] == ["mallory"]

    def test_one_that_is_lost_is_made_again_with_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        late = Late()
        keep_time(late.world, monkeypatch)
        for name, source in (("alice", FITS), ("bob", NUMBER)):
            writer = late.world.writer(name)
            for at_ in (0, 1):  # the second does not define it again, and is all that is left
                given = [{"k": f"{name} {at_} {number:04}", "n": number} for number in range(1_000)]
                late.world.commit_unasked(writer, declared(source), ("put", "lab.r", given))
        late.world.clock.tick(HOUR)
        late.compact()
        late.world.clock.tick(2 * HOUR)
        assert len(prune(late.world, "0s", grace="0s", force=True).files) == 2
        late.arrive()
        expected = late.shown()
        for name in stored(late.world, ".ckpt"):
            late.world.store.delete(name)
        made = late.world.catalog().repair(writer="maintainer-1", clock=late.world.clock, dry_run=False)
        assert "rebuild" in {action.what for action in made.actions if action.done}
        assert late.shown() == expected and len(expected) == 4_000
        assert late.world.snapshot().definitions.first_definer("lab.r") == "alice"

    def test_a_checkpoint_that_says_otherwise_is_found(self) -> None:
        late = Late()
        late.put("alice", FITS, {"k": "a", "n": 1})
        late.compact()
        found = checkpoint_of(late.world, "compactor-1")
        name = paths.checkpoint("compactor-1", "default", found.head)
        late.world.store.delete(name)
        late.world.store.put(name, encode_checkpoint(replace(found, witnessed=())))
        (finding,) = late.errors()
        assert (finding.code, finding.file) == ("DIFFERENT_STATE", name) and "witnesses" in finding.message

    def test_dump_shows_it(self) -> None:
        late = Late()
        late.put("alice", FITS, {"k": "a", "n": 1})
        late.compact()
        for ending in (".txn", ".ckpt"):
            (name,) = (name for name in stored(late.world, ending) if name.startswith("compactor-1/"))
            content = inspect(late.world.store.get(name), name).content
            assert [(w["table"], w["defined_by"]["writer"]) for w in content["witnessed"]] == [("lab.r", "alice")]

    def test_who_knows_the_specification_alone_says_and_reads_the_same(self, tmp_path: Path) -> None:
        late = Late()
        late.put("alice", FITS, {"k": "a", "n": 1})
        late.put("bob", NUMBER, {"k": "b", "more": 2})
        root = copied(late.world, tmp_path)
        compact(SpecReader(root), "compactor-1")
        Path(root, late.name).parent.mkdir(parents=True)
        Path(root, late.name).write_bytes(late.data)
        snapshot = Catalog(root).snapshot()
        assert [misfit.writer for misfit in snapshot.table("lab.r").misfits] == ["mallory"]
        reader = SpecReader(root)
        assert (
            compare(reader.from_transactions(), snapshot) == compare(reader.from_checkpoints(*reader.checkpoints), snapshot) == 2
        )
        assert [f for f in Catalog(root).verify(deep=True) if f.severity is Severity.ERROR] == []


class TestWhoSaysIt:
    def test_of_two_compactors_the_one_with_the_smaller_stamp_is_believed_whatever_is_read(self) -> None:
        late = Late()
        late.put("alice", FITS, {"k": "a", "n": 1})
        name, data = note_under_way(late, "compactor-2", late.arrive)  # it had looked while mallory's was there
        late.world.store.delete(late.name)
        late.compact("compactor-1")
        late.arrive()
        assert late.shown() == [{"k": "a", "n": 1}]
        late.world.store.put(name, data)
        for world in (late.world, without_checkpoints(late.world)):
            assert world.snapshot().definitions.first_definer("lab.r") == "mallory"
            with pytest.raises(IncompatibleTable, match="as mallory@0 has defined it first"):
                rows(world.snapshot(), "lab.r")

    def test_a_later_one_that_has_read_another_first_definer_changes_nothing(self) -> None:
        late = Late()
        late.put("alice", FITS, {"k": "a", "n": 1})
        late.compact("compactor-1")
        held = [name for name in stored(late.world) if name.startswith("compactor-1/")]
        files = {name: late.world.store.get(name) for name in held}
        for each in held:
            late.world.store.delete(each)
        name, data = note_under_way(late, "compactor-2", late.arrive)
        for each in held:
            late.world.store.put(each, files[each])
        late.world.store.put(name, data)
        assert late.shown() == [{"k": "a", "n": 1}] == rows(without_checkpoints(late.world).snapshot(), "lab.r")

    def test_a_plain_writers_word_counts_for_nothing_in_transactions_and_in_checkpoints(self) -> None:
        late = Late(events=False)
        late.put("alice", FITS, {"k": "a", "n": 1})
        late.arrive()
        (forged,) = transactions_of(late.world, "mallory")
        witness = Witness("lab.r", digest_of_definition(forged.tables[0].definition), forged.stamp)
        message = log_pb2.Transaction.FromString(unseal(late.data, late.name, "a transaction"))
        entry = message.witnessed.add(table="lab.r", definition=witness.digest)
        entry.defined_by.CopyFrom(stamp_message(forged.stamp))
        late.world.store.delete(late.name)
        late.compact()
        late.world.store.put(late.name, seal(message.SerializeToString(deterministic=True)))
        late.world.writer("mallory").checkpoint()
        own = checkpoint_of(late.world, "mallory")
        assert own.witnessed == ()
        name = paths.checkpoint("mallory", "default", own.head)
        late.world.store.delete(name)
        late.world.store.put(name, encode_checkpoint(replace(own, witnessed=(replace(witness, stamp=forged.stamp),))))
        assert late.shown() == [{"k": "a", "n": 1}] == rows(without_checkpoints(late.world).snapshot(), "lab.r")
        told = {(f.code, f.file) for f in late.world.catalog().verify(deep=True) if "witnessed" in f.message}
        assert told == {("IGNORED_FIELDS", late.name), ("IGNORED_FIELDS", name)}

    def test_nor_does_a_compactor_carry_on_what_a_plain_writer_has_said(self) -> None:
        time = START
        stamps = {writer: Stamp(time, writer, 0, uuid7(time).bytes) for writer in ("mallory", "compactor-1", "maintainer-1")}
        witnesses = tuple(Witness("lab.r", bytes(32), stamp, stamp) for stamp in stamps.values())
        made = Checkpoint("compactor-2", "default", 0, uuid7(time).bytes, Cut(), {}, time, 0, witnessed=witnesses)
        counted = checkpoint_as_counted(decode_checkpoint(encode_checkpoint(made), "x.ckpt"))
        assert [witness.stamp.writer for witness in counted.witnessed] == ["compactor-1", "maintainer-1"]
        assert counted.ignored == ("witnessed",)


class TestWhatWasSetAside:
    """A compactor had read mallory's definition alone when it named the first definer."""

    def taken(self) -> Late:
        late = Late()
        late.arrive()
        late.put("alice", FITS)
        late.compact()
        assert late.world.snapshot().definitions.first_definer("lab.r") == "mallory"
        late.world.clock.tick(HOUR)
        self.repair(late, set_aside=["mallory@0"], force=True)
        return late

    def repair(self, late: Late, **named: Any) -> None:
        late.world.catalog().repair(writer="maintainer-1", clock=late.world.clock, dry_run=False, **named)

    def first(self, late: Late) -> set[str | None]:
        worlds = (late.world, without_checkpoints(late.world))
        return {world.snapshot().definitions.first_definer("lab.r") for world in worlds}

    def test_is_no_first_definer_any_more_and_becomes_none_by_defining_it_again(self) -> None:
        late = self.taken()
        assert self.first(late) == {"alice"}
        late.put("alice", FITS, {"k": "a", "n": 1})
        late.compact()
        late.world.commit_unasked(
            late.world.writer("mallory"), declared(MISFIT)
        )  # it says nothing of a table that it does not use
        again = late.world.commit_unasked(late.world.writer("mallory"), declared(MISFIT), ("put", "lab.r", {"k": "m", "n": "x"}))
        assert self.first(late) == {"alice"}
        self.repair(late, set_aside=[name_of("mallory", again)])
        late.put("alice", FITS, {"k": "b", "n": 2})
        late.compact()
        assert [row["k"] for row in late.shown()] == ["a", "b"] and late.errors() == []

    def test_is_it_again_once_it_is_taken_in(self) -> None:
        late = self.taken()
        late.put("alice", FITS)
        late.compact()
        late.world.clock.tick(HOUR)
        self.repair(late, take_in=["mallory@0"])
        assert self.first(late) == {"mallory"}


def stamp_message(stamp: Stamp) -> Any:
    time, writer, revision, uuid = stamp
    return log_pb2.TransactionStamp(commit_time=time, writer=writer, revision=revision, uuid=uuid)


def note_under_way(late: Late, writer: str, first: Callable[[], None]) -> tuple[str, bytes]:
    """The transaction beside a compactor's checkpoint, which failed or has not been seen: its name and bytes, taken out of the store."""
    first()
    with pytest.raises(IncompatibleTable):  # it has rows of alice to fold, which do not fit
        late.compact(writer)
    (name,) = (name for name in stored(late.world, ".txn") if name.startswith(f"{writer}/"))
    data = late.world.store.get(name)
    late.world.store.delete(name)
    return name, data


def test_before_what_a_transaction_from_the_future_has_said_that_was_voided_nothing_is_said() -> None:
    late = Late()
    late.put("alice", FITS, {"k": "a", "n": 1})
    now = late.world.clock.now
    late.world.clock.now = now + DAY
    late.compact("compactor-1")
    note = transactions_of(late.world, "compactor-1")[0]
    late.world.clock.now = now
    with late.world.writer("maintainer-1") as maintainer:
        late.world.clock.tick()
        maintainer.void([Void("compactor-1", Link(note.revision, note.uuid, note.digest))])
    late.arrive()
    late.compact("compactor-1")
    _, again = transactions_of(late.world, "compactor-1")
    assert again.commit_time < note.commit_time and note.witnessed and again.witnessed == ()
    assert late.shown() == [{"k": "a", "n": 1}] == rows(without_checkpoints(late.world).snapshot(), "lab.r")
