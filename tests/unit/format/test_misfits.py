"""A definition that does not fit stops who needs the events by it, and nobody else: in transactions, blocks, segments and checkpoints."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from bucketcatalog import Catalog, CatalogWarning, IncompatibleTable
from bucketcatalog.format.sealing import seal, unseal
from bucketcatalog.model import paths
from bucketcatalog.model.cuts import Head
from bucketcatalog.model.uuids import uuid_bytes
from bucketcatalog.v1 import log_pb2
from bucketcatalog.write.commit import Committed

from ...kit.world import OWNER, World, messages, proto, rows

ROW = 'message R {{ option (table) = {{ name: "lab.r" key: "k" {} }}; string k = 1; optional {} n = 2; {} }}'
FITS, MISFIT = ROW.format("", "int64", ""), ROW.format("", "string", "")
COUNTS = {"inline": 1, "in blocks": 70, "in a segment": 17_000}


def declared(source: str) -> list[Any]:
    return list(messages(proto(source)).values())


class Lab:
    """A table of one, in which mallory has rows by a definition of another type, and some by one that fits from before."""

    def __init__(self, count: int = 1, *, before: bool = True) -> None:
        self.world = World()
        self.world.commit(self.world.writer("other"), ("put", "buckets", {"owner": OWNER, "name": "b"}))
        catalog = self.world.catalog()
        catalog.register(declared(FITS))
        self.one = self.world.writer("one", catalog=catalog)
        self.world.commit(self.one, ("put", "lab.r", {"k": "one", "n": 1}))
        self.mallory = self.world.writer("mallory")
        if before:
            self.world.commit_unasked(self.mallory, declared(FITS), ("put", "lab.r", {"k": "before", "n": 2}))
        given = [{"k": f"after{number:05}", "n": "x"} for number in range(count)]
        self.committed = self.world.commit_unasked(self.mallory, declared(MISFIT), ("put", "lab.r", given))

    @property
    def file(self) -> str:
        return paths.transaction("mallory", "default", Head(self.committed.revision, uuid_bytes(self.committed.uuid)))

    def change(self, committed: Committed, **fields: Any) -> None:
        """Let the file of mallory's commit say otherwise, with its checksum right."""
        name = paths.transaction("mallory", "default", Head(committed.revision, uuid_bytes(committed.uuid)))
        message = log_pb2.Transaction.FromString(unseal(self.world.store.get(name), name, "a transaction"))
        for field in ("actions", "blocks", "segments"):
            if fields.get("without_events"):
                message.ClearField(field)
        for table in message.tables:
            table.declared = fields.get("declared", False)
        self.world.store.delete(name)
        self.world.store.put(name, seal(message.SerializeToString(deterministic=True)))

    def shown(self, **options: Any) -> list[dict[str, Any]]:
        return rows(self.world.snapshot(**options), "lab.r")


@pytest.mark.parametrize("count", COUNTS.values(), ids=COUNTS)
class TestWhoNeedsTheEvents:
    def test_gets_an_error_that_names_file_table_and_writer_and_what_to_do(self, count: int) -> None:
        lab = Lab(count)
        snapshot = lab.world.snapshot()
        for read in (
            lambda: snapshot.scan("lab.r").to_arrow(),
            lambda: snapshot.scan("deleted_lab.r").to_arrow(),
            lambda: snapshot.get("lab.r", k="one"),
            lambda: lab.world.catalog().changes(table="lab.r").to_arrow(),
        ):
            with pytest.raises(IncompatibleTable) as caught:
                read()
            said = caught.value.message
            assert "'mallory'" in said and "'lab.r'" in said and "two ways" in said and caught.value.next_step
            assert lab.file in said or "mallory/default/segments" in said

    def test_others_read_as_ever(self, count: int) -> None:
        lab = Lab(count)
        snapshot = lab.world.snapshot()
        assert [row["name"] for row in rows(snapshot, "buckets")] == ["b"]
        assert lab.world.catalog().changes(table="buckets").to_arrow().num_rows == 1
        assert snapshot.scan("conflicts").to_arrow().num_rows == 0 == snapshot.scan("sums").to_arrow().num_rows
        (told,) = [row for row in snapshot.scan("tables").to_arrow().to_pylist() if row["table"] == "lab.r"]
        assert "'mallory'" in told["contradiction"]
        assert [table.table for table in lab.world.catalog().info().tables] == ["buckets"]
        lab.world.commit(lab.one, ("put", "lab.r", {"k": "two", "n": 3}))

    def test_past_damage_everybody_elses_rows_are_read_and_the_loss_is_named(self, count: int) -> None:
        lab = Lab(count)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CatalogWarning)
            snapshot = lab.world.snapshot(ignore_corruption=True)
            assert [(row["k"], row["n"]) for row in rows(snapshot, "lab.r")] == [("before", 2), ("one", 1)]
            losses = snapshot.missing
        assert losses and all(loss.code == "INCOMPATIBLE_TABLE" and "mallory" in loss.file and loss.held for loss in losses)

    def test_no_checkpoint_of_every_writer_covers_them_and_verify_names_them(self, count: int) -> None:
        lab = Lab(count)
        with pytest.raises(IncompatibleTable, match="mallory"):
            lab.world.writer("compactor-1").checkpoint(scope="all")
        findings = [finding for finding in lab.world.catalog().verify(deep=True) if finding.severity.value == "error"]
        assert "MISFIT_EVENTS" in {finding.code for finding in findings if finding.file == lab.file}

    def test_of_the_writers_own_checkpoint_the_rows_are_an_error_too(self, count: int) -> None:
        lab = Lab(count, before=False)
        lab.mallory.checkpoint()
        with pytest.raises(IncompatibleTable, match=r"mallory/default/.*'lab\.r'"):
            lab.shown()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CatalogWarning)
            assert [row["k"] for row in lab.shown(ignore_corruption=True)] == ["one"]
        assert [row["name"] for row in rows(lab.world.snapshot(), "buckets")] == ["b"]


class TestADefinitionAlone:
    def test_stops_nobody_and_checkpoints_know_that_it_is_left_out(self) -> None:
        lab = Lab()
        lab.change(lab.committed, without_events=True)
        expected = lab.shown()
        assert [(row["k"], row["n"]) for row in expected] == [("before", 2), ("one", 1)]
        for number in range(2):
            lab.world.commit(lab.one, ("put", "lab.r", {"k": "one", "n": 1}))
            lab.world.writer(f"compactor-{number}").checkpoint(scope="all")
            assert lab.shown() == expected
        assert [f for f in lab.world.catalog().verify(deep=True) if f.severity.value == "error"] == []

    def test_its_writers_word_that_it_is_declared_says_nothing(self) -> None:
        lab = Lab()
        lab.change(lab.committed, without_events=True, declared=True)
        table = lab.world.snapshot().table("lab.r")
        assert [m.writer for m in table.misfits] == ["mallory"] and not table.is_maintained


class TestADefinitionThatArrivesLate:
    """Mallory has dated its definition back: a checkpoint has covered the rows of one by a definition that does not fit now."""

    @pytest.mark.parametrize("covered_by", ["", "one", "compactor-1"])
    @pytest.mark.parametrize("is_maintained", [False, True])
    def test_the_answer_is_the_same_whatever_was_covered_and_a_maintainers_and_a_compactors_word_stand(
        self, covered_by: str, is_maintained: bool
    ) -> None:
        world = World()
        early = world.commit_unasked(world.writer("mallory"), declared(MISFIT), ("put", "lab.r", {"k": "m", "n": "x"}))
        name = paths.transaction("mallory", "default", Head(early.revision, uuid_bytes(early.uuid)))
        message = log_pb2.Transaction.FromString(unseal(world.store.get(name), name, "a transaction"))
        del message.actions[:]
        world.store.delete(name)
        catalog = self.knowing(world)
        world.commit(world.writer("one", catalog=catalog), ("put", "lab.r", {"k": "one", "n": 1}))
        if is_maintained:
            world.commit(world.writer("maintainer-1", catalog=catalog), ("put", "lab.r", {"k": "two", "n": 2}))
        if covered_by:
            world.writer(covered_by).checkpoint(scope="all" if covered_by == "compactor-1" else "own")
        world.store.put(name, seal(message.SerializeToString(deterministic=True)))
        if is_maintained:
            assert [row["k"] for row in rows(world.snapshot(), "lab.r")] == ["one", "two"]
        elif covered_by == "compactor-1":
            assert [row["k"] for row in rows(world.snapshot(), "lab.r")] == ["one"]
        else:
            with pytest.raises(IncompatibleTable, match=r"'one'.* as mallory@0 has defined it first"):
                rows(world.snapshot(), "lab.r")
            world.catalog().repair(writer="maintainer-1", clock=world.clock, dry_run=False, set_aside=["mallory@0"], force=True)
            assert [row["k"] for row in rows(world.snapshot(), "lab.r")] == ["one"]

    def knowing(self, world: World) -> Catalog:
        catalog = world.catalog()
        catalog.register(declared(FITS))
        return catalog
