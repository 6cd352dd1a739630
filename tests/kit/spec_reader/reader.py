"""One database of a catalog, from its transactions alone or from checkpoints too (spec/reading.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from .answer import Answer, pins_of, tag_entries
from .cuts import (
    Ref,
    covers,
    cut_text,
    entries_of_asides,
    heads_named,
    heads_of,
    known_voids,
    parents_of,
    reads_of,
    refs_of,
    set_aside,
)
from .facts import VERSION, Fact, facts_of_actions, facts_of_block, rows_of_block
from .sealing import message, unsealed
from .segments import ENDED, EVENTS, ORDER, ROWS, SUPERSEDED, blocks_of, checkpoint_blocks, order_table, rows_of_message
from .stamps import uuid_time
from .tables import Table, encoded_key, tables_of
from .trust import check_rows, check_transaction, counts, is_trusted, own, voided_by

_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-7[0-3][0-9a-f]{2}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
_LOG = re.compile(
    rf"([A-Za-z0-9_-][A-Za-z0-9._-]*)/([A-Za-z0-9_-][A-Za-z0-9._-]*)/transactions/(0{{5}}\d{{15}})/({_UUID})\.(txn|ckpt)"
)


class SpecReader:
    """One database of a catalog in a directory. Its answers are rows as people see them, in order of their keys."""

    def __init__(self, root: Path, database: str = "default") -> None:
        self.root = root
        self.database = database
        self.transactions: dict[Ref, Any] = {}
        self.checkpoints: dict[Ref, Any] = {}
        found = [(path, match) for path in root.rglob("*") if (match := _LOG.fullmatch(path.relative_to(root).as_posix()))]
        self.asides: set[Ref] = set()
        for is_plain in (False, True):  # maintainers say what of the others' is not looked at (spec/aside.md)
            for path, match in sorted(found):
                ref = (match[1], int(match[3]), UUID(match[4]).bytes)
                is_of_all = match[5] == "ckpt" or match[1].startswith("maintainer-")
                if match[2] == database and is_of_all is not is_plain and ref not in self.asides:
                    self._parse(
                        path, ref, *("Transaction", self.transactions) if match[5] == "txn" else ("Checkpoint", self.checkpoints)
                    )
            entries = entries_of_asides(self.transactions.values(), self.checkpoints.values())
            self.asides = set_aside(entries.values())
            self.transactions |= {ref: stand_in(entries[ref], database) for ref in self.asides}
        self.checkpoints = {ref: own(checkpoint) for ref, checkpoint in self.checkpoints.items() if counts(checkpoint)}
        voided = voided_by(self.transactions.values(), self.checkpoints.values())
        for transaction in self.transactions.values():
            assert uuid_time(transaction.uuid) == transaction.commit_time
            check_transaction(transaction, voided)
            for ref, link in zip(parents_of(transaction), transaction.parents, strict=True):
                assert ref in self.asides or not link.digest or self.transactions[ref].checksum == link.digest
        for checkpoint in self.checkpoints.values():
            heads = set(refs_of(checkpoint.cut.writers)) - known_voids([checkpoint])
            assert uuid_time(checkpoint.uuid) == max(uuid_time(uuid) for _, _, uuid in heads)
            marker = f"{10**20 - 1 - checkpoint.revision:020}-{UUID(bytes=checkpoint.uuid)}"
            assert (root / checkpoint.writer / database / "newest" / marker).read_bytes() == b""

    def _parse(self, path: Path, ref: Ref, kind: str, into: dict[Ref, Any]) -> None:
        into[ref] = parsed = unsealed(path.read_bytes(), kind)
        assert (parsed.writer, parsed.revision, parsed.uuid, parsed.database) == (*ref, self.database)
        assert kind == "Checkpoint" or uuid_time(parsed.uuid) == parsed.commit_time

    def from_transactions(self, until: int | None = None) -> Answer:
        """The state that the transactions make, all of them or those with a commit time of at most ``until``."""
        return self._answer(ref for ref, t in self.transactions.items() if until is None or t.commit_time <= until)

    def from_version(self, text: str) -> tuple[Answer, str]:
        """The state of a version that is no tag, and the cut that it is completed to, as text (spec/cuts.md)."""
        pending, found = [*heads_named(text, self.transactions)], dict[Ref, Any]()
        while pending:
            ref = pending.pop()
            if ref not in found:
                found[ref] = self.transactions[ref]
                pending += reads_of(found[ref])
        return self._answer(found), cut_text(heads_of(found))

    def from_checkpoints(self, *used: Ref, classes: frozenset[int] | None = None) -> Answer:
        """The state that checkpoints and the transactions make that none of them covers (spec/checkpoints.md).

        With ``classes`` only such blocks are read, and others where spec/reading.md says so.
        """
        checkpoints, tail = [self.checkpoints[ref] for ref in used], list[Ref]()
        if any("partial" in checkpoint.required_features for checkpoint in checkpoints):
            assert any(is_trusted(checkpoint.writer) for checkpoint in checkpoints), "it is read beside the horizon's"
        for ref in self.transactions:
            known = [entry.list_from for c in checkpoints for entry in c.coverage if entry.writer == ref[0]]
            if ref[1] >= min(known, default=0) and not self._covered(ref, checkpoints):
                tail.append(ref)
        return self._answer(tail, checkpoints, classes)

    def _covered(self, ref: Ref, checkpoints: Iterable[Any]) -> bool:
        return any(covers(checkpoint, ref, self.transactions) for checkpoint in checkpoints)

    def _answer(self, tail: Iterable[Ref], checkpoints: Sequence[Any] = (), classes: frozenset[int] | None = None) -> Answer:
        found = {ref: self.transactions[ref] for ref in tail}
        voided = voided_by(found.values(), checkpoints)
        for transaction in found.values():  # closed under parents and reads
            assert all(ref in found or ref in voided or self._covered(ref, checkpoints) for ref in reads_of(transaction))
        for checkpoint in checkpoints:  # one that does not know of a void must not be used
            assert not any(self._covered(ref, [checkpoint]) for ref in voided - known_voids([checkpoint]))
            assert not any(self._covered(ref, [checkpoint]) for ref in self.asides ^ set_aside(checkpoint.asides))
        said = [transaction for ref, transaction in found.items() if ref not in voided]
        pins = list(pins_of(said, checkpoints))
        answer = Answer(tables_of(found.values(), checkpoints, self.asides), tag_entries(said, checkpoints), pins)
        for transaction in said:
            answer.add(self._events(transaction, answer.tables))
        base = []
        for number, checkpoint in enumerate(checkpoints):
            for header, level, rows in self._blocks(checkpoint):
                if not number and not level:  # of the first one the lowest level is the base
                    base.append((header, rows))
                elif classes is None or getattr(header, "class") != SUPERSEDED:
                    answer.add(_facts(header, rows, answer.tables))
        wanted = needed(answer.facts, classes)  # everything that lies over the base is there
        for header, rows in base:
            if wanted(header):
                answer.add(_facts(header, rows, answer.tables))
        return answer

    def facts(self, some: Iterable[Any], every: Collection[Any]) -> tuple[dict[str, Table], dict[str, dict[bytes, list[Fact]]]]:
        """The facts of the events of some transactions by table and key, the tables as ``every`` transaction defines them."""
        answer = Answer(tables_of(every, asides=self.asides))
        for transaction in some:
            answer.add(self._events(transaction, answer.tables))
        return answer.tables, answer.facts

    def _events(self, transaction: Any, tables: dict[str, Table]) -> Iterator[tuple[str, Fact]]:
        """The facts of a transaction's events, wherever it has them (spec/transactions.md)."""
        assert len(transaction.actions) <= 64
        assert not (transaction.actions and (transaction.blocks or transaction.segments))
        yield from facts_of_actions(transaction, tables)
        blocks = [(block.header, rows_of_message(block.SerializeToString())) for block in transaction.blocks]
        for reference in transaction.segments:
            assert reference.writer == transaction.writer
            blocks += blocks_of(self.root, self.database, reference, of_cut=False)
        for header, rows in blocks:
            assert getattr(header, "class") == EVENTS
            yield from _facts(header, rows, tables, transaction)

    def _blocks(self, checkpoint: Any) -> Iterator[tuple[Any, int, Any]]:
        """Header, level and rows of each block of facts of a checkpoint."""
        for header, run, rows in checkpoint_blocks(self.root, self.database, checkpoint):
            assert "runs" in checkpoint.required_features or not run.level
            check_rows(checkpoint, rows)
            if run.purpose in (0, ROWS):
                yield header, run.level, rows

    def orders(self, ref: Ref) -> dict[tuple[str, str], tuple[list[Any], list[Any]]]:
        """For each kept order of a checkpoint its keys, and of a covering one rows, and those that the tombstones of level 0 make.

        See spec/segments.md.
        """
        checkpoint = self.checkpoints[ref]
        tables = tables_of([], [checkpoint], set_aside(checkpoint.asides))
        found: dict[tuple[str, str], tuple[list[Any], list[Any]]] = {}

        def entries(shape: Table, name: str, rows: Iterable[dict[Any, Any]]) -> Iterator[tuple[bytes, Any]]:
            for row in rows:
                yield encoded_key(shape, row), sorted(map(repr, row.items())) if name.endswith(",*)") else None

        for header, run, rows in checkpoint_blocks(self.root, self.database, checkpoint):
            if run.purpose == ORDER:
                shape = order_table(tables[run.table], run.name)
                said, _ = found.setdefault((run.table, run.name), ([], []))
                said += entries(shape, run.name, rows_of_block(header, rows, shape))
        for header, level, rows in self._blocks(checkpoint):
            for (table, name), (_, made) in found.items():
                if not level and header.table == table and getattr(header, "class") in (ENDED, SUPERSEDED):
                    shape = order_table(tables[table], name)
                    made += entries(shape, name, rows_of_block(header, rows, tables[table]))
        return {name: (sorted(said), sorted(made)) for name, (said, made) in found.items()}


def _facts(header: Any, rows: Any, tables: dict[str, Table], transaction: Any = None) -> Iterator[tuple[str, Fact]]:
    return ((header.table, fact) for fact in facts_of_block(header, rows, tables[header.table], transaction))


def stand_in(entry: Any, database: str) -> Any:
    """What a transaction is taken for that is set aside (spec/aside.md)."""
    transaction = message("Transaction")(
        writer=entry.writer, database=database, revision=entry.revision, uuid=entry.uuid, commit_time=uuid_time(entry.uuid)
    )
    transaction.parents.extend(entry.parents)
    transaction.reads.extend(entry.reads)
    return transaction


def needed(tail: dict[str, dict[bytes, list[Fact]]], classes: frozenset[int] | None) -> Callable[[Any], bool]:
    """Which blocks have to be read: those of the classes, and those that can say something about a PUT of the tail."""
    puts = {
        name: [(k, f.stamp[0]) for k, fs in keys.items() for f in fs if f.kind == VERSION and f.stamp]
        for name, keys in tail.items()
    }

    def wanted(header: Any) -> bool:
        if classes is None or getattr(header, "class") in classes:
            return True
        return any(header.first_key <= k <= header.last_key and t <= header.newest for k, t in puts.get(header.table, []))

    return wanted
