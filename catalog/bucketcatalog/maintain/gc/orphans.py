"""What nobody will come back for: puts that were not finished, and data that no version names (orphans), such as a dead writer's.

Both are told by their age by the store's clock, as a row may be on its way and a put under way. What lies at a place of data is listed
first and looked up afterwards, so that whatever was committed before it was listed is seen; only names that some reference could have are
looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ... import limits
from ...errors import BucketCatalogError, InvalidOption
from ...log.files import LogFiles
from ...model.arrays import Mask
from ...model.facts import Facts, Kind
from ...model.paths import data_prefix, is_of_a_catalog
from ...model.render import output_schema, render
from ...model.tables import DataType, Table
from ...model.times import shown_age
from ...parallel import in_order
from ...query.snapshot import Snapshot
from ...state.plan import Part
from ...store.base import ObjectInfo, Store, UnfinishedPut
from .boundaries import known_boundary
from .data import DataPlace, Template
from .judge import Pins
from .parents import state_rows
from .spaces import Places, is_one_text


def abandoned(store: Store, older_than: int, *, below: str | None = None, force: bool = False) -> Iterator[UnfinishedPut]:
    """The unfinished puts of a catalog that began more than ``older_than`` microseconds ago by the store's clock.

    On S3 these are multipart uploads, which are paid for until somebody aborts them; in a directory, temporary files. Neither is part of
    the catalog: no listing shows them, and a put that is repeated begins anew.

    Who throws them away gives ``below``, a prefix that is its own, and goes by the store's time or gets a ``StoreError``; who only looks
    may go by the machine's. ``InvalidOption`` below ``limits.UNFINISHED_PUT_AGE``, unless forced: a put that is under way would fail, and
    be repeated by its writer.
    """
    if older_than < limits.UNFINISHED_PUT_AGE and not force:
        raise InvalidOption(
            f"Puts that began {shown_age(older_than)} ago may be under way.",
            next_step=f"Give an age of {shown_age(limits.UNFINISHED_PUT_AGE)} or more, or --force where no writer runs.",
        )
    before = store.now_us(below) - older_than
    return (put for put in store.unfinished_puts() if put.begun_us < before and is_of_a_catalog(put.name))


AT_ONCE = 1 << 17
"""Names that are held at a time; each so many read the table's references once."""
_PATTERNS = {
    DataType.UUID: "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    **dict.fromkeys((DataType.INT32, DataType.INT64, DataType.UINT32, DataType.UINT64), "-?[0-9]+"),
}


@dataclass(frozen=True, slots=True)
class Orphan:
    """An object that no version names. ``modified`` is the store's time in microseconds; ``problem`` is why it was not deleted."""

    name: str
    bytes: int
    modified: int
    deleted: bool = False
    problem: str = ""


@dataclass(frozen=True)
class Namer:
    """Where data lies, and what it may be called there; without a template a reference is a path from the catalog's root.

    ``log`` is the catalog's own where data lies in the same store, None elsewhere; ``places`` are there where paths in the catalog lead to
    the same objects as the template.
    """

    store: Store
    prefixes: tuple[str, ...]
    template: Template | None
    may_be: Callable[[str], bool]
    log: LogFiles | None
    places: Places | None = None

    def time_for(self, maintainer: str | None) -> int:
        """The time of the store that data lies in for a maintainer who deletes there; None only looks, and may get the machine's.

        Where only a put tells it, that is below the maintainer's own prefix in the catalog. Another store has no such prefix, and the
        catalog's clock is not its: there it is at the root, which is nobody else's.
        """
        if maintainer is None:
            return self.store.now_us()
        return self.log.time_for(maintainer) if self.log is not None else self.store.now_us("")

    def templates(self, snapshot: Snapshot) -> dict[str, Template]:
        """How the data of each table is named that can name any there."""
        tables = [snapshot.table(name) for name in snapshot.names]
        if self.template is None:
            return {table.name: Template("", ("", ""), table.data_reference) for table in tables if is_one_text(table)}
        return {table.name: self.template for table in tables if sorted(table.data_reference) == sorted(self.template.columns)}

    def naming(self, snapshot: Snapshot) -> Iterator[tuple[Table, Callable[[Facts, Table], pa.Array]]]:
        """The tables that can name anything there, each with what tells the names of its rows' data; a table that can in two ways twice."""
        for name, template in self.templates(snapshot).items():
            yield snapshot.table(name), partial(_names, template=template)
        if self.places is not None:
            tables = (snapshot.table(name) for name in snapshot.names)
            yield from ((table, self.places.of_paths) for table in tables if is_one_text(table))


def namer_of(place: DataPlace | None, files: LogFiles, snapshot: Snapshot) -> Namer:
    """How data is named at a place, or below the writers' own folders; ``InvalidOption`` where no table could name anything there."""
    if place is None:
        prefixes = tuple(data_prefix(writer, files.database) for writer in files.writers())
        namer = Namer(files.store, prefixes, None, lambda name: True, files)
        _require(namer.templates(snapshot), "names data by a path in the catalog: a data reference of one string")
        return namer
    log = files if place.is_in_catalog else None
    fitting = Namer(place.store, ("",), place.template, place.is_data, log).templates(snapshot)
    _require(fitting, f"has the data reference {', '.join(sorted(place.template.columns))}")
    patterns = [re.compile(_pattern(place.template, snapshot.table(name))) for name in fitting]

    def may_be(name: str) -> bool:
        return place.is_data(name) and any(pattern.fullmatch(name) for pattern in patterns)

    return Namer(place.store, ("",), place.template, may_be, log, Places.of(place))


def orphans(look: Callable[[], Snapshot], namer: Namer, grace: int, maintainer: str | None) -> Iterator[Orphan]:
    """The orphans among what is older than ``grace`` microseconds, as they are found; a maintainer deletes them, None only looks."""
    for found in _listed(namer, namer.time_for(maintainer) - grace):
        named = _named(look(), namer, pa.array([info.name for info in found], pa.string()))
        rest = [info for info, is_named in zip(found, named.tolist(), strict=True) if not is_named]
        if maintainer is None:
            yield from (Orphan(info.name, info.size, info.modified_us) for info in rest)
            continue
        yield from in_order(lambda info: _deleted(namer.store, info), rest, threads=namer.store.concurrency)


def _deleted(store: Store, info: ObjectInfo) -> Orphan:
    try:
        store.delete(info.name)
    except BucketCatalogError as error:
        return Orphan(info.name, info.size, info.modified_us, problem=error.message)
    return Orphan(info.name, info.size, info.modified_us, deleted=True)


def _listed(namer: Namer, before: int) -> Iterator[list[ObjectInfo]]:
    """What may be data and was written before a time, so many at a time."""
    every = (info for prefix in namer.prefixes for info in namer.store.list(prefix))
    old = (info for info in every if info.modified_us < before and namer.may_be(info.name))
    while found := list(islice(old, AT_ONCE)):
        yield found


def _named(snapshot: Snapshot, namer: Namer, wanted: pa.Array) -> Mask:
    """Which of the wanted names a version names that some retained cut may show with its data."""
    known = known_boundary(snapshot.view)
    boundary = known.data if known.is_usable(snapshot.view.observed) else 0
    pins, found = Pins.of(snapshot.view), np.zeros(len(wanted), dtype=bool)
    for table, names_of in namer.naming(snapshot):
        columns = [table.by_name[column] for column in table.data_reference]
        for facts in state_rows(snapshot.state(table.name), Part.EVERYTHING, columns):
            versions: Mask = facts.numbers("_kind") == Kind.VERSION
            forgotten = (facts.numbers("_purged") > 0) & (facts.end_times() <= boundary) & ~pins.live(facts)
            names = names_of(facts.filter(pa.array(versions & ~forgotten)), table)
            found |= np.asarray(pc.is_in(wanted, value_set=names))
    return found


def _names(facts: Facts, table: Table, template: Template) -> pa.Array:
    """The names of the data of some rows, without those that have none."""
    return template.names(render(facts, table, output_schema(table, columns=list(template.columns))).drop_null())


def _pattern(template: Template, table: Table) -> str:
    """What the names of the table's data look like."""
    other = ".+" if len(template.columns) == 1 else "[^/]+"
    values = [_PATTERNS.get(table.by_name[column].type, other) for column in template.columns]
    return re.escape(template.literals[0]) + "".join(
        value + re.escape(literal) for value, literal in zip(values, template.literals[1:], strict=True)
    )


def _require(tables: Mapping[str, object], what: str) -> None:
    if not tables:
        raise InvalidOption(
            f"No table {what}, so nothing there could be data.",
            next_step="Say where data lies by a URL with the columns of a table's data reference, each once.",
        )
