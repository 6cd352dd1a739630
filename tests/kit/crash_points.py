"""Processes that die at a store call, and others that go on: nothing is lost, and nothing doubled.

After each crash a new process opens the catalog: it finds all that was acknowledged, the interrupted commit whole or not at all, and
goes on. Where they die is the caller's choice; what has to be there afterwards says the ledger.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from bucketcatalog import Catalog
from bucketcatalog.maintain.restore import restore as restore_table
from bucketcatalog.store import Store
from bucketcatalog.store.faults import Failing, SimulatedCrash
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.write import staging
from bucketcatalog.write.writer import Writer

from .ledger import Drafts, Ledger, compare, without_checkpoints
from .machine.columns import DATABASE
from .machine.driver import Addressed, transact
from .machine.restores import restoring
from .machine.world import BUCKETS, OWNER, World
from .reference.model import ABSENT, Op
from .reference.timelines import Draft

# What is done to rows.


def put(name: str, length: int, *, expect: str | None = None) -> Addressed:
    key = OWNER, BUCKETS[0], name
    row = {
        "owner": OWNER,
        "bucket_id": BUCKETS[0],
        "name": name,
        "id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{name} {length}")),
        "content_length": length,
    }
    return Addressed(Draft(op=Op.PUT, table="objects", key=key, row=row, expect=expect))


def put_bucket(name: str) -> Addressed:
    row = {"owner": OWNER, "name": name, "id": str(uuid.uuid5(uuid.NAMESPACE_OID, name)), "region": "here"}
    return Addressed(Draft(op=Op.PUT, table="buckets", key=(OWNER, name), row=row))


def delete(name: str) -> Addressed:
    return Addressed(Draft(op=Op.DELETE, table="objects", key=(OWNER, BUCKETS[0], name)))


def of_live(world: World, op: Op, name: str, **more: int) -> Addressed:
    """An UPDATE or DELETE of the live version, called by its id."""
    live = world.newest().get("objects", (OWNER, BUCKETS[0], name))
    assert live is not None
    row = {**live.row, **more} if op is Op.UPDATE else None
    return Addressed(Draft(op=op, table="objects", key=live.key, version=live.name, row=row), str(live.row["id"]))


# What the catalog holds to begin with.


def two_writers(store: Store, ledger: Ledger) -> None:
    """Two writers, a checkpoint, a tail beyond it."""
    catalog = Catalog(store)
    with catalog.writer("w", database=DATABASE) as w, catalog.writer("v", database=DATABASE) as v:
        ledger.commit(w, [put("a", 0), put("b", 2)], ("job", 1))
        w.checkpoint()
        ledger.commit(v, [put("a", 1)])
        ledger.commit(w, [put("c", 3)])


def forks(store: Store, ledger: Ledger) -> None:
    """Also a stray of w and a fork of u that only ``repair`` can join, both before and after a checkpoint of all."""
    two_writers(store, ledger)
    for writer, lengths in (("w", ((10, 11), (20,))), ("u", ((30, 31), (40, 41)))):
        processes = [Catalog(store).writer(writer, database=DATABASE) for _ in lengths]
        for process, its_lengths in zip(processes, lengths, strict=True):
            for length in its_lengths:
                ledger.commit(process, [put("a", length), put(f"{writer}{length}", length)])
        if writer == "w":
            with Catalog(store).writer("compactor-1", database=DATABASE) as compactor:
                compactor.checkpoint(scope="all")
            ledger.admit(store, [])


# The steps that crash.


def inline(world: World) -> Drafts:
    return [
        put("a", 100, expect=ABSENT),
        put_bucket("bucket"),
        of_live(world, Op.UPDATE, "b", content_length=20),
        of_live(world, Op.DELETE, "c"),
    ]


def columnar(_: World) -> Drafts:
    return [*(put(f"n{n:03}", n) for n in range(100)), delete("a")]


def back_to_the_first_commit(world: World) -> Drafts:
    (first,) = [uuid for uuid, it in world.timelines.transactions.items() if (it.writer, it.revision) == ("w", 0)]
    then = world.state(world.timelines.causal(first))
    return [Addressed(draft) for draft in restoring(then, world.newest(), "objects")]


def nothing(_: World) -> Drafts:
    return []


def own_checkpoint(writer: Writer, _: Drafts) -> None:
    writer.checkpoint()


def checkpoint_of_all(writer: Writer, _: Drafts) -> None:
    writer.checkpoint(scope="all")


def restore(writer: Writer, _: Drafts) -> None:
    restore_table(writer._database, writer, "objects", None, "w@0", skip_collected=False)


def commit(writer: Writer, drafts: Drafts) -> None:
    transact(writer, drafts, ("job", 2))


def commit_in_segments(writer: Writer, drafts: Drafts) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staging, "INLINE_ROWS", 10)
        commit(writer, drafts)


@dataclass(frozen=True, slots=True)
class Step:
    """What a process does: its events in the world that it finds, how, and how many transactions come of it.

    It does so as ``writer``. ``segments_first``: what it puts first is a segment, and nothing is put after one of which it has no answer.
    """

    drafts: Callable[[World], Drafts]
    act: Callable[[Writer, Drafts], None]
    transactions: int
    repeatable: bool = False
    segments_first: bool = False
    writer: str = "w"


STEPS = {
    "inline commit": Step(inline, commit, 1, repeatable=True),
    "columnar commit": Step(columnar, commit, 1, repeatable=True),
    "commit in segments": Step(columnar, commit_in_segments, 1, repeatable=True, segments_first=True),
    "restore": Step(back_to_the_first_commit, restore, 1, repeatable=True),
    "own checkpoint": Step(nothing, own_checkpoint, 0),
    "checkpoint of all": Step(nothing, checkpoint_of_all, 1, writer="compactor-1"),
}


class Bench:
    """Stores that ``fresh`` makes, each with the same catalog in it, which ``fill`` has made once."""

    def __init__(self, fresh: Callable[[], Store], fill: Callable[[Store, Ledger], None]) -> None:
        self.fresh = fresh
        self.ledger = Ledger()
        self.origin = fresh()
        fill(self.origin, self.ledger)
        self.world = self.ledger.world(self.origin)
        self.content = {info.name: self.origin.get(info.name) for info in self.origin.list("")}

    def copy(self) -> tuple[Store, Ledger]:
        """A store, and the ledger of what is in it."""
        store = self.fresh()
        self.fill(store)
        return store, Ledger(dict(self.ledger.done))

    def fill(self, store: Store) -> None:
        """Put everything into a fresh store."""
        for name, data in self.content.items():
            store.put(name, data)


def run(store: Store, step: Step, drafts: Drafts) -> None:
    """One process: open, act, close."""
    with Catalog(store).writer(step.writer, database=DATABASE) as writer:
        step.act(writer, drafts)


def go_on(store: Store, ledger: Ledger, step: Step, drafts: Drafts, *, done: int) -> None:
    """A new process does what the dead one did not, by its application's number, then more; and every file is read anew."""
    if step.repeatable:
        run(store, step, drafts)
        assert done + ledger.admit(store, drafts) == step.transactions
        compare(store, ledger)
    rounds = (own_checkpoint, checkpoint_of_all, own_checkpoint) if isinstance(store, MemoryStore) else (checkpoint_of_all,)
    for number, checkpoint in enumerate(rounds):
        with Catalog(store).writer("w", database=DATABASE) as writer:
            ledger.commit(writer, [put(f"more{number}", number)])
        with Catalog(store).writer("compactor-1" if checkpoint is checkpoint_of_all else "w", database=DATABASE) as writer:
            checkpoint(writer, [])
        assert ledger.admit(store, []) == (checkpoint is checkpoint_of_all)
        compare(store, ledger)
    compare(without_checkpoints(store), ledger)


def calls(bench: Bench, step: Step, drafts: Drafts) -> list[tuple[str, str]]:
    """Method and name of every store call that the step makes."""
    store, _ = bench.copy()
    counting = Failing(store)
    run(counting, step, drafts)
    return counting.calls


def crash(bench: Bench, step: Step, drafts: Drafts, at: int, *, late: bool, continued: set[int]) -> int:
    """A process dies at one store call; returns how many transactions it has put.

    ``continued`` holds the numbers of puts after which others have read and gone on already: what they are shown and what comes next
    depends on nothing but what is in the store.
    """
    store, ledger = bench.copy()
    dying = Failing(store, at=at, after=late)
    with pytest.raises(SimulatedCrash):
        run(dying, step, drafts)
    puts = [name for call, name in dying.calls[: at + late] if call == "put"]
    landed = sum(name.endswith(".txn") for name in puts)
    assert ledger.admit(store, drafts) == landed <= step.transactions, (at, late, dying.calls[-1])
    if len(puts) not in continued:
        continued.add(len(puts))
        compare(store, ledger)
        go_on(store, ledger, step, drafts, done=landed)
    return landed
