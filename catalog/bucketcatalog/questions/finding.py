"""``find``: the objects that meet conditions, or the tombstones of those that did.

What statistics and keys can tell is a condition of the scan: sizes, times, classes, types, and what a glob begins with. The rest is checked
batch by batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidOption
from ..log.versions import Version
from ..model.arrays import one_chunk
from ..model.globs import literal_beginning, longest_literal, pattern_of
from ..model.names import names_given
from ..model.render import DELETED_AT
from ..model.sizes import Size, parse_size
from ..model.times import Time, datetime_of, parse_time
from ..query.filtered import FilteredRows
from ..query.reads import InBatches
from ..where.conditions import Between, between
from ..where.conditions import prefix as begins_with
from .asking import BUCKET, CLASS, FILE, FILE_TYPE, MODIFIED, NAME, OWNER, SIZE, Asked, Owner, Source, asked, texts
from .grouping import DELIMITER, last_components

SHOWN = (BUCKET, NAME, SIZE, MODIFIED, CLASS, "content_type", OWNER)
TYPE, TAGS = "content_type", "tags"


def find(
    source: Source,
    *,
    bucket: str | None = None,
    owner: Owner = None,
    prefix: str | None = None,
    name: str | None = None,
    larger: Size | None = None,
    smaller: Size | None = None,
    older: Time | None = None,
    newer: Time | None = None,
    content_type: str | None = None,
    storage_class: str | None = None,
    tag: str | Sequence[str] | None = None,
    file_type: str | None = None,
    deleted: bool = False,
    columns: Sequence[str] | None = None,
    as_of: Time | Version | None = None,
    database: str | None = None,
    ignore_corruption: bool = False,
) -> InBatches:
    """The objects that meet all of the conditions, in the order of their keys; nothing is read before the result is.

    ``larger`` and ``smaller`` are sizes (``4096``, ``"10MiB"``), ``older`` and ``newer`` ages or times (``"30d"``, ``"yesterday"``) of
    ``modified``; the bounds themselves are left out. ``name`` is a glob for what stands behind the last ``/`` of a name, or, where it has
    a ``/`` itself, for the whole name, whose ``*`` matches ``/`` too. ``content_type`` is a glob, ``storage_class`` exact. ``tag`` is
    ``KEY`` or ``KEY=VALUE``, or several of these, which all have to be there. ``file_type`` is that of harvested files; ``"file"`` is
    what has none, too. With ``deleted`` the tombstones are looked among.

    ``columns`` are as of a scan, ``bucket`` among them.
    """
    about = asked(
        source, as_of=as_of, database=database, bucket=bucket, owner=owner, prefix=prefix, ignore_corruption=ignore_corruption
    )
    shown = (
        (*SHOWN, *([DELETED_AT] if deleted else [])) if columns is None else names_given(columns, "columns", "columns=['name']")
    )
    where = _of_sizes(larger, smaller) | _of_times(older, newer, about.now)
    tests: list[NameOrTag] = []
    if name is not None:
        test, narrower = of_name(name, prefix)
        tests.append(test)
        where |= narrower
    if content_type is not None:
        of_type, narrower = _of_type(content_type)
        tests += of_type
        where |= narrower
    if storage_class is not None:
        (where[CLASS],) = texts("storage_class", storage_class)
    if file_type is not None:
        (kind,) = texts("file_type", file_type)
        where[FILE_TYPE] = [kind, None] if kind == FILE else kind
    tests += [Tagged(*_key_and_value(each)) for each in texts("tag", tag)]
    return tested(about, shown, where, tests, ended=deleted)


def of_name(name: str, prefix: str | None) -> tuple[Glob, dict[str, Any]]:
    """What a glob for names checks on rows, and the condition that it makes of what it begins with."""
    (glob,) = texts("name", name)
    whole = DELIMITER in glob
    return Glob(NAME, glob, last=not whole), _beginning(glob, prefix) if whole else {}


def _of_type(content_type: str) -> tuple[list[NameOrTag], dict[str, Any]]:
    """The same for types, of which one without a wildcard is a condition alone."""
    (glob,) = texts("content_type", content_type)
    beginning = literal_beginning(glob)
    return ([], {TYPE: glob}) if beginning == glob else ([Glob(TYPE, glob)], {TYPE: begins_with(beginning)})


def _of_sizes(larger: Size | None, smaller: Size | None) -> dict[str, Any]:
    low, high = (None if given is None else parse_size(given) for given in (larger, smaller))
    return {} if low is None and high is None else {SIZE: _within("larger", low, "smaller", high)}


def _of_times(older: Time | None, newer: Time | None, now: int) -> dict[str, Any]:
    low, high = (None if given is None else datetime_of(parse_time(given, now)) for given in (newer, older))
    return {} if low is None and high is None else {MODIFIED: _within("newer", low, "older", high)}


def _within(low_name: str, low: Any, high_name: str, high: Any) -> Between:
    if low is not None and high is not None and low >= high:
        raise InvalidOption(
            f"Nothing is both {low_name} than {low} and {high_name} than {high}.", next_step="Exchange the two, or leave one out."
        )
    return between(low, high, inclusive="neither")


def _beginning(glob: str, prefix: str | None) -> dict[str, Any]:
    """The condition on names that a glob makes of what it begins with, which is narrower than the prefix or not there."""
    beginning = literal_beginning(glob)
    return {NAME: begins_with(beginning)} if beginning.startswith(prefix or "") and beginning else {}


def _key_and_value(tag: str) -> tuple[str, str | None]:
    key, equals, value = tag.partition("=")
    if not key:
        raise InvalidOption(f"{tag!r} names no tag.", next_step="Write KEY or KEY=VALUE.")
    return key, value if equals else None


def tested(
    about: Asked, columns: Sequence[str], where: Mapping[str, Any], tests: Sequence[NameOrTag], *, ended: bool
) -> InBatches:
    """The objects that are meant, or their tombstones, that meet conditions and pass tests."""
    test = NamesAndTags(tuple(tests))
    scan = about.scan([*columns, *(name for name in dict.fromkeys(test.columns) if name not in columns)], where, ended=ended)
    return FilteredRows(scan, pa.schema([scan.schema.field(name) for name in columns]), test) if tests else scan


@dataclass(frozen=True)
class Glob:
    """Whether a glob matches a text, or what stands behind its last delimiter."""

    column: str
    glob: str
    last: bool = False

    def __post_init__(self) -> None:
        pattern_of([self.glob])  # refuses what cannot be matched before anything is read

    def of(self, values: pa.Array) -> pa.Array:
        """For each value whether it is met. Where a text stands in whatever is, those without it are left out first: most, as a rule."""
        literal = longest_literal(self.glob)
        if not literal:
            return self._matched(values)
        met = np.asarray(pc.fill_null(pc.match_substring(values, literal), False)).copy()
        at = np.flatnonzero(met)
        met[at] = np.asarray(self._matched(values.take(pa.array(at))))
        return pa.array(met)

    def _matched(self, values: pa.Array) -> pa.Array:
        return pc.match_substring_regex(last_components(values) if self.last else values, pattern_of([self.glob]))


@dataclass(frozen=True)
class Tagged:
    """Whether there is a tag of that key, and that value where one is given."""

    key: str
    value: str | None
    column = TAGS

    def of(self, values: pa.Array) -> pa.Array:
        """For each map whether it is met."""
        found = pc.map_lookup(values, self.key, "first")
        return found.is_valid() if self.value is None else pc.equal(found, self.value)


NameOrTag = Glob | Tagged


@dataclass(frozen=True)
class NamesAndTags:
    """Tests of names and tags of which a row has to pass each: a ``RowsTest``."""

    each: tuple[NameOrTag, ...]

    def __str__(self) -> str:
        return ", ".join(self.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that they are about."""
        return tuple(dict.fromkeys(test.column for test in self.each))

    def met_by(self, rows: pa.Table) -> pa.Table:
        """See ``RowsTest``."""
        for test in self.each:
            rows = rows.filter(pc.fill_null(test.of(one_chunk(rows[test.column])), False))
        return rows
