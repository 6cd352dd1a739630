"""Judging: which versions collection may forget, and whose data is needed. A pure function of the state's rows.

A version is a *candidate* if it ended at or before the table's limit, is not purged, and no tag has it live. It *needs* its data if it is
live, ended later, is pinned by a tag, or belongs to somebody else (an external parent's); whether it is purged makes no difference, for
whoever purged it by hand has not waited. Data that some candidate names and nothing needs is garbage.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from ...model.facts import Facts, Kind
from .pins import Mask, Pins

FACT_NAMES = ("_kind", "_txn", "_seq", "_end_txn", "_end_seq", "_end_kind", "_purged")
"""What is read of a version beside the columns of its row."""


@dataclass(frozen=True, slots=True)
class Judged:
    """For each row of some state whether it is a candidate, whether it needs its data, and whether a tag alone keeps it."""

    candidates: Mask
    needs: Mask
    pinned: Mask


def judge(facts: Facts, *, limit: int, pins: Pins, external: Mask) -> Judged:
    """Judge the rows of a state; ``limit`` is in microseconds, ``external`` says which rows have an external parent."""
    versions: Mask = facts.numbers("_kind") == Kind.VERSION
    old = versions & (facts.numbers("_end_kind") > 0) & (facts.end_times() <= limit)
    tagged = versions & old & pins.live(facts)
    there = old & (facts.numbers("_purged") == 0)
    return Judged(there & ~tagged, versions & (~old | tagged | external), there & tagged)


def masked(values: pa.Array, mask: Mask) -> pa.Array:
    """The values where the mask is true, without nulls, each once."""
    return values.filter(pa.array(mask)).drop_null().unique()
