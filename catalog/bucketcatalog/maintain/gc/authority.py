"""Whose word counts of data in the catalog: that of the writer below whose prefix it lies, of compactors and of maintainers.

Anybody may commit a row that names anybody's file, and end it. For readers such rows are like any other. But nothing that another plain
writer says gets data deleted: an end of theirs does not count, and a row of theirs goes without its data.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...model.arrays import Mask, one_chunk
from ...model.facts import NO_STAMP, Facts
from ...model.names import COMPACTOR_PREFIX, MAINTAINER_PREFIX, NAME
from ...model.tables import DataType, Table

_IN_CATALOG = rf"^(?P<writer>{NAME})/{NAME}/data/."


def unheard(facts: Facts, table: Table) -> Mask:
    """Which versions name data in the catalog and were ended by who has no say in it, unless they had begun them too."""
    owners = _owners(facts, table)
    if owners is None:
        return np.zeros(len(facts), dtype=bool)
    ended_by, begun_by = _writers(facts, "_end_txn"), _writers(facts, "_txn")
    return _has_no_say(ended_by, owners) & ~_are_equal(ended_by, begun_by)


def of_others(facts: Facts, table: Table) -> Mask:
    """Which versions name data in the catalog that is not for who has begun them to give."""
    owners = _owners(facts, table)
    return np.zeros(len(facts), dtype=bool) if owners is None else _has_no_say(_writers(facts, "_txn"), owners)


def _owners(facts: Facts, table: Table) -> pa.Array | None:
    """Below whose prefix the data of each row lies, null where it does not lie in the catalog; None where that of no row can."""
    columns = [table.by_name[name] for name in table.data_reference]
    if [column.type for column in columns] != [DataType.STRING]:
        return None
    paths = one_chunk(facts.rows[columns[0].field_name])
    return pc.struct_field(pc.extract_regex(paths, _IN_CATALOG), "writer")


def _writers(facts: Facts, column: str) -> pa.Array:
    """Who has committed what stands in a column of stamps, null where nothing does."""
    at = facts.numbers(column, NO_STAMP)
    return one_chunk(facts.transactions["writer"]).take(pa.array(at, mask=at == NO_STAMP))


def _has_no_say(writers: pa.Array, owners: pa.Array) -> Mask:
    is_trusted = pc.or_(pc.starts_with(writers, COMPACTOR_PREFIX), pc.starts_with(writers, MAINTAINER_PREFIX))
    is_other = pc.and_(pc.not_equal(writers, owners), pc.invert(is_trusted))
    found: Mask = np.asarray(pc.fill_null(is_other, False))
    return found


def _are_equal(one: pa.Array, other: pa.Array) -> Mask:
    found: Mask = np.asarray(pc.fill_null(pc.equal(one, other), False))
    return found
