"""A compactor that knows docs/spec alone: the fold of what a reader has as a checkpoint (spec/fold.md, spec/checkpoints.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from .answer import pins_of, tag_entries, tags_of
from .cuts import Ref, heads_of
from .facts import BLIND, BY_BLIND, BY_NAMED, BY_PUT, NAMED, VERSION, Fact
from .fold import Version, comes_after, fold
from .reader import SpecReader
from .sealing import message
from .segments import ENDED, LIVE, STUBS, SUPERSEDED
from .stamps import Name, Stamp, name_of, stamp_of
from .tables import Column, Table, counting, definers_of, digest, witnesses_of, zero
from .writing import USUAL, Style, inline_run, new_transaction, put_checkpoint, put_segment, put_transaction, uuid_at


def compact(reader: SpecReader, writer: str, style: Style = USUAL) -> Ref:
    """Write a checkpoint of all that the reader has, beside a transaction of ``writer`` that has read it; gives where it lies."""
    note = _noted(reader, writer)
    transactions = sorted(reader.transactions.values(), key=stamp_of)
    heads = heads_of(reader.transactions)
    cut = message("Cut")()
    checkpoint = message("Checkpoint")(
        format_version=1,
        writer=writer,
        database=reader.database,
        revision=note.revision,
        uuid=uuid_at(note.commit_time, len(reader.checkpoints) + 1),
        created=note.commit_time,
        lateness_bound=max(t.lateness_bound for t in transactions),
        required_features=["runs"] if style.levels > 1 else [],
    )
    for name in sorted({t.writer for t in transactions}):
        own = sorted(ref for ref in reader.transactions if ref[0] == name)
        recent = [message("Head")(revision=revision, uuid=uuid) for _, revision, uuid in own]
        cut.writers.add(writer=name, heads=[h for h, ref in zip(recent, own, strict=True) if ref in heads])
        newest = max(reader.transactions[ref].commit_time for ref in own)
        checkpoint.coverage.add(writer=name, list_from=0, newest_commit_time=newest, transactions=len(own), recent=recent)
    checkpoint.cut.CopyFrom(cut)
    checkpoint.tables.extend(_definitions(transactions))
    checkpoint.applications.extend(_results(reader))
    checkpoint.tags.extend(_tags(transactions))
    checkpoint.pins.extend(_pins(transactions))
    checkpoint.required_features.extend(["pins"] if checkpoint.pins else [])
    checkpoint.witnessed.extend(_witnessed(transactions))
    parts = [transactions[at :: style.levels] for at in range(style.levels)]
    totals: dict[str, list[int]] = {}
    for level, part in enumerate(parts):
        tables, facts = reader.facts(part, transactions)
        for table in (tables[name] for name in sorted(tables)):
            for block_class, rows in _classes(table, facts[table.name], style):
                if style.inline:
                    checkpoint.runs.append(inline_run(table, block_class, rows, level, style))
                else:
                    index = message("SegmentIndex")(format_version=1, writer=writer, database=reader.database, cut=cut)
                    index.uuid = uuid_at(note.commit_time, (len(reader.checkpoints) + 1) << 8 | len(checkpoint.segments))
                    index.tables.extend(d for d in checkpoint.tables if d.name == table.name)
                    reference = put_segment(reader.root, index, table, block_class, rows, level=level, style=style)
                    checkpoint.segments.append(reference)
                kind = {LIVE: 0, ENDED: 1, SUPERSEDED: 1, STUBS: 2}[block_class]
                totals.setdefault(table.name, [0, 0, 0])[kind] += len(rows)
    for name, (live, tombstones, stubs) in sorted(totals.items()):
        checkpoint.totals.add(table=name, live=live, tombstones=tombstones, stubs=stubs)
    put_checkpoint(reader.root, checkpoint)
    return writer, note.revision, checkpoint.uuid


def _noted(reader: SpecReader, writer: str) -> Any:
    """A transaction without events that has read everything (spec/writing.md), added to what the reader has."""
    heads = heads_of(reader.transactions)
    own = [ref for ref in heads if ref[0] == writer]
    time = max(t.commit_time for t in reader.transactions.values()) + 1
    note = new_transaction(writer, max((ref[1] for ref in own), default=-1) + 1, time)
    for ref in own:
        note.parents.add(writer=writer, revision=ref[1], uuid=ref[2], digest=reader.transactions[ref].checksum)
    for name in sorted({ref[0] for ref in heads} - {writer}):
        latest = [message("Head")(revision=revision, uuid=uuid) for other, revision, uuid in heads if other == name]
        note.reads.add(writer=name, heads=latest)
    note.witnessed.extend(_unwitnessed(reader))
    put_transaction(reader.root, note)
    reader.transactions[writer, note.revision, note.uuid] = note
    return note


def _definitions(transactions: Iterable[Any]) -> Iterator[Any]:
    """Each definition once, with who has made it and when (spec/tables.md)."""
    for definitions in definers_of(transactions).values():
        for serialized, definers in definitions.items():
            known = message("TableDefinition").FromString(serialized)
            known.defined_by.CopyFrom(_stamp(max(latest for _, latest, _, _ in definers)))
            for first, latest, _, declared in definers:
                said = _stamp(latest) if latest != first else None
                known.definers.add(first=_stamp(first), latest=said, declared=declared)
            yield known


def _unwitnessed(reader: SpecReader) -> Iterator[Any]:
    """The definitions of which nobody has said yet that it had read them (spec/tables.md)."""
    transactions = list(reader.transactions.values())
    said = {(table, definition) for *_, table, definition in counting(witnesses_of(transactions), reader.asides)}
    for table, definitions in sorted(definers_of(transactions).items()):
        for one, definers in definitions.items():
            if (table, digest(one)) not in said:
                first = min(first for first, *_ in definers)
                yield message("Witness")(table=table, definition=digest(one), defined_by=_stamp(first))


def _witnessed(transactions: Iterable[Any]) -> Iterator[Any]:
    """Of each definition and transaction that carries it what was said first (spec/tables.md)."""
    found = set[tuple[Any, ...]]()
    for said_by, carrier, table, definition in witnesses_of(transactions):
        if (key := (table, definition, carrier)) not in found:
            found.add(key)
            yield message("Witness")(table=table, definition=definition, defined_by=_stamp(carrier), carried_by=_stamp(said_by))


def _results(reader: SpecReader) -> Iterator[Any]:
    """The last version of each application of each writer (spec/transactions.md)."""
    latest: dict[tuple[str, str], Any] = {}
    for transaction in sorted(reader.transactions.values(), key=lambda t: t.revision):
        if transaction.HasField("application"):
            latest[transaction.writer, transaction.application.id] = transaction
    for (writer, name), t in sorted(latest.items()):
        link = message("TransactionLink")(revision=t.revision, uuid=t.uuid, digest=t.checksum)
        version = t.application.version
        yield message("ApplicationResult")(writer=writer, id=name, version=version, transaction=link, commit_time=t.commit_time)


def _tags(transactions: Iterable[Any]) -> Iterator[Any]:
    """Of each tag the entry that counts and the one that it replaced, in the order of their stamps (spec/tags.md)."""
    for latest, replaced in tags_of(tag_entries(transactions)):
        for stamp, entry in (*([replaced] if replaced else []), latest):
            said = type(entry).FromString(entry.SerializeToString())
            said.carried_by.CopyFrom(_stamp(stamp))
            yield said


def _pins(transactions: Iterable[Any]) -> Iterator[Any]:
    """Of each pin of each writer the entry that counts (spec/pins.md)."""
    for stamp, entry in pins_of(transactions):
        said = type(entry).FromString(entry.SerializeToString())
        said.carried_by.CopyFrom(_stamp(stamp))
        yield said


def _stamp(stamp: tuple[Any, ...]) -> Any:
    return message("TransactionStamp")(**dict(zip(("commit_time", "writer", "revision", "uuid"), stamp, strict=True)))


def _classes(table: Table, facts: dict[bytes, list[Fact]], style: Style) -> Iterator[tuple[int, list[Fact]]]:
    """The folded facts of a table by class, in their order (spec/segments.md)."""
    found: dict[int, list[Fact]] = {LIVE: [], ENDED: [], SUPERSEDED: [], STUBS: []}
    for _, about in sorted(facts.items()):
        folded = list(folded_facts(about, table))
        is_live = any(fact.kind == VERSION and fact.end is None for fact in folded)
        for fact in folded:
            if fact.kind != VERSION or (fact.end is not None and fact.purged):
                found[STUBS].append(fact)
            elif fact.end is None:
                found[LIVE].append(fact)
            else:
                found[SUPERSEDED if is_live and style.superseded else ENDED].append(fact)
    for block_class, rows in found.items():
        if rows:
            yield block_class, [_styled(fact, style) for fact in rows]


def _styled(fact: Fact, style: Style) -> Fact:
    if fact.kind == VERSION and fact.row_stamp == fact.stamp and not style.own_row_stamps:
        return replace(fact, row_stamp=None)
    return fact


def folded_facts(facts: list[Fact], table: Table) -> Iterator[Fact]:
    """The fold of facts about one key as facts again, by stamp and names last (spec/fold.md, "Folded facts")."""
    state = fold(facts, table)
    known = {name_of(version.stamp) for version in state.versions}
    ends = {version.end for version in state.versions}
    key = {column.number: next(iter(facts)).row[column.number] for column in table.key}
    versions = [_version(version, facts, state.deletes, table) for version in state.versions]
    stubs = [Fact(BLIND, key, stamp=d, expects=expects) for d, expects in state.deletes.items() if d not in ends]
    yield from sorted((*versions, *stubs), key=lambda fact: fact.stamp or ())
    named: dict[Name, list[Fact]] = {}
    for fact in facts:
        if fact.kind == NAMED and fact.name is not None and fact.name not in known:
            named.setdefault(fact.name, []).append(fact)
    for name, about in named.items():
        rows = [f for f in about if f.row_stamp is not None and comes_after(f.row_stamp, name)]
        latest = max(rows, key=lambda f: f.row_stamp or (), default=None)
        effective = [f for f in about if f.end is not None and comes_after(f.end, name)]
        end = min(effective, key=lambda f: f.end or (), default=None)
        purged = any(f.purged for f in about)
        if latest is not None or end is not None or purged:
            yield Fact(
                NAMED,
                latest.row if latest is not None else key,
                name=name,
                row_stamp=latest.row_stamp if latest is not None else None,
                end=end.end if end is not None else None,
                end_kind=end.end_kind if end is not None else 0,
                purged=purged,
            )


def _with_zeros(columns: Iterable[Column], row: dict[int, Any]) -> dict[int, Any]:
    said = {column.number: _with_zeros_within(column, row[column.number]) for column in columns if column.number in row}
    return {column.number: zero(column) for column in columns if column.implicit} | said


def _with_zeros_within(column: Column, value: Any) -> Any:
    if column.type == "map":
        return [(key, _with_zeros_within(column.children[1], item)) for key, item in value]
    if column.type == "list":
        return [_with_zeros_within(column.children[0], item) for item in value]
    return _with_zeros(column.children, value) if column.type == "message" else value


def _version(version: Version, facts: list[Fact], deletes: dict[Stamp, Any], table: Table) -> Fact:
    row = version.row
    if version.purged and version.end is not None:
        row = {number: value for number, value in row.items() if number in table.fixed}
    else:  # spec/tables.md, "Columns": a fold has the times and zeros that stand for what is unset
        times = {
            c.number: version.stamp[0] if c.default == 1 else version.row_stamp[0] for c in table.columns if c.default in (1, 2)
        }
        row = times | _with_zeros(table.columns, row)
    kind = 0
    if version.end is not None:
        named = {f.end: f.end_kind for f in facts if f.end is not None and f.end_kind not in (BY_PUT, BY_BLIND)}
        kind = BY_BLIND if version.end in deletes else named.get(version.end, BY_PUT)
        assert kind >= BY_NAMED or version.end in deletes or kind == BY_PUT
    return Fact(
        VERSION,
        row,
        stamp=version.stamp,
        row_stamp=version.row_stamp,
        expects=version.expects,
        end=version.end,
        end_kind=kind,
        end_expects=deletes.get(version.end) if version.end is not None else None,
        purged=version.purged,
    )
