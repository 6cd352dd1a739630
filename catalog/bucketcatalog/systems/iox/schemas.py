"""Schemas: what columns a data table has, whose files were written by writers that know nothing of each other.

No writer is refused for its schema. Whoever reads says what becomes of files that differ (persistence document, section 2.3): ``cast``
shows every column of any, a missing one as nulls, and values as the narrowest type that holds all of both without loss; ``error`` takes no
difference; ``skip`` leaves the files out that do not go together with those that were added before them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from ...errors import InvalidOption
from ...model.widening import widened
from .errors import SchemaConflict

OnConflict = Literal["cast", "error", "skip"]


@dataclass(frozen=True)
class Seen:
    """A schema of files, and one of these by its path."""

    id: str
    schema: pa.Schema
    path: str


@dataclass(frozen=True)
class Merged:
    """The columns of a table, and the ids of the schemas whose files are left out."""

    schema: pa.Schema
    skipped: frozenset[str] = frozenset()


def on_conflict(value: str) -> OnConflict:
    """What is to be done about schemas that differ; ``InvalidOption`` for anything else."""
    known: OnConflict
    for known in ("cast", "error", "skip"):
        if value == known:
            return known
    raise InvalidOption(f"onSchemaConflict cannot be {value!r}.", next_step="Give cast, error or skip.")


def merged(table: str, seen: Iterable[Seen], on: OnConflict) -> Merged:
    """The columns of the table, whose schemas come in the order in which their first files were added.

    ``SchemaConflict`` names two files that do not go together. Columns come in the order in which they were first seen.
    """
    found: dict[str, tuple[pa.Field, Seen]] = {}
    skipped: set[str] = set()
    first: Seen | None = None
    for each in seen:
        if first is not None and on == "error" and not _same(first.schema, each.schema):
            raise _differ(table, first, each)
        first = first or each
        added = dict(found)
        try:
            for field in each.schema:
                added[field.name] = _added(table, added.get(field.name), field, each)
        except SchemaConflict:
            if on != "skip":
                raise
            skipped.add(each.id)
            continue
        found = added
    return Merged(pa.schema([field for field, _ in found.values()]), frozenset(skipped))


def _added(table: str, known: tuple[pa.Field, Seen] | None, field: pa.Field, by: Seen) -> tuple[pa.Field, Seen]:
    """A column with what a schema says of it; every column may be null, in files that lack it."""
    if known is None:
        return pa.field(field.name, field.type), by
    both = widened(known[0].type, field.type)
    if both is None:
        raise SchemaConflict(
            f"Column {field.name!r} of data table {table!r} is {known[0].type} in {known[1].path} and {field.type} in {by.path}, "
            "and neither holds the other without loss.",
            next_step="Leave the later one out, by on_schema_conflict='skip', in Spark onSchemaConflict, or write one anew.",
        )
    return pa.field(field.name, both), known[1] if both == known[0].type else by


def _same(one: pa.Schema, other: pa.Schema) -> bool:
    return [(f.name, f.type) for f in one] == [(f.name, f.type) for f in other]


def _differ(table: str, one: Seen, other: Seen) -> SchemaConflict:
    return SchemaConflict(
        f"Files of data table {table!r} have different columns: {one.path} and {other.path}.",
        next_step="Read with cast or skip instead of error.",
    )
