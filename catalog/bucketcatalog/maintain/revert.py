"""The events that make live rows what they were: the live rows of a range of keys then and now in, facts of events out.

A function of values, whole columns at a time. A key whose row is what it was gets no event, whichever version shows it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..model.arrays import Mask, Positions, one_chunk, same_values
from ..model.facts import FACT_COLUMNS, NO_STAMP, End, Expects, Facts, Kind, Stamps, sequences_of
from ..model.keys import encode_keys
from ..model.render import row_columns, version_names
from ..model.tables import Table

_NOTHING = -1


@dataclass(frozen=True)
class Reverted:
    """What becomes of a range of keys: positions in ``then`` of rows that are put or update, and in ``now`` of rows that are deleted.

    ``partner`` has for each row of ``then`` the position in ``now`` of the row with its key, or -1.
    """

    table: Table
    then: Facts
    now: Facts
    partner: Positions
    put: Positions
    update: Positions
    delete: Positions

    def __len__(self) -> int:
        return len(self.put) + len(self.update) + len(self.delete)

    @property
    def put_versions(self) -> pa.Array:
        """The names of the versions whose rows are put again."""
        return version_names(*self.then.event_names(self.then.stamps()[self.put]))

    def without_puts(self, mask: Mask) -> Reverted:
        """The same without those puts."""
        return replace(self, put=self.put[~mask])

    def events(self, first: int) -> pa.Table:
        """The events as facts in the order of their keys, numbered from ``first`` on."""
        rows = [_rows(self.then, self.table, np.concatenate([self.put, self.update])), _keys(self.now, self.table, self.delete)]
        changed = pa.concat_tables([part for part in rows if len(part)], promote_options="default")
        order = pc.sort_indices(one_chunk(encode_keys(self.table, changed)))
        number = np.empty(len(self), dtype=np.int32)
        number[np.asarray(order)] = np.arange(first, first + len(self), dtype=np.int32)
        for name, values in self._said(number).items():
            changed = changed.append_column(name, values)
        return changed.take(order)

    def _said(self, number: npt.NDArray[np.int32]) -> dict[str, pa.Array]:
        """The fact columns: PUTs, UPDATEs and DELETEs, in this order."""
        kinds = np.repeat([0, 1, 2], [len(self.put), len(self.update), len(self.delete)])
        puts, updates, deletes = kinds == 0, kinds == 1, kinds == 2
        named = pa.concat_arrays(
            [
                pa.nulls(len(self.put), FACT_COLUMNS["_name_uuid"]),
                self.then.event_names(self.then.stamps()[self.update])[0],
                self.now.event_names(self.now.stamps()[self.delete])[0],
            ]
        )
        sequences = sequences_of(np.concatenate([self.put, self.then.stamps()[self.update], self.now.stamps()[self.delete]]))
        partner = self.partner[self.put]
        found = self.now.stamps()[partner] if len(self.now) else partner
        expected = np.concatenate([np.where(partner == _NOTHING, NO_STAMP, found), np.full((~puts).sum(), NO_STAMP)])
        expects = np.where(puts, np.where(expected == NO_STAMP, Expects.ABSENT, Expects.VERSION), 0)
        uuids, expected_sequences = self.now.event_names(expected)
        return {
            "_kind": pa.array(np.where(puts, Kind.VERSION, Kind.NAMED), FACT_COLUMNS["_kind"]),
            "_seq": pa.array(number),
            "_name_uuid": named,
            "_name_seq": pa.array(sequences.astype(np.int32), mask=puts),
            "_row_seq": pa.array(number, mask=~updates),
            "_end_seq": pa.array(number, mask=~deletes),
            "_end_kind": pa.array(np.full(len(kinds), End.NAMED_DELETE), FACT_COLUMNS["_end_kind"], mask=~deletes),
            "_expects": pa.array(expects, FACT_COLUMNS["_expects"], mask=~puts),
            "_expects_uuid": uuids,
            "_expects_seq": expected_sequences,
        }


def reverted(then: Facts, now: Facts, table: Table) -> Reverted:
    """What has to happen for the live rows ``now`` to be those of ``then``; both hold one range of keys."""
    old_keys, new_keys = one_chunk(encode_keys(table, then.rows)), one_chunk(encode_keys(table, now.rows))
    partner = np.asarray(pc.fill_null(pc.index_in(old_keys, value_set=new_keys), _NOTHING)).astype(np.int64)
    there = np.flatnonzero(partner != _NOTHING)
    same_version = _same_event(then, then.stamps()[there], now, now.stamps()[partner[there]])
    same_row = _same_event(then, then.row_stamps()[there], now, now.row_stamps()[partner[there]])
    unsure = np.flatnonzero(~(same_version & same_row))
    differs = unsure[~_same_rows(then, there[unsure], now, partner[there[unsure]], table)]
    return Reverted(
        table=table,
        then=then,
        now=now,
        partner=partner,
        put=np.sort(np.concatenate([np.flatnonzero(partner == _NOTHING), there[differs[~same_version[differs]]]])),
        update=there[differs[same_version[differs]]],
        delete=np.flatnonzero(~np.asarray(pc.is_in(new_keys, value_set=old_keys))),
    )


def _same_event(then: Facts, old: Stamps, now: Facts, new: Stamps) -> Mask:
    (old_uuids, old_numbers), (new_uuids, new_numbers) = then.event_names(old), now.event_names(new)
    alike: Mask = same_values(old_uuids, new_uuids) & same_values(old_numbers, new_numbers)
    return alike


def _same_rows(then: Facts, old: Positions, now: Facts, new: Positions, table: Table) -> Mask:
    """Where two rows have the same values in every column."""
    mine, theirs = _rows(then, table, old), _rows(now, table, new)
    alike = np.ones(len(old), dtype=bool)
    for name in {*mine.column_names, *theirs.column_names}:
        kind = table.storage_schema.field(name).type
        columns = [
            one_chunk(rows.column(name)) if name in rows.column_names else pa.nulls(len(old), kind) for rows in (mine, theirs)
        ]
        alike &= same_values(*columns)
    return alike


def _rows(facts: Facts, table: Table, at: Positions) -> pa.Table:
    return pa.table(row_columns(facts.take(pa.array(at)), table))


def _keys(facts: Facts, table: Table, at: Positions) -> pa.Table:
    return facts.rows.select([column.field_name for column in table.key_columns]).take(pa.array(at))
