"""Deep verification: each checkpoint's state against the one that its transactions make, and what is kept beside it against its rows.

What a checkpoint is compared with starts from the newest checkpoint within it that was found right, so that each transaction is replayed
about once; the first is compared with a replay from the beginning. It goes by ranges of keys, so that memory does not grow with a table.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from ...errors import CorruptionError, IncompatibleTable, InvalidVersion, UnsupportedFormat
from ...format.checkpoints import Checkpoint
from ...format.losses import Held
from ...log.ancestry import version_view
from ...log.applications import latest_results
from ...log.entries import voids_of
from ...log.files import ChosenFiles, LogFiles
from ...log.tags import tags_of
from ...log.view import View
from ...model import paths
from ...model.cuts import Head
from ...model.facts import NO_TRANSACTIONS, Facts, concat
from ...model.keys import KeyRange
from ...parallel import in_order
from ...state import orders, sums
from ...state.contents import Contents
from ...state.overlay import Part
from ...state.read import empty_rows, read_slice
from ...state.tables import TableBase
from .comparing import differing_keys
from .findings import Finding


def differences(files: LogFiles, checkpoints: list[Checkpoint]) -> Iterator[Finding]:
    """What each checkpoint says that its transactions do not, where these and the checkpoint can all be read."""
    trusted: set[tuple[str, Head]] = set()
    trusting = ChosenFiles(files.store, files.database, trusted.__contains__)
    size = {c.uuid: sum(coverage.transactions for coverage in c.coverage.values()) for c in checkpoints}
    for checkpoint in sorted(checkpoints, key=lambda c: (size[c.uuid], c.uuid)):
        try:
            found = list(_compared(trusting, checkpoint))
        except (CorruptionError, UnsupportedFormat, InvalidVersion, IncompatibleTable):
            continue  # something of it cannot be read, which is a finding of its own
        if not found:
            trusted.add((checkpoint.writer, Head(checkpoint.revision, checkpoint.uuid)))
        yield from found


def _compared(files: LogFiles, checkpoint: Checkpoint) -> Iterator[Finding]:
    name = paths.checkpoint(checkpoint.writer, files.database, checkpoint.revision, checkpoint.uuid)
    view = version_view(files, checkpoint.cut, closed_reads=False)
    alone = View(files.database, checkpoint.cut, (checkpoint,), (), (), view.observed, voids=voids_of((), [checkpoint]))
    derived = Contents(files, view)
    stored = Contents(files, alone, derived.definitions)
    for table in sorted({*derived.names, *(run.table for s in checkpoint.segments for run in s.runs)}):
        keys = _differing(derived.base(table), stored.base(table))
        if len(keys):
            text = f"Its state of table {table} differs from what its transactions say, in {len(keys)} keys."
            held = Held(table, len(keys), keys[0].as_py(), keys[-1].as_py()).shown_by(derived.table(table))
            yield Finding("DIFFERENT_STATE", name, text, (held,))
        yield from _beside(stored.base(table), name)
    for what, is_same in (
        ("tags", tags_of(view) == tags_of(alone)),
        ("voids", view.voids == alone.voids),
        ("results of applications", latest_results(view) == latest_results(alone)),
    ):
        if not is_same:
            yield Finding("DIFFERENT_STATE", name, f"Its {what} differ from what its transactions say.")


def _beside(base: TableBase, name: str) -> Iterator[Finding]:
    """What is kept beside the lowest level of a table and is not what its rows make."""
    table = base.table.name
    kept = [f"sum {total.name!r}" for total in base.table.sums if sums.differs(base, total)]
    kept += [f"order {order.name!r}" for order in base.table.orders if orders.differs(base, order)]
    for what in kept:
        yield Finding("DIFFERENT_STATE", name, f"Its {what} of table {table} is not what the rows of its lowest level make.")


def _differing(one: TableBase, other: TableBase) -> pa.Array:
    """The keys of which two bases of a table say different things, range by range."""
    starts = sorted({b"", *(piece.keys.start for base in (one, other) for piece in base.plan())})
    ranges = [KeyRange(start, stop) for start, stop in zip(starts, [*starts[1:], None], strict=True)]
    found = list(in_order(partial(_differing_within, one, other), ranges))
    return pa.concat_arrays(found)


def _differing_within(one: TableBase, other: TableBase, keys: KeyRange) -> pa.Array:
    return differing_keys(_state(one, keys), _state(other, keys), one.table)


def _state(base: TableBase, keys: KeyRange) -> Facts:
    plan = base.plan([keys], target=sys.maxsize)
    pieces = [read_slice(base.blocks, base.table, piece, Part.EVERYTHING) for piece in plan]
    return concat(pieces) if pieces else Facts(NO_TRANSACTIONS, empty_rows(base.table))
