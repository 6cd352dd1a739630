"""What every transaction in a store did, which follows from who put it there; and what a reader must be shown, by the model.

Which transactions are in the store is told by their names. Live rows, tombstones, conflicts and forks follow from what each of them did.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from bucketcatalog import clock
from bucketcatalog.store import Store
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.write.writer import Writer

from .machine.columns import DATABASE
from .machine.comparing import Comparer
from .machine.driver import Addressed, transact
from .machine.onlooker import EngineReader
from .machine.steps import Part
from .machine.stores import Published, parents_of, published, segments_of_transaction
from .machine.world import Time, World
from .reference.timelines import Application, Transaction

Drafts = list[Addressed]


@dataclass(slots=True)
class Ledger:
    """What every transaction did, by uuid: first those that were acknowledged, the others as soon as they are found."""

    done: dict[str, Drafts] = field(default_factory=dict)

    def commit(self, writer: Writer, drafts: Drafts, application: Application | None = None) -> None:
        """Commit and note down."""
        told = transact(writer, drafts, application)
        assert told is not None
        self.done[told[1]] = drafts

    def admit(self, store: Store, drafts: Drafts) -> int:
        """What is in the store and not known yet has done this; returns how many transactions that are."""
        new = [it.uuid for it in transactions(store) if it.uuid not in self.done]
        self.done |= dict.fromkeys(new, drafts)
        return len(new)

    def world(self, store: Store) -> World:
        """The model's world with what is in the store, which is exactly what is known."""
        found = list(transactions(store))
        assert sorted(it.uuid for it in found) == sorted(self.done), "nothing is lost, nothing doubled"
        world = World(Time(), names=0)
        for it in sorted(found, key=lambda it: it.revision):
            bare = Transaction(
                writer=it.writer, revision=it.revision, uuid=it.uuid, commit_time=it.commit_time, parents=parents_of(it.data)
            )
            events = (addressed.draft.stamped(bare.stamp(seq)) for seq, addressed in enumerate(self.done[it.uuid]))
            world.timelines.add(replace(bare, events=tuple(events)))
        return world


def transactions(store: Store) -> Iterator[Published]:
    for info in store.list(""):
        if info.name.endswith(".txn"):
            found = published(info.name, store.get(info.name))
            assert found is not None
            yield found


def compare(store: Store, ledger: Ledger) -> None:
    """What a new reader is shown is what the model says."""
    world = ledger.world(store)
    comparer, cut = Comparer(world, store), world.timelines.visible()
    snapshot = EngineReader(store, now=clock.now_us).snapshot()
    comparer.forks(snapshot, cut)
    for part in Part:
        comparer.part("now", part, snapshot, cut)


def without_checkpoints(store: Store) -> Store:
    """The transactions alone, with the segments of their events."""
    plain = MemoryStore()
    for info in store.list(""):
        if info.name.endswith(".txn"):
            data = store.get(info.name)
            writer, _, _ = info.name.partition("/")
            plain.put(info.name, data)
            for uuid in segments_of_transaction(data):
                name = f"{writer}/{DATABASE}/segments/{uuid}.parquet"
                plain.put(name, store.get(name))
    return plain
