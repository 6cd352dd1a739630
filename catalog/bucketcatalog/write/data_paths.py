"""Data in the catalog: what rows of tables name whose references are paths, as a system may say of its own.

Such data lies below ``WRITER/DATABASE/data/``, whoever the writer is. Nothing else is deleted as data, so a row that names anything else
would stay for ever when it has ended: whoever puts one is told at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidRows
from ..model.names import NAME
from ..model.paths import data_prefix, is_data_of_a_catalog, is_of_a_log, writer_of
from ..model.tables import DataType, Table
from ..store.object_names import can_name
from .given import Given

_PART = "[A-Za-z0-9_=-][A-Za-z0-9._=-]*"
_OF_A_LOG = "/(transactions|newest|segments)/"
_FEW = 64
"""So many names are taken apart sooner than a pattern is made ready."""


def is_data_path(name: str, database: str) -> bool:
    """Whether a name is one of data in a database: it can name an object, below a writer's folder for data, which is no file of a log."""
    prefix = data_prefix(writer_of(name), database)
    return is_data_of_a_catalog(name) and name.startswith(prefix) and not is_of_a_log(name) and can_name(name)


def elsewhere(names: pa.Array, database: str) -> int:
    """The first of some names that is none of data in a database, nulls aside; -1 without one. What looks usual is not taken apart."""
    if len(names) <= _FEW:
        unusual: Iterable[int] = (at for at in range(len(names)) if names[at].is_valid)
    else:
        usual = rf"^{NAME}/{re.escape(database)}/data/({_PART}/)*{_PART}$"
        is_usual = pc.and_(pc.match_substring_regex(names, usual), pc.invert(pc.match_substring_regex(names, _OF_A_LOG)))
        unusual = np.flatnonzero(np.asarray(pc.invert(pc.fill_null(is_usual, True)))).tolist()
    return next((at for at in unusual if not is_data_path(names[at].as_py(), database)), -1)


def refuse_elsewhere(table: Table, given: Given, database: str) -> None:
    """``InvalidRows`` where a row that is to be put names data that is not in the database's own folders for it.

    A table whose references are not one text is none of which a system can say that they are paths. An empty one is unset in a column
    without presence: so a scan shows a row that names no data, and such a row can be put back. Only of a key nothing can be left out.
    """
    columns = [table.by_name[name] for name in table.data_reference]
    if [column.type for column in columns] != [DataType.STRING]:
        return
    paths = given.array(columns[0])
    if columns[0].implicit and columns[0].name not in table.key:
        paths = pc.if_else(pc.equal(paths, columns[0].zero), pa.scalar(None, paths.type), paths)
    at = elsewhere(paths, database)
    if at >= 0:
        raise InvalidRows(
            f"Row {at} for table {table.name!r}, column {columns[0].name!r}: {paths[at].as_py()!r} is no path of data in the database "
            f"{database!r}.",
            next_step=f"Write data below WRITER/{database}/data/, for nothing else can be deleted, and name it from WRITER on.",
        )
