"""Tables that SQL creates: ``CREATE TABLE ... USING bucketcatalog OPTIONS (...)``.

Spark gives the options of such a table to the data source when the table is created, among the table's properties, and never again: a
query sees only the stored columns, and the options of the query itself. So the options travel in the metadata of the first column. What
is stored there can be read by everyone who can read the table, so it holds no credentials. These are all that a query may give: where
it names a table several times, Spark makes one data source, with the options of one of the mentions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from pyspark.sql.types import StructField, StructType

from bucketcatalog import InvalidOption
from bucketcatalog.store.s3.options import PUBLIC_OPTIONS

from .given import STORAGE

_PROVIDER = "provider"
_PROPERTY = "option."
_METADATA = "bucketcatalog.options"
_PUBLIC = frozenset(f"{STORAGE}{name}" for name in PUBLIC_OPTIONS)


def creates_table(options: Mapping[str, str]) -> bool:
    """Whether these are the properties of a table that is being created."""
    return _PROVIDER in options


def table_options(properties: Mapping[str, str]) -> dict[str, str]:
    """The options among a table's properties; ``InvalidOption`` for what should not be stored with the table."""
    found = {key.lower().removeprefix(_PROPERTY): text for key, text in properties.items() if key.lower().startswith(_PROPERTY)}
    if "path" in properties:
        found["path"] = properties["path"]
    secret = sorted(key for key in found if key.startswith(STORAGE) and key not in _PUBLIC)
    if secret:
        raise InvalidOption(
            f"The option {secret[0]} would be stored with the table, for all to see.",
            next_step="Set it in the environment of the executors, at each query by WITH, or use CREATE TEMPORARY VIEW.",
        )
    return found


def refuse_options_of_query(given: Iterable[str]) -> None:
    """``InvalidOption`` for what should have been stored with the table, for it would hold wherever the query names the table."""
    storable = sorted(name for name in given if not name.startswith(STORAGE) or name in _PUBLIC)
    if storable:
        raise InvalidOption(
            f"The option {storable[0]} is given for the columns of a SQL table: Spark would use it wherever a query names that table.",
            next_step="Create another table, or a temporary view, with it; for load() name columns in the option columns.",
        )


def with_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """The columns with the options of their table."""
    first, *rest = schema.fields
    marked = StructField(first.name, first.dataType, first.nullable, {_METADATA: json.dumps(dict(options))})
    return StructType([marked, *rest])


def options_of(schema: StructType) -> dict[str, str]:
    """The options that columns carry, none where they carry none."""
    for field in schema.fields:
        stored = (field.metadata or {}).get(_METADATA)
        if stored is not None:
            return {str(key): str(text) for key, text in json.loads(stored).items()}
    return {}
