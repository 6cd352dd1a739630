"""What is missing of a snapshot: everything that it is made from, read and checked."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from ..errors import UNREADABLE, SetAsideError, UnknownTable
from ..format.headers import BlockPlace
from ..format.held import Held, held_in_block, held_in_segment, revision
from ..format.losses import Loss, Losses
from ..format.runs import SegmentReference
from ..log.aside import set_aside
from ..log.blocks import read_block
from ..log.coverage import Covered
from ..log.segments import read_index
from ..model import paths
from ..model.times import shown_time
from ..parallel import in_order
from ..state.contents import Contents
from ..wording import how_to_take_in

DAMAGE = pa.schema(
    [
        pa.field("file", pa.string(), False),
        pa.field("code", pa.string(), False),
        pa.field("message", pa.string(), False),
        pa.field("table", pa.string()),
        pa.field("rows", pa.int64()),
        pa.field("first_key", pa.binary()),
        pa.field("last_key", pa.binary()),
        pa.field("writer", pa.string()),
        pa.field("first_revision", pa.int64()),
        pa.field("last_revision", pa.int64()),
    ]
)


def damage(contents: Contents) -> pa.Table:
    """Every file or block of the contents that cannot be read, a row for each thing that it held, with the columns of ``DAMAGE``."""
    losses = Losses()
    for _ in in_order(lambda place: _read(contents, place, losses), list(_places(contents, losses))):
        pass
    _add_set_aside(contents, losses)
    found = {(loss.file, loss.held): loss for loss in (*contents.files.on_damage.found, *losses.found)}
    rows = [_row(loss, held) for loss in found.values() for held in loss.held or (None,)]
    return pa.Table.from_pylist(rows, schema=DAMAGE)


def _add_set_aside(contents: Contents, losses: Losses) -> None:
    """What is set aside of the contents's cut."""
    covered, tail = Covered(contents.files, contents.view.checkpoints, contents.view.horizon), {t.ref for t in contents.view.tail}
    for ref in sorted(set_aside(contents.view.asides.values())):
        if ref in tail or covered.holds(*ref):
            time, maintainer, *_ = contents.view.asides[ref].stamp
            name = paths.transaction(ref.writer, contents.database, ref.head)
            text = f"{name} was set aside by {maintainer!r} at {shown_time(time)}: it counts as a transaction without events."
            error = SetAsideError(text, next_step=f"Once it is whole again take it in: {how_to_take_in(name)}.")
            losses.add(name, error, [revision(ref.writer, ref.head.revision)])


def _places(contents: Contents, losses: Losses) -> Iterator[BlockPlace]:
    """Every block of the contents whose index can be read."""
    references: dict[tuple[str, bytes], SegmentReference] = {}
    for checkpoint in contents.view.checkpoints:
        references |= {segment.place: segment for segment in checkpoint.segments if segment.run.is_of_rows}
        yield from (place for inline in checkpoint.inline if inline.run.is_of_rows for place in inline.blocks)
    for transaction in contents.view.tail:
        yield from transaction.blocks
        references |= {segment.place: segment for segment in transaction.segments}
    for reference in references.values():
        try:
            yield from read_index(contents.files.store, contents.database, reference)
        except UNREADABLE as error:
            name = paths.segment(reference.writer, contents.database, reference.uuid)
            losses.add(name, error, held_in_segment(reference))


def _read(contents: Contents, place: BlockPlace, losses: Losses) -> None:
    name = place.header.table
    if name not in contents.definitions:
        error = UnknownTable(f"{place.name} holds rows of table {name!r}, which nothing defines.")
        losses.add(place.name, error, [held_in_block(place.header)])
        return
    if contents.definitions.contradiction(name) is not None:
        return
    table = contents.table(name)
    try:
        read_block(contents.files.store, place, table)
    except UNREADABLE as error:
        losses.add(place.name, error, [held_in_block(place.header, table)])


def _row(loss: Loss, held: Held | None) -> dict[str, object]:
    row: dict[str, object] = {"file": loss.file, "code": loss.code, "message": loss.message}
    if held is not None and held.table is not None:
        row |= {"table": held.table, "rows": held.rows, "first_key": held.first_key, "last_key": held.last_key}
    elif held is not None:
        row |= {"writer": held.writer, "first_revision": held.first_revision, "last_revision": held.last_revision}
    return row
