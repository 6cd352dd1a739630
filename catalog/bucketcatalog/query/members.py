"""Several catalogs asked as one: which of them, what each is asked, and whose an answer or an error is.

They are asked side by side, each by itself; what is made of the answers is not decided here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar, overload

import pyarrow as pa

from ..errors import BucketCatalogError, InvalidOption, InvalidVersion, NotFound, UnknownTable
from ..model.times import looks_like_time
from ..parallel import in_order
from ..where.conditions import Where, listed
from ..where.given import Predicate
from ..wording import either
from .named import in_none

CATALOG = "_catalog"
"""What the catalog is called that a row is of: by its url, unless it was given a name."""
_AT_ONCE = 16
"""Catalogs that are asked at once; each asks its own store for several things at once."""
Of = TypeVar("Of")
Made = TypeVar("Made")


class _Lacking(NamedTuple):
    """That a catalog has not what it was asked about."""

    why: BucketCatalogError


@contextmanager
def telling_of(name: str) -> Iterator[None]:
    """Whatever is wrong with one of several catalogs is told with what that is called; it stays the error that it is."""
    try:
        yield
    except BucketCatalogError as error:
        if _is_told(name, error.message):
            raise
        raise _saying(error, f"{error.message} That is so in {name}.") from error


def _is_told(name: str, message: str) -> bool:
    """Whether a message says where a catalog is. What somebody else has called it may be any word of a message."""
    return "/" in name and re.search(rf"""(?:^|(?<=[\s'"(])){re.escape(name)}(?=/|[.,:;)'"]*(?:\s|$))""", message) is not None


def _saying(error: BucketCatalogError, message: str) -> BucketCatalogError:
    """The same error with another message, whatever its class wants to be made of."""
    told = type(error).__new__(type(error), *error.args)
    told.__dict__.update(error.__dict__, message=message)
    told.args = (message, *error.args[1:])
    return told


def of_each(members: Mapping[str, Of], make: Callable[[str, Of], Made]) -> dict[str, Made]:
    """What ``make`` makes of each member, by name, several at once."""

    def made(name: str) -> Made:
        with telling_of(name):
            return make(name, members[name])

    return dict(zip(members, in_order(made, list(members), threads=_AT_ONCE), strict=True))


def of_those_with(members: Mapping[str, Of], make: Callable[[str, Of], Made]) -> dict[str, Made]:
    """The same of the members that have the table, and the bucket by its name, that ``make`` is about.

    ``UnknownTable``, or ``NotFound`` for the bucket, where none has it.
    """

    def made(name: str, member: Of) -> Made | _Lacking:
        try:
            return make(name, member)
        except (UnknownTable, NotFound) as error:
            if isinstance(error, UnknownTable) or type(error) is NotFound:  # others are about a database, a version, the store
                return _Lacking(error)
            raise

    found = of_each(members, made)
    having = {name: each for name, each in found.items() if not isinstance(each, _Lacking)}
    if not having:
        whys = [each.why for each in found.values() if isinstance(each, _Lacking)]
        without_bucket = [why for why in whys if isinstance(why, NotFound)]
        raise in_none(without_bucket) if without_bucket else whys[0]
    return having


@overload
def of_catalogs(where: Where, names: Sequence[str]) -> tuple[dict[str, Any], list[str]]: ...
@overload
def of_catalogs(where: Where | Predicate, names: Sequence[str]) -> tuple[dict[str, Any] | Predicate, list[str]]: ...
def of_catalogs(where: Where | Predicate, names: Sequence[str]) -> tuple[dict[str, Any] | Predicate, list[str]]:
    """The conditions on columns, and the catalogs, of these, that one on ``_catalog`` names: without one all.

    ``InvalidOption`` for a name that is none of theirs, and for a predicate in which the two cannot be taken apart.
    """
    if isinstance(where, Predicate):
        about, rest = where.split(CATALOG)
        return {} if rest is None else rest, list(names) if about is None else _meeting(about, names)
    conditions = dict(where)
    if CATALOG not in conditions:
        return conditions, list(names)
    wanted = conditions.pop(CATALOG)
    named = listed(wanted) or [wanted]
    for each in named:
        if not isinstance(each, str) or each not in names:
            raise InvalidOption(f"None of the catalogs is {each!r}.", next_step=f"Give one, or a list, of {', '.join(names)}.")
    return conditions, [name for name in names if name in named]


def _meeting(predicate: Predicate, names: Sequence[str]) -> list[str]:
    """The catalogs of which a predicate on their names is true; ``InvalidOption`` where it is true of none."""
    rows = pa.table({CATALOG: pa.array(names, pa.string())})
    found: list[str] = predicate.bound(CATALOG, rows.schema).test.met_by(rows)[CATALOG].to_pylist()
    if not found:
        raise InvalidOption(
            f"None of the catalogs is one of which {predicate} is true.", next_step=f"They are {', '.join(names)}."
        )
    return found


@dataclass(frozen=True)
class Met(Generic[Made]):
    """What was made of a catalog for conditions, but for those on columns that it ``lacks``: every value of these is null.

    ``has`` are its columns, where it lacks any.
    """

    made: Made
    lacks: frozenset[str] = frozenset()
    has: Collection[str] = ()


def met(where: Where, make: Callable[[Where], Made], columns_of: Callable[[Made], Collection[str]]) -> Met[Made]:
    """What ``make`` makes of a catalog for the conditions on columns that it has. Only where it refuses one is it asked which it has."""
    try:
        return Met(make(where))
    except InvalidOption:
        has = columns_of(make({}))
        lacks = frozenset(where) - frozenset(has)
        if not lacks:
            raise
    return Met(make({column: condition for column, condition in where.items() if column not in lacks}), lacks, has)


def without_rows(table: str, where: Where, found: Mapping[str, Met[Made]]) -> frozenset[str]:
    """The catalogs in which no row meets the conditions, for they lack a column; ``InvalidOption`` for a column that none has."""
    for column in where:
        if all(column in each.lacks for each in found.values()):
            raise InvalidOption(
                f"Table {table!r} has no column {column!r} to filter by in any of the catalogs.",
                next_step=f"Its columns are {', '.join(dict.fromkeys(chain.from_iterable(each.has for each in found.values())))}.",
            )
    takes_null = {column for column, condition in where.items() if any(value is None for value in listed(condition))}
    return frozenset(name for name, each in found.items() if not each.lacks <= takes_null)


def versions_of(version: Any, names: Sequence[str]) -> Mapping[str, str | None]:
    """The version of each catalog: what a text of all of them names, or a tag for each; ``InvalidVersion`` for anything else."""
    if version is None or (isinstance(version, str) and version[:1].isalpha() and "@" not in version):
        return dict.fromkeys(names, version)
    try:
        found = json.loads(version) if isinstance(version, str) else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or sorted(found) != sorted(names) or not all(isinstance(text, str) for text in found.values()):
        raise InvalidVersion(
            f"{version!r:.200} does not name a version of each of {', '.join(names)}.",
            next_step=either("Give it as a time: timestamp=..., in Spark timestampAsOf.", "Give it as a time where one is taken.")
            if isinstance(version, str) and looks_like_time(version)
            else "Give the version of a snapshot of these catalogs, or a tag that each of them has.",
        )
    return found
