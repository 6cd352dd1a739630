"""One database of a catalog, from its transactions alone or from checkpoints too (spec/reading.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from .answer import Answer, tag_entries
from .coverage import covers
from .cuts import Ref, heads_named, reads_of, text_of_heads
from .facts import END, VERSION, Fact, facts_of_actions, facts_of_block
from .sealing import unsealed
from .segments import ENDED, EVENTS, ORDER, ROWS, SUPERSEDED, blocks_of, checkpoint_blocks, order_table, rows_of_message
from .stamps import stamp_of, uuid_time
from .tables import Table, encoded_key, merged, table_of
from .voids import emptied, voided_by

_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_LOG = re.compile(rf"([A-Za-z0-9_-][A-Za-z0-9._-]*)/([A-Za-z0-9_-][A-Za-z0-9._-]*)/transactions/(\d{{20}})/({_UUID})\.(txn|ckpt)")


class SpecReader:
    """One database of a catalog in a directory. Its answers are rows as people see them, in order of their keys."""

    def __init__(self, root: Path, database: str = "default") -> None:
        self.root = root
        self.database = database
        self.transactions: dict[Ref, Any] = {}
        self.checkpoints: dict[Ref, Any] = {}
        for path in sorted(root.rglob("*")):
            match = _LOG.fullmatch(path.relative_to(root).as_posix())
            if match is not None and match[2] == database:
                kind, into = ("Transaction", self.transactions) if match[5] == "txn" else ("Checkpoint", self.checkpoints)
                into[match[1], int(match[3]), UUID(match[4]).bytes] = self._log_file(path, kind, match)

    def _log_file(self, path: Path, kind: str, match: re.Match[str]) -> Any:
        parsed = unsealed(path.read_bytes(), kind)
        assert (parsed.writer, parsed.database, parsed.revision) == (match[1], match[2], int(match[3]))
        assert parsed.uuid == UUID(match[4]).bytes
        if kind == "Transaction":
            assert uuid_time(parsed.uuid) == parsed.commit_time
            self._check_parents(parsed)
        else:
            voided = {link.uuid for link in parsed.voids}
            heads = [head for writer in parsed.cut.writers for head in writer.heads if head.uuid not in voided]
            assert uuid_time(parsed.uuid) == max(uuid_time(head.uuid) for head in heads)
            countdown = 10**20 - 1 - parsed.revision
            assert (self.root / match[1] / match[2] / "newest" / f"{countdown:020}-{match[4]}").read_bytes() == b""
        return parsed

    def _check_parents(self, transaction: Any) -> None:
        for link in transaction.parents:
            name = f"{transaction.writer}/{self.database}/transactions/{link.revision:020}/{UUID(bytes=link.uuid)}.txn"
            assert (self.root / name).read_bytes()[-32:] == link.digest

    def from_transactions(self, until: int | None = None) -> Answer:
        """The state that the transactions make, all of them or those with a commit time of at most ``until``."""
        wanted = {ref: t for ref, t in self.transactions.items() if until is None or t.commit_time <= until}
        voided = voided_by(wanted.values(), [])
        for ref, transaction in wanted.items():
            for other in reads_of(ref, transaction):
                assert other in wanted or other in voided  # closed under parents and reads
        said = [emptied(transaction) if ref in voided else transaction for ref, transaction in wanted.items()]
        return Answer(*self._facts(said, []), tag_entries(said, []))

    def from_version(self, text: str) -> tuple[Answer, str]:
        """The state of a version that is no tag, and the cut that it is completed to, as text (spec/cuts.md)."""
        named = set(heads_named(text, self.transactions))
        pending, found = [*named], dict[Ref, Any]()
        while pending:
            ref = pending.pop()
            if ref not in found:
                found[ref] = self.transactions[ref]
                pending += reads_of(ref, found[ref])
        followed = {(ref[0], link.revision, link.uuid) for ref, t in found.items() for link in t.parents}
        voided = voided_by(found.values(), [])
        said = [emptied(transaction) if ref in voided else transaction for ref, transaction in found.items()]
        return Answer(*self._facts(said, []), tag_entries(said, [])), text_of_heads(found.keys() - followed)

    def from_checkpoints(self, *used: Ref, classes: frozenset[int] | None = None) -> Answer:
        """The state that checkpoints and the transactions make that none of them covers (spec/checkpoints.md).

        With ``classes`` only such blocks are read, and others where spec/reading.md says so.
        """
        checkpoints = [self.checkpoints[ref] for ref in used]
        tail: dict[Ref, Any] = {}
        for ref, transaction in self.transactions.items():
            known = [entry.list_from for c in checkpoints for entry in c.coverage if entry.writer == ref[0]]
            listed = ref[1] >= min(known, default=0)
            if listed and not any(covers(c, ref, self.transactions) for c in checkpoints):
                tail[ref] = transaction
        for ref, transaction in tail.items():
            for other in reads_of(ref, transaction):
                assert other in tail or any(covers(c, other, self.transactions) for c in checkpoints)
        voided = voided_by(tail.values(), checkpoints)
        for checkpoint in checkpoints:  # one that does not know of a void must not be used
            assert all(ref in voided_by([], [checkpoint]) for ref in voided if covers(checkpoint, ref, self.transactions))
        said = [emptied(transaction) if ref in voided else transaction for ref, transaction in tail.items()]
        return Answer(*self._facts(said, checkpoints, classes), tag_entries(said, checkpoints))

    def name(self, writer: str, revision: int, uuid: bytes) -> str:
        """The name of a transaction."""
        return f"{writer}/{self.database}/transactions/{revision:020}/{UUID(bytes=uuid)}.txn"

    def heads(self) -> list[Ref]:
        """The transactions that no other follows."""
        parents = {(ref[0], link.revision, link.uuid) for ref, t in self.transactions.items() for link in t.parents}
        return sorted(self.transactions.keys() - parents)

    def facts(self, some: Iterable[Any], every: Iterable[Any]) -> tuple[dict[str, Table], dict[str, dict[bytes, list[Fact]]]]:
        """The facts of the events of some transactions by table and key, the tables as ``every`` transaction defines them."""
        tables, _ = self._facts(every, [])
        facts: dict[str, dict[bytes, list[Fact]]] = {name: {} for name in tables}
        for transaction in some:
            for name, fact in self._events(transaction, tables):
                facts[name].setdefault(encoded_key(tables[name], fact.row), []).append(fact)
        return tables, facts

    def _facts(
        self, tail: Iterable[Any], checkpoints: Iterable[Any], classes: frozenset[int] | None = None
    ) -> tuple[dict[str, Table], dict[str, dict[bytes, list[Fact]]]]:
        transactions = sorted(tail, key=stamp_of)
        tables: dict[str, Table] = {}
        definitions = [(stamp_of(d.defined_by), d) for checkpoint in checkpoints for d in checkpoint.tables]
        definitions += [(stamp_of(transaction), d) for transaction in transactions for d in transaction.tables]
        for _, definition in sorted(definitions, key=lambda one: one[0]):
            table = table_of(definition)
            tables[table.name] = merged(tables[table.name], table) if table.name in tables else table
        facts: dict[str, dict[bytes, list[Fact]]] = {name: {} for name in tables}

        def add(name: str, fact: Fact) -> None:
            facts[name].setdefault(encoded_key(tables[name], fact.row), []).append(fact)

        for transaction in transactions:
            for name, fact in self._events(transaction, tables):
                add(name, fact)
        for number, checkpoint in enumerate(checkpoints):  # of the first one the lowest level is the base

            def lies_over(header: Any, level: int, number: int = number) -> bool:
                return (number > 0 or level > 0) and (classes is None or getattr(header, "class") != SUPERSEDED)

            for name, fact in self._checkpoint_facts(checkpoint, tables, lies_over):
                add(name, fact)
        wanted = needed(facts, classes)  # everything that lies over the base is there
        for first in [*checkpoints][:1]:
            for name, fact in self._checkpoint_facts(first, tables, lambda header, level: not level and wanted(header)):
                add(name, fact)
        return tables, facts

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
            for fact in facts_of_block(header, rows, tables[header.table], transaction):
                yield header.table, fact

    def _checkpoint_facts(
        self, checkpoint: Any, tables: dict[str, Table], wanted: Callable[[Any, int], bool] = lambda *_: True
    ) -> Iterator[tuple[str, Fact]]:
        """The rows of a checkpoint. ``wanted`` is asked with a block's header and its level."""
        for header, run, rows in checkpoint_blocks(self.root, self.database, checkpoint):
            assert "runs" in checkpoint.required_features or not run.level
            if run.purpose in (0, ROWS) and wanted(header, run.level):
                for fact in facts_of_block(header, rows, tables[header.table]):
                    yield header.table, fact

    def orders(self, ref: Ref) -> dict[tuple[str, str], tuple[list[bytes], list[bytes]]]:
        """For each kept order of a checkpoint its keys, and those that the tombstones of level 0 make (spec/segments.md)."""
        checkpoint = self.checkpoints[ref]
        tables, _ = self._facts([], [checkpoint])
        said: dict[tuple[str, str], list[bytes]] = {}
        shapes: dict[tuple[str, str], Table] = {}
        for header, run, rows in checkpoint_blocks(self.root, self.database, checkpoint):
            if run.purpose == ORDER:
                shape = shapes.setdefault((run.table, run.name), order_table(tables[run.table], run.name))
                keys = [encoded_key(shape, fact.row) for fact in facts_of_block(header, rows, shape)]
                said.setdefault((run.table, run.name), []).extend(keys)
        wanted = (ENDED, SUPERSEDED)
        ended = self._checkpoint_facts(checkpoint, tables, lambda header, level: not level and getattr(header, "class") in wanted)
        made: dict[tuple[str, str], list[bytes]] = {name: [] for name in said}
        for table, fact in ended:
            assert fact.end is not None
            for name in (name for name in said if name[0] == table):
                made[name].append(encoded_key(shapes[name], {**fact.row, END: fact.end[0]}))
        return {name: (sorted(keys), sorted(made[name])) for name, keys in said.items()}


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
