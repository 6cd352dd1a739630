"""Definitions that arrive in any order beside witnesses: whatever is read of them, the tables are those of the transactions alone."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest

from bucketcatalog import IncompatibleTable
from bucketcatalog.clock import uuid7
from bucketcatalog.format.authority import Definition, Definitions, digest_of_definition
from bucketcatalog.format.checkpoints import Checkpoint, decode_checkpoint, encode_checkpoint
from bucketcatalog.format.definitions import core_tables, table_of
from bucketcatalog.format.records import SetAside, Witness
from bucketcatalog.format.transactions import Transaction
from bucketcatalog.log.witnesses import counting, first_of, witnessed_in
from bucketcatalog.model.cuts import Cut, Head, Ref, Stamp
from bucketcatalog.model.tables import Table

from ..kit.dating import FITS, MISFIT, NUMBER, TEXT, Late, declared, without_checkpoints
from ..kit.spec_reader import transaction_uuid
from ..kit.world import START, bucket, rows, stored


class View:
    """Transactions and checkpoints of some definitions, by hand."""

    def __init__(self, tail: list[Transaction], checkpoints: list[Checkpoint]) -> None:
        self.tail = tuple(tail)
        self.checkpoints = tuple(checkpoints)


def table(source: str) -> Table:
    return table_of(declared(source)[0])


@pytest.mark.parametrize("seed", range(60))
def test_any_union_of_checkpoints_and_transactions_counts_the_same(seed: int) -> None:
    random = Random(seed)
    shapes = [table(source) for source in (FITS, MISFIT, NUMBER, TEXT)]
    given = []
    for at_ in random.sample(range(40), 6):
        writer = random.choice(["one", "two", "mallory"])
        time = START + at_ * 1_000_000
        given.append(Definition(Stamp(time, writer, at_, transaction_uuid(writer, time, at_)), random.choice(shapes)))
    notes = []
    for at_ in random.sample(range(40, 80), 4):
        time, writer = START + at_ * 1_000_000, random.choice(["compactor-1", "compactor-2"])
        uuid = transaction_uuid(writer, time, at_)
        stamp = Stamp(time, writer, at_, uuid)
        about = random.sample(given, random.randint(1, 3))
        said = tuple(Witness("lab.r", digest_of_definition(d.table.definition), Stamp(*d.first), stamp) for d in about)
        notes.append(Transaction(writer, "d", at_, uuid, time, 0, witnessed=said))
    aside = random.choice(given).first
    asides = {} if seed % 2 else {Ref(aside[1], Head(aside[2], aside[3])): SetAside(aside[1], aside[2], aside[3])}

    def judged(view: View) -> Definitions:
        return Definitions(core_tables().values(), given, witnessed=counting(witnessed_in(view), asides))

    expected = judged(View(notes, []))
    for _ in range(4):
        parts = [random.sample(notes, random.randint(1, 4)) for _ in range(random.randint(1, 3))]
        checkpoints: list[Checkpoint] = []
        for part in parts:
            kept = first_of(witness for note in part for witness in note.witnessed)
            made = Checkpoint("compactor-1", "d", 0, uuid7(START).bytes, Cut(), {}, START, 0, witnessed=kept)
            checkpoints.append(decode_checkpoint(encode_checkpoint(made), "x.ckpt"))
        tail = [note for note in notes if random.random() < 0.5 or not any(note in part for part in parts)]
        found = judged(View(tail, checkpoints))
        assert found.witnessed == expected.witnessed and found.first_definer("lab.r") == expected.first_definer("lab.r")
        assert found.contradiction("lab.r") == expected.contradiction("lab.r")
        if found.contradiction("lab.r") is None:
            assert (found["lab.r"], found["lab.r"].misfits) == (expected["lab.r"], expected["lab.r"].misfits)


@pytest.mark.parametrize("seed", range(25))
def test_whatever_arrives_late_and_whoever_compacts_the_tables_are_those_of_the_transactions_alone(seed: int) -> None:
    random = Random(seed)
    late = Late(random.choice([MISFIT, TEXT]))
    late.world.commit(late.world.writer("other"), ("put", "buckets", bucket("b")))
    held = {late.name: late.data}
    for number in range(random.randint(4, 9)):
        what = random.choice(["alice", "bob", "hold", "arrive", "compact", "compact", "own"])
        if what in ("alice", "bob", "hold"):
            before = set(stored(late.world))
            writer = f"late-{number}" if what == "hold" else what
            late.put(writer, random.choice([FITS, NUMBER, TEXT]), {"k": f"{random.random()}"})
            (name,) = set(stored(late.world)) - before
            if what == "hold":
                held[name] = late.world.store.get(name)
                late.world.store.delete(name)
        elif what == "arrive" and held:
            name = random.choice(sorted(held))
            late.world.store.put(name, held.pop(name))
        elif what == "compact":
            with suppress(IncompatibleTable):
                late.compact(random.choice(["compactor-1", "compactor-2", "maintainer-1"]))
        elif "alice" in {name.partition("/")[0] for name in stored(late.world)}:
            with suppress(IncompatibleTable):  # she has contradicted herself
                late.world.writer("alice").checkpoint()
        found, expected = (world.snapshot().definitions for world in (late.world, without_checkpoints(late.world)))
        assert found.witnessed == expected.witnessed and found.stamped == expected.stamped
        assert found.first_definer("lab.r") == expected.first_definer("lab.r")
        if "lab.r" in expected and expected.contradiction("lab.r") is None:
            assert (found["lab.r"], found["lab.r"].misfits) == (expected["lab.r"], expected["lab.r"].misfits)
            with suppress(IncompatibleTable):  # of rows that were folded by a definition that is left out now
                assert late.shown() == rows(without_checkpoints(late.world).snapshot(), "lab.r")
    assert {finding.code for finding in late.errors()} <= {"MISFIT_EVENTS", "MISFIT_ROWS", "CONTRADICTING_TABLE"}
