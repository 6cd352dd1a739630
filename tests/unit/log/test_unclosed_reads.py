"""Transactions that name what they had read and not what that had read: cuts are completed all the same, and verify names them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bucketcatalog.errors import InvalidVersion, MissingObject
from bucketcatalog.format.records import Link, Void
from bucketcatalog.log.files import LogFiles
from bucketcatalog.model.cuts import Cut
from bucketcatalog.model.paths import transaction as transaction_path
from bucketcatalog.store.faults import Counting

from ...kit.fuzzing.parts import closed, opened
from ...kit.spec_reader import SpecReader, message, new_transaction, seal, table_of
from ...kit.spec_reader.writing import name_of_file
from ...kit.spec_reading import compare, copied
from ...kit.world import DAY, World, names, obj


class Chain:
    """Writer ``c`` puts c; ``b`` has read that and puts b; ``a`` has read what b did, does not say what that had read, and puts a."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.committed: dict[str, Any] = {}
        with world.writer("c") as writer:
            world.commit(writer, ("put", "objects", obj("c")))
        sample = self.transaction("c")
        self.definitions, self.row = list(sample.tables), table_of(sample.tables[0]).row.FromString(sample.actions[0].row)
        self.add("b", reads=["c"])
        self.add("a", reads=["b"])

    def transaction(self, writer: str) -> Any:
        (name,) = (info.name for info in self.world.store.list(f"{writer}/") if info.name.endswith(".txn"))
        return message("Transaction").FromString(self.world.store.get(name))

    def add(self, writer: str, *, reads: list[str], parent: Any = None, tag: Cut | None = None) -> Any:
        """A transaction that puts a row named as its writer, and names these writers' transactions as read."""
        added = new_transaction(writer, parent.revision + 1 if parent else 0, self.world.clock.tick())
        if parent:
            added.parents.add(writer=writer, revision=parent.revision, uuid=parent.uuid, digest=parent.checksum)
        for name in reads:
            read = self.transaction(name)
            added.reads.add(writer=name).heads.add(revision=read.revision, uuid=read.uuid)
        if tag is not None:
            entry = added.tags.add(name="named", created=added.commit_time)
            for name, heads in tag.heads.items():
                entry.cut.writers.add(writer=name).heads.add(revision=heads[0].revision, uuid=heads[0].uuid)
        else:
            added.tables.extend(self.definitions)
            self.row.name = writer if parent is None else f"{writer}{added.revision}"
            added.actions.add(table="objects", kind=1, row=self.row.SerializeToString())
        data = seal(added.SerializeToString())
        self.world.store.put(name_of_file(added, "txn"), data)
        return message("Transaction").FromString(data)

    def cut(self, *writers: str) -> Cut:
        files = LogFiles(self.world.store, "default")
        return Cut.of((writer, head) for writer in writers for head in files.transactions(writer))


@pytest.fixture(params=["alone", "own checkpoints"])
def chain(request: pytest.FixtureRequest) -> Chain:
    world = World()
    made = Chain(world)
    if request.param == "own checkpoints":
        for name in "bca":
            with world.writer(name) as writer:
                writer.checkpoint()
    return made


def versions(chain: Chain) -> dict[str, str]:
    return {"causal": "a@0", "heads": str(chain.cut("a", "b")), "one head": str(chain.cut("a"))}


@pytest.mark.parametrize("how", ["causal", "heads", "one head"])
def test_a_version_that_is_not_closed_is_completed_and_shown_so(chain: Chain, how: str) -> None:
    snapshot = chain.world.snapshot(version=versions(chain)[how])

    assert names(snapshot) == ["a", "b", "c"]
    assert snapshot.version == str(chain.cut("a", "b", "c"))


@pytest.mark.parametrize("how", ["causal", "heads", "one head"])
def test_a_reader_of_the_specification_completes_it_too(chain: Chain, how: str, tmp_path: Path) -> None:
    version = versions(chain)[how]
    answer, shown = SpecReader(copied(chain.world, tmp_path)).from_version(version)

    assert shown == str(chain.cut("a", "b", "c"))
    assert compare(answer, chain.world.snapshot(version=version)) == 3


def test_a_closed_version_is_shown_as_it_was_given(chain: Chain) -> None:
    for version in (str(chain.cut("b", "c")), str(chain.cut("c")), ":"):
        assert chain.world.snapshot(version=version).version == version


def test_a_tag_that_somebody_gave_to_what_is_not_closed_names_it_completed(chain: Chain) -> None:
    chain.add("tagger", reads=["a", "b"], tag=chain.cut("a", "b"))

    assert names(chain.world.snapshot(version="named")) == ["a", "b", "c"]


def test_changes_up_to_a_version_that_is_not_closed_have_all_that_led_to_it(chain: Chain) -> None:
    assert chain.world.catalog().changes(end="a@0").to_arrow()["name"].to_pylist() == ["c", "b", "a"]
    assert chain.world.catalog().changes(start="a@0").to_arrow().num_rows == 0


def test_whoever_has_shown_such_a_version_names_all_of_it_as_read(chain: Chain) -> None:
    catalog = chain.world.catalog()
    catalog.snapshot(version="a@0")
    with chain.world.writer("d", catalog=catalog) as writer:
        chain.world.commit(writer, ("put", "objects", obj("d")))
    assert [entry.writer for entry in chain.transaction("d").reads] == ["a", "b", "c"]


def test_verify_names_the_transaction_whose_reads_are_not_closed_and_no_other(chain: Chain) -> None:
    later = chain.add("a", reads=[], parent=chain.transaction("a"))
    first = transaction_path("a", "default", chain.cut("a").of_writer("a")[0])
    with chain.world.writer("d") as writer:
        chain.world.commit(writer, ("put", "objects", obj("d")))
    chain.add("e", reads=["c", "d"])

    found = [f for f in chain.world.catalog().verify(deep=True) if f.code == "UNCLOSED_READS"]
    assert later.revision == 1
    assert {f.file.partition("/")[0] for f in found} == {"a"}
    (finding,) = found
    assert (finding.file, finding.severity.value) == (first, "warning")
    assert "revision 0 of c" in finding.message and "name all that it has read" in finding.remedy


def test_what_is_voided_stands_for_what_it_follows() -> None:
    world = World()
    with world.writer("node-1") as writer:
        world.commit(writer, ("put", "objects", obj("a")))
        world.clock.tick(DAY)
        world.commit(writer, ("put", "objects", obj("b")))
    ahead = LogFiles(world.store, "default").transaction("node-1", max(LogFiles(world.store, "default").transactions("node-1")))
    world.clock.tick(-DAY)
    catalog = world.catalog()
    with pytest.warns(match="future"):
        catalog.snapshot()
    with world.writer("maintainer-1", catalog=catalog) as maintainer:
        world.clock.tick()
        maintainer.void([Void("node-1", Link(ahead.revision, ahead.uuid, ahead.digest))])
    world.clock.tick(2 * DAY)
    with world.writer("maintainer-2") as maintainer:
        maintainer.tag("later")

    assert [f.code for f in world.catalog().verify() if f.code == "UNCLOSED_READS"] == []


def test_only_as_much_is_read_as_is_missing() -> None:
    world = World.counting()
    chain = Chain(world)
    with world.writer("c") as writer:
        for number in range(50):
            world.commit(writer, ("put", "objects", obj(f"c{number}")))
        writer.checkpoint()
    assert isinstance(world.store, Counting)
    world.store.reset()
    snapshot = world.snapshot(version="a@0")

    first = LogFiles(world.store, "default").at_revision("c", 0)
    assert snapshot.version == str(chain.cut("a", "b").joined(Cut.of(("c", head) for head in first)))
    assert world.store.requests["get"] <= 4


@pytest.mark.parametrize("own", ["alone", "own checkpoints"])
def test_however_long_a_chain_is_checkpoints_of_all_writers_are_listed_twice(own: str) -> None:
    world = World.counting()
    chain = Chain(world)
    writers = ["c", "b", "a"]
    for number in range(20):
        chain.add(f"x{number:02}", reads=[writers[-1]])
        writers.append(f"x{number:02}")
    for name in writers if own == "own checkpoints" else ():
        with world.writer(name) as writer:
            writer.checkpoint()
    assert isinstance(world.store, Counting)
    whole = str(chain.cut(*writers))
    for version in (f"{writers[-1]}@0", str(chain.cut(writers[-1]))):
        world.store.reset()
        assert world.snapshot(version=version).version == whole
        assert world.store.requests["get"] <= 2 * len(writers)
        assert world.store.requests["list"] <= 2 * len(writers) + 2


def test_behind_the_horizon_no_checkpoint_is_kept_of_a_cut_that_is_not_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    monkeypatch.setattr("bucketcatalog.clock.now_us", world.clock)
    chain = Chain(world)
    chain.add("maintainer-0", reads=["a", "b"], tag=chain.cut("a", "b"))
    with world.writer("c") as writer:
        for _ in range(3):
            world.commit(writer, ("put", "objects", obj("c")))
            world.clock.tick(DAY)
    for _ in range(2):
        with world.writer("compactor-1") as compactor:
            compactor.checkpoint(scope="all")
        world.clock.tick(2 * DAY)

    def prune() -> Any:
        return world.catalog().prune("36h", dry_run=False, clock=world.clock)

    with pytest.raises(InvalidVersion, match="is not closed"):
        prune()
    assert names(world.snapshot(version="named")) == ["a", "b", "c"]
    with world.writer("maintainer-9") as writer:
        writer.tag("named", version="named", replace=True)
    prune()
    world.clock.tick(2 * DAY)
    assert prune().files
    assert names(world.snapshot(version="named")) == ["a", "b", "c"]


def test_what_a_checkpoint_alone_says_was_read_and_is_not_there_is_told_with_the_checkpoint() -> None:
    world = World()
    with world.writer("a") as one, world.writer("compactor-1") as other:
        world.commit(one, ("put", "objects", obj("x")))
        made = other.checkpoint(scope="all")
    assert made is not None
    found = opened(made.name, world.store.get(made.name))
    del found.reads.writers[:]
    found.reads.writers.add(writer="a").heads.add(revision=7, uuid=found.uuid)
    world.store.put(made.name, closed(found))
    with pytest.raises(MissingObject, match=f"a/default/transactions/0*7/.* is gone.*{made.name} builds on it"):
        world.snapshot()
