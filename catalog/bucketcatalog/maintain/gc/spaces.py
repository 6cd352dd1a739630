"""Spaces: which tables can name the same data, and what of a reference is equal where it is the same.

What names data is what stands in an object's name or path, not the column that it stands in. So tables are compared with each other whose
references have columns of the same names, in whatever order and of whatever types, for at a URL they have the same names; and all whose
reference is one string, for that may be a path in the catalog. Where a URL names data in the catalog, it is where it lies that is compared.
What is kept too long is collected later; what is deleted too early is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ...model.facts import Facts
from ...model.tables import DataType, Table
from ...write.references import references, spelled
from .data import DataPlace, Deleters, Deleting, Template


@dataclass(frozen=True)
class Places:
    """A catalog, and a URL by which data in it is named too."""

    catalog: str
    url: str
    template: Template

    @classmethod
    def of(cls, place: DataPlace | None) -> Places | None:
        """None where no object lies at the place and in the catalog."""
        if place is None or not (place.is_in_catalog or place.holds_catalog):
            return None
        return cls(place.catalog_url.rstrip("/"), place.store.url.rstrip("/"), place.template)

    def fit(self, table: Table) -> bool:
        """Whether the table's references have the columns of the URL."""
        return sorted(table.data_reference) == sorted(self.template.columns)

    def by_url(self, facts: Facts, table: Table) -> pa.Array:
        """Where the data of each row lies by the URL, null where it names none."""
        return self._below(self.url, self.template.names(spelled(facts, table)))

    def by_path(self, facts: Facts, table: Table) -> pa.Array:
        """Where it lies if the one column of a reference is a path in the catalog."""
        (path,) = spelled(facts, table).values()
        return self._below(self.catalog, path)

    def of_paths(self, facts: Facts, table: Table) -> pa.Array:
        """What objects are called at the URL that the one column of references leads to, those that lie there."""
        paths, root = self.by_path(facts, table).drop_null().cast(pa.string()), f"{self.url}/"
        return pc.utf8_slice_codeunits(paths.filter(pc.starts_with(paths, root)), len(root))

    @staticmethod
    def _below(root: str, names: pa.Array) -> pa.Array:
        return pc.binary_join_element_wise(root.encode(), names.cast(pa.binary()), b"/")


@dataclass(frozen=True)
class Space:
    """Tables whose data is deleted alike, and all that may name that data, these among them. Picklable.

    ``tables`` declare references of the same columns, by name and type, in the same order. References are spelled where types differ; where
    there are ``places`` they are where data lies: by the URL if it is deleted there, else as paths.
    """

    tables: tuple[Table, ...]
    named_by: tuple[Table, ...]
    is_spelled: bool = False
    places: Places | None = None
    is_at_url: bool = False

    def references(self, facts: Facts, table: Table) -> pa.Array:
        """The data that each row of one of the ``tables`` names, as bytes; null where it names none."""
        if self.places is None:
            return references(facts, table, is_spelled=self.is_spelled)
        return self.places.by_url(facts, table) if self.is_at_url else self.places.by_path(facts, table)

    def named(self, facts: Facts, table: Table) -> pa.Array:
        """All that rows of a table in ``named_by`` may mean, as the same bytes, in any order and number."""
        if self.places is None:
            return references(facts, table, is_spelled=self.is_spelled)
        meant = [self.places.by_url(facts, table)] if self.places.fit(table) else []
        meant += [self.places.by_path(facts, table)] if len(table.data_reference) == 1 else []
        return pa.concat_arrays(meant)


def spaces(tables: Sequence[Table], deleters: Deleters) -> Iterator[Space]:
    """The tables of a database divided by how their data is deleted, each part with all that may name the same."""
    by_columns: dict[tuple[tuple[str, DataType], ...], list[Table]] = {}
    for table in tables:
        by_columns.setdefault(_columns(table), []).append(table)
    place = deleters.others.place if isinstance(deleters.others, Deleting) else None
    for same in by_columns.values():
        yield _space(same, tables, Places.of(place), deleters)


def _space(same: Sequence[Table], tables: Sequence[Table], places: Places | None, deleters: Deleters) -> Space:
    first = same[0]
    is_at_url = isinstance(deleters.of(same), Deleting)
    named_by = [table for table in tables if _names_alike(table, first)]
    if places is not None and (is_at_url or is_one_text(first)):
        named_by += [table for table in tables if table not in named_by and (places.fit(table) or is_one_text(table))]
        return Space(tuple(same), tuple(named_by), places=places, is_at_url=is_at_url)
    types = {tuple(kind for _, kind in sorted(_columns(table))) for table in named_by}
    return Space(tuple(same), tuple(named_by), is_spelled=len(types) > 1)


def _columns(table: Table) -> tuple[tuple[str, DataType], ...]:
    return tuple((name, table.by_name[name].type) for name in table.data_reference)


def is_one_text(table: Table) -> bool:
    """Whether the table's references are one string each, which may be a path in the catalog."""
    return [kind for _, kind in _columns(table)] == [DataType.STRING]


def _names_alike(one: Table, other: Table) -> bool:
    """Whether references of the two may be the same data wherever that lies."""
    return sorted(one.data_reference) == sorted(other.data_reference) or (is_one_text(one) and is_one_text(other))
