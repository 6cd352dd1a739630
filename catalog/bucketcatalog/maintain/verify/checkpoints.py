"""Checkpoints and what they refer to: each file for itself, each block against its header, and all against the names that there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import UNREADABLE, BucketCatalogError
from ...format.authority import Definitions
from ...format.blocks import block_header
from ...format.checkpoints import Checkpoint, Coverage
from ...format.columns import are_facts
from ...format.headers import BlockClass, BlockPlace, Side
from ...format.held import Held, held_in_block, held_in_segment, revision
from ...format.runs import Run, SegmentReference, run_of
from ...format.sealing import RUNS
from ...log.blocks import read_block
from ...log.coverage import is_partial
from ...log.files import LogFiles
from ...log.segments import read_index_and_filters, read_segment_file
from ...log.trust import is_trusted
from ...log.witnesses import definitions_within
from ...model import paths
from ...model.arrays import Mask, one_chunk
from ...model.cuts import Ref
from ...model.facts import Facts, Kind
from ...model.keys import encode_keys, shown_key
from ...model.paths import FileKind
from ...model.tables import Table, split_side
from ...parallel import in_order
from ...state.indexes import block_run
from ...state.side_runs import shape_of_blocks
from ...store.base import Store
from .files import WriterFiles
from .findings import Finding, unreadable


def check_block(store: Store, place: BlockPlace, definitions: Definitions) -> Iterator[Finding]:
    """Read a block and compare its rows with what its header says of them."""
    name, held = place.header.table, held_in_block(place.header)
    owner, side = split_side(name)
    if owner not in definitions:
        yield Finding("UNDEFINED_TABLE", place.name, f"It holds rows of table {name!r}, which nothing defines.", (held,))
        return
    if definitions.contradiction(owner) is not None:
        return  # which is a finding of its own
    table = definitions[owner] if side is None else shape_of_blocks(definitions[owner], name)
    if table is None:
        return  # of a side run that nobody declares any more, and nobody reads
    held = held_in_block(place.header, table)
    try:
        facts = read_block(store, place, table, whole=True)
        problems = list(_problems_of_block(facts, place, table, stamped=are_facts(table, place.header.block_class)))
    except UNREADABLE as error:
        yield unreadable(error, "BLOCK", place.name, held)
        return
    except (BucketCatalogError, pa.ArrowException, ValueError, IndexError) as error:
        yield Finding("WRONG_BLOCK", place.name, f"Its rows are none of table {table.name!r}: {error}.", (held,))
        return
    for problem in problems:
        yield Finding("WRONG_BLOCK", place.name, f"A block {problem}.", (held,))


def check_blocks(files: LogFiles, checkpoint: Checkpoint) -> Iterator[Finding]:
    """What is wrong with the segments of a checkpoint, read whole."""
    definitions = definitions_within(checkpoint)
    for reference in checkpoint.segments:
        try:
            places, _ = read_index_and_filters(files.store, files.database, reference)
        except UNREADABLE as error:
            name = paths.segment(reference.writer, files.database, reference.uuid)
            yield unreadable(error, "SEGMENT", name, *held_in_segment(reference))
        else:
            for place in places:
                yield from check_block(files.store, place, definitions)
    for inline in checkpoint.inline:
        for place in inline.blocks:
            yield from check_block(files.store, place, definitions)


def _problems_of_block(facts: Facts, place: BlockPlace, table: Table, *, stamped: bool) -> Iterator[str]:
    """What a block's rows are that they should not be, each as the end of a sentence about the block. ``stamped``: they have stamps."""
    said = place.header
    found = block_header(facts, table, said.block_class)
    for name in ("rows", "first_key", "last_key", "oldest", "newest", "expectations", "late_updates"):
        is_, should = getattr(found, name), getattr(said, name)
        if is_ != should:
            show = partial(shown_key, table) if name.endswith("_key") else repr
            yield f"says {name} {show(should)} in its header and holds {show(is_)}"
    keys = one_chunk(encode_keys(table, facts.rows))
    if len(keys) > 1:
        if pc.any(pc.less(keys[1:], keys[:-1])).as_py():
            yield "has rows that are not in the order of their keys"
        elif stamped and (_out_of_order(facts, said.block_class) & np.asarray(pc.equal(keys[1:], keys[:-1]))).any():
            yield "has rows of one key that are not in the order of their stamps"
    others = _others(facts, said.block_class)
    if others.any():
        yield f"of class {said.block_class.name.lower()} has {int(others.sum())} rows that are not"


def _out_of_order(facts: Facts, block_class: BlockClass) -> Mask:
    """For each row but the first whether it should not come after the one before it, were they of one key."""
    if block_class is BlockClass.EVENTS:
        return np.zeros(len(facts) - 1, dtype=bool)  # numbers of events without a stamp of their own stand elsewhere
    named = facts.numbers("_kind") == Kind.NAMED
    stamps = facts.stamps()
    wrong: Mask = (named[:-1] & ~named[1:]) | (~named[:-1] & ~named[1:] & (stamps[:-1] >= stamps[1:]))
    return wrong


def _others(facts: Facts, block_class: BlockClass) -> Mask:
    """Which rows do not belong to the class."""
    if block_class is BlockClass.EVENTS:
        return np.zeros(len(facts), dtype=bool)
    is_version = facts.numbers("_kind") == Kind.VERSION
    ended = facts.numbers("_end_kind") > 0
    purged = ended & (facts.numbers("_purged") > 0)
    belongs: Mask = {
        BlockClass.LIVE: is_version & ~ended,
        BlockClass.ENDED: is_version & ended & ~purged,
        BlockClass.SUPERSEDED: is_version & ended & ~purged,
        BlockClass.STUBS: ~is_version | purged,
    }[block_class]
    return ~belongs


def read_checkpoints(files: LogFiles, refs: Sequence[Ref]) -> Iterator[Checkpoint | Finding]:
    """Every one of these checkpoints that can be read, and a finding for each that cannot."""

    def read(ref: Ref) -> Checkpoint | Finding:
        try:
            return files.checkpoint(*ref)
        except UNREADABLE as error:
            name = paths.checkpoint(ref.writer, files.database, ref.head)
            return unreadable(error, "CHECKPOINT", name, Held(writer=ref.writer, last_revision=ref.head.revision))

    return in_order(read, refs, threads=files.concurrency)


def forged(checkpoint: Checkpoint, name: str, why: str) -> Finding:
    """The finding of a checkpoint that counts for nobody, for this reason."""
    return Finding("FORGED_CHECKPOINT", name, f"{why}: so it counts for nobody.")


def check_checkpoint(checkpoint: Checkpoint, name: str, *, stands_alone: bool) -> Iterator[Finding]:
    """Whether a checkpoint agrees with itself; where one that ``stands_alone``, as one that is kept for a tag, lies says nothing."""
    held = tuple(revision(w, h.revision, 0) for w, h in checkpoint.cut.refs())
    for problem in _problems_of_checkpoint(checkpoint, stands_alone=stands_alone):
        yield Finding("WRONG_CHECKPOINT", name, f"{problem}.", held)
    if checkpoint.ignored:
        text = f"It has {' and '.join(checkpoint.ignored)} that do not count from {checkpoint.writer!r}."
        yield Finding("IGNORED_FIELDS", name, text)


def _problems_of_checkpoint(checkpoint: Checkpoint, *, stands_alone: bool) -> Iterator[str]:
    cut, voided = checkpoint.cut, {void.ref for void in checkpoint.voids}
    times = [head.commit_time for writer, head in cut.refs() if (writer, head) not in voided]
    newest = max(times, default=0)
    if checkpoint.as_of < newest or (checkpoint.as_of != newest and not voided):
        yield "Its uuid has another time than the newest transaction that it covers"
    if set(checkpoint.coverage) != set(cut.heads):
        yield "It does not say how it covers each writer in its cut"
    if not stands_alone and checkpoint.revision > cut.newest_revision(checkpoint.writer):
        yield "It lies beside a transaction that it does not cover"
    for writer, coverage in sorted(checkpoint.coverage.items()):
        yield from _of_coverage(writer, coverage, cut.newest_revision(writer))
        most = cut.newest_revision(writer) + 1 - coverage.first_revision + len(coverage.branches | coverage.recent)
        if (
            not is_trusted(checkpoint.writer) and coverage.transactions > most
        ):  # in a clone nobody knows which branches there were
            yield f"It says that it covers {coverage.transactions} transactions of {writer}, and there can be {most} at most"
    if any(run.level for run in checkpoint.runs) and RUNS not in checkpoint.features:
        yield f"It has levels and does not require the feature {RUNS!r}"
    for inline in checkpoint.inline:
        if not _is_described(inline.run, inline.blocks):
            yield f"Its {inline.run.block_class.name.lower()} rows of {inline.run.table} are not those that their blocks hold"
    yield from _of_totals(checkpoint)


def _of_coverage(writer: str, coverage: Coverage, newest: int) -> Iterator[str]:
    if any(not coverage.list_from <= head.revision <= newest for head in coverage.recent):
        yield f"Of {writer} it names recent transactions that are not between {coverage.list_from} and {newest}"
    if any(head.revision >= coverage.list_from for head in coverage.branches):
        yield f"Of {writer} it names branches at or after revision {coverage.list_from}"
    if coverage.list_from > newest + 1:
        yield f"Of {writer} it lists from revision {coverage.list_from}, behind all that it covers"


def _of_totals(checkpoint: Checkpoint) -> Iterator[str]:
    defined = {definition.table.name for definition in checkpoint.definitions}
    rows: Counter[str] = Counter()
    for run in checkpoint.runs:
        if run.is_of_rows:
            rows[run.table] += run.rows
    for table, totals in checkpoint.totals.items():
        if rows.pop(table, 0) != totals.live + totals.tombstones + totals.stubs:
            yield f"Its totals of table {table!r} are not those of its runs"
    for table in sorted(rows):
        yield f"It has rows of table {table!r} and no totals of it"
    # One that begins behind a horizon leaves to that what was defined before.
    undefined = {run.table for run in checkpoint.runs} - defined if not is_partial(checkpoint) else ()
    for table in sorted(undefined):
        yield f"It has rows of table {table!r}, which it does not define"


@dataclass
class References:
    """A segment as those who refer to it describe it, and who they are; its level may differ among them."""

    by: list[str] = field(default_factory=list)
    described: list[SegmentReference] = field(default_factory=list)


def check_segment(
    files: LogFiles, references: References, found: Mapping[str, WriterFiles]
) -> tuple[list[BlockPlace], list[Finding]]:
    """The blocks of a segment that have to be read, and what is wrong with its index or with those who refer to it."""
    reference = references.described[0]
    name = paths.segment(reference.writer, files.database, reference.uuid)
    held = held_in_segment(reference)
    info = found[reference.writer].segments.get(reference.uuid) if reference.writer in found else None
    if info is None:
        return [], [Finding("MISSING_SEGMENT", name, f"It is gone; {references.by[0]} refers to it.", held)]
    known = {said: _index(files, said) for said in map(_said, references.described)}
    places = next((read for read in known.values() if isinstance(read, tuple)), None) or _own_index(files, reference, info.size)
    if places is None:
        error = known[_said(reference)]
        assert isinstance(error, BucketCatalogError)
        return [], [unreadable(error, "SEGMENT", name, *held)]
    wrong = []
    for by, described in zip(references.by, references.described, strict=True):
        error = known[_said(described)]
        if isinstance(error, BucketCatalogError):
            code = "WRONG_CHECKPOINT" if paths.kind_of(by) is FileKind.CHECKPOINT else "DAMAGED_EVENTS"
            wrong.append(Finding(code, by, f"What it says of {name} is not so.", held_in_segment(described)))
    sizes = {said.size for said, read in known.items() if isinstance(read, tuple)} or {info.size}
    if info.size not in sizes:
        wrong.append(Finding("DAMAGED_SEGMENT", name, f"It has {info.size} bytes and should have {min(sizes)}.", held))
    only_of = next((described.only_of for described in references.described if described.only_of), "")
    return [replace(place, only_of=only_of) for place in places], wrong


def _said(reference: SegmentReference) -> SegmentReference:
    """What a reference says of the segment itself."""
    return reference.at_level(0)


def _index(files: LogFiles, reference: SegmentReference) -> tuple[BlockPlace, ...] | BucketCatalogError:
    """The blocks of a segment as a reference describes it, or why that cannot be."""
    try:
        places, _ = read_index_and_filters(files.store, files.database, reference)
        block_run(reference.run, places)
    except UNREADABLE as error:
        return error
    return places


def _own_index(files: LogFiles, reference: SegmentReference, size: int) -> tuple[BlockPlace, ...] | None:
    """The blocks of a segment that is the one that was referred to and holds another run than was said; None where it is damaged."""
    try:
        own = read_segment_file(files.store, paths.segment(reference.writer, files.database, reference.uuid), size).reference
    except UNREADABLE:
        return None
    places = _index(files, replace(reference, run=own.run)) if own.index_digest == reference.index_digest else None
    return places if isinstance(places, tuple) else None


def _is_described(run: Run, places: Sequence[BlockPlace]) -> bool:
    """Whether a run is what the headers of its blocks come to, its level aside."""
    side = Side(run.table, run.purpose, run.name)
    return bool(places) and run_of([place.header for place in places], side) == replace(run, level=0)
