"""Which version an update, a delete or a purge is about: named by ``_version``, or the live one with the row's id.

======  =================  ========================  ===================================================
kind    with ``_version``  with an id alone          with neither
======  =================  ========================  ===================================================
PUT     (it names none)
UPDATE  that version       the live one, or refused  refused; of a table without ids the key's live one
DELETE  that version       the live one, or nothing  whatever is live when it comes to that
PURGE   that version       refused                   refused
======  =================  ========================  ===================================================
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidRows
from ..model.arrays import Mask, Positions, one_chunk
from ..model.events import EventKind
from ..model.facts import EventNames
from ..model.keys import encode_keys
from ..model.tables import Table
from ..query.snapshot import Snapshot
from ..state.plan import Part
from .given import Given
from .intake import VERSION_COLUMN, nameless
from .staging import StagedEvents


class Targets:
    """Resolves what the rows of one call mean; looks at the catalog only where an id has to be found."""

    def __init__(self, table: Table, kind: EventKind, look: Callable[[], Snapshot], own: StagedEvents) -> None:
        self._table = table
        self._kind = kind
        self._look = look
        self._own = own

    def of(self, given: Given) -> Given:
        """The rows that are events at all, with the versions that they mean; ``InvalidRows`` where one has to mean one and does not."""
        if self._kind is EventKind.PUT:
            return given
        by_version, by_id = given.by_version, given.by_id
        self._refuse_nameless(by_version, by_id)
        if self._kind is EventKind.PURGE:
            return given
        searched = np.flatnonzero(by_id if self._kind is EventKind.DELETE else ~by_version)
        if not len(searched):
            return given
        found, fits = self._live(given, searched)
        kept = np.ones(len(given), dtype=bool)
        kept[searched] = fits
        return given.meaning(found, searched, kept)

    def _refuse_nameless(self, by_version: Mask, by_id: Mask) -> None:
        is_update = self._kind is EventKind.UPDATE
        if self._kind is EventKind.DELETE or (is_update and self._table.id is None):
            return
        says = by_version | by_id if is_update else by_version
        if not says.all():
            raise nameless(self._table, int(np.argmin(says)), by_id=is_update)

    def _live(self, given: Given, searched: Positions) -> tuple[EventNames, Mask]:
        """The live versions of the keys of these rows, and which of the rows mean what is live.

        What the transaction has put itself has no name yet; it is ended by its key.
        """
        rows = pa.array(searched)
        keys = given.keys.take(rows)
        facts = self._look().find_of(self._table, keys, Part.LIVE)
        at = pc.index_in(keys, value_set=one_chunk(encode_keys(self._table, facts.rows)))
        fits = at.is_valid()
        wanted = None
        if self._table.id is not None and given.ids is not None:
            wanted = given.ids.take(rows)
            fits = pc.and_(fits, _same(facts.meant_column(self._table.by_name[self._table.id]).take(at), wanted))
        left = self._own.left(self._table, keys)
        if left is not None:
            just_now = pc.index(left.live, True).as_py()
            if just_now >= 0 and self._kind is EventKind.UPDATE:
                raise self._put_just_now(searched[just_now])
            at = pc.if_else(left.touched, pa.scalar(None, at.type), at)
            again = left.live if wanted is None else pc.and_(left.live, _same(left.ids, wanted))
            fits = pc.if_else(left.touched, again, fits)
        missing = pc.index(fits, False).as_py()
        if missing >= 0 and self._kind is EventKind.UPDATE:
            raise self._not_live(searched[missing])
        return facts.own_names().take(at), np.asarray(fits)

    def _put_just_now(self, number: int) -> InvalidRows:
        return InvalidRows(
            f"Row {number} for table {self._table.name!r} updates what this very transaction puts.",
            next_step="Put the whole row instead.",
        )

    def _not_live(self, number: int) -> InvalidRows:
        return InvalidRows(
            f"Row {number} for table {self._table.name!r} names no live version by its {self._table.id or 'key'}.",
            next_step=f"Read the row again and update what is live, or give its {VERSION_COLUMN}.",
        )


def _same(values: pa.Array, wanted: pa.Array) -> pa.Array:
    """Where two storage arrays hold the same value, and not where one holds none."""
    return pc.fill_null(pc.equal(values.cast(wanted.type), wanted), False)
