"""What nobody will come back for: puts that were not finished, and data that no version names (orphans), such as a dead writer's.

Both are told by their age by the store's clock, as a row may be on its way and a put under way. What lies at a place of data is listed
first and looked up afterwards, so that whatever was committed before it was listed is seen; only names that some reference could have are
looked at, and what is deleted is looked at once more before.

A name is matched whole, each value by its own type. Text that stands alone may be any name at all, such as a file of somebody else's that
lies there too: it counts only if it is like one that a row has, that is in the same folder and with the same ending, numbers and uuids
aside.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ... import limits
from ...errors import BucketCatalogError, InvalidOption, ObjectNotFound
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
from ...wording import either
from ...write.data_paths import is_data_path
from .boundaries import KnownBoundaries
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
            next_step=f"Give an age of {shown_age(limits.UNFINISHED_PUT_AGE)} or more, "
            f"or {either('force=True', '--force')} where no writer runs.",
        )
    before = store.now_us(below) - older_than
    return (put for put in store.unfinished_puts() if put.begun_us < before and is_of_a_catalog(put.name))


AT_ONCE = 1 << 17
"""Names that are held at a time; each so many read the table's references once."""
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_PATTERNS = {
    DataType.UUID: _UUID,
    **dict.fromkeys((DataType.INT32, DataType.INT64), "0|-?[1-9][0-9]{0,18}"),
    **dict.fromkeys((DataType.UINT32, DataType.UINT64), "0|[1-9][0-9]{0,19}"),
}
_ENCODED = "(?:[A-Za-z0-9_.~-]|%(?!2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])[0-9A-F]{2})+"
"""As one of several values stands in a name: percent-encoded, and nothing that need not be."""
_LAST_PART = r"[^/]*?(\.[A-Za-z0-9]+)?$"


@dataclass(frozen=True, slots=True)
class Orphan:
    """An object that no version names. ``modified`` is the store's time in microseconds; ``problem`` is why it was not deleted."""

    name: str
    bytes: int
    modified: int
    deleted: bool = False
    problem: str = ""


def _never(name: str) -> bool:
    return False


@dataclass(frozen=True)
class Namer:
    """Where data lies, and what it may be called there; without a template a reference is a path from the catalog's root.

    ``log`` is the catalog's own where data lies in the same store, None elsewhere; ``places`` are there where paths in the catalog lead to
    the same objects as the template. ``by_likeness`` says of a name that only what rows are called tells whether it can be one of data.
    """

    store: Store
    prefixes: tuple[str, ...]
    template: Template | None
    may_be: Callable[[str], bool]
    log: LogFiles | None
    places: Places | None = None
    by_likeness: Callable[[str], bool] = _never

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
        tables = [snapshot.whole(name) for name in snapshot.names]
        if self.template is None:
            return {table.name: Template("", ("", ""), table.data_reference) for table in tables if is_one_text(table)}
        return {table.name: self.template for table in tables if sorted(table.data_reference) == sorted(self.template.columns)}

    def naming(self, snapshot: Snapshot) -> Iterator[tuple[Table, Callable[[Facts, Table], pa.Array]]]:
        """The tables that can name anything there, each with what tells the names of its rows' data; a table that can in two ways twice."""
        for name, template in self.templates(snapshot).items():
            yield snapshot.table(name), partial(_names, template=template)
        if self.places is not None:
            tables = (snapshot.whole(name) for name in snapshot.names)
            yield from ((table, self.places.of_paths) for table in tables if is_one_text(table))


def namer_of(place: DataPlace | None, files: LogFiles, snapshot: Snapshot) -> Namer:
    """How data is named at a place, or below the writers' own folders; ``InvalidOption`` where no table could name anything there."""
    if place is None:
        prefixes = tuple(data_prefix(writer, files.database) for writer in files.writers())
        namer = Namer(files.store, prefixes, None, partial(is_data_path, database=files.database), files)
        _require(namer.templates(snapshot), "names data by a path in the catalog: a data reference of one string")
        return namer
    log = files if place.is_in_catalog else None
    fitting = Namer(place.store, ("",), place.template, place.is_data, log).templates(snapshot)
    _require(fitting, f"has the data reference {', '.join(sorted(place.template.columns))}")
    tables = [snapshot.table(name) for name in fitting]
    said, any_text = (
        [re.compile(_pattern(place.template, table)) for table in tables if _is_any_text(place.template, table) is wanted]
        for wanted in (False, True)
    )

    def is_said(name: str) -> bool:
        return any(pattern.fullmatch(name) for pattern in said)

    def may_be(name: str) -> bool:
        return place.is_data(name) and (is_said(name) or any(pattern.fullmatch(name) for pattern in any_text))

    return Namer(place.store, ("",), place.template, may_be, log, Places.of(place), by_likeness=lambda name: not is_said(name))


def orphans(look: Callable[[], Snapshot], namer: Namer, grace: int, maintainer: str | None) -> Iterator[Orphan]:
    """The orphans among what is older than ``grace`` microseconds, as they are found; a maintainer deletes them, None only looks."""
    before = namer.time_for(maintainer) - grace
    for found in _listed(namer, before):
        is_orphan = _orphaned(look(), namer, pa.array([info.name for info in found], pa.string()))
        rest = [info for info, is_one in zip(found, is_orphan.tolist(), strict=True) if is_one]
        if maintainer is None:
            yield from (Orphan(info.name, info.size, info.modified_us) for info in rest)
            continue
        done = in_order(lambda info: _deleted(namer, info, before), rest, threads=namer.store.concurrency)
        yield from (orphan for orphan in done if orphan is not None)


def _deleted(namer: Namer, info: ObjectInfo, before: int) -> Orphan | None:
    """None where it is not what was listed: somebody has put there anew what a row may be about to name, or has deleted it."""
    try:
        found = namer.store.head(info.name)
        if not namer.may_be(info.name) or found.size != info.size or found.modified_us >= before:
            return None
        namer.store.delete(info.name)
    except ObjectNotFound:
        return None
    except BucketCatalogError as error:
        return Orphan(info.name, info.size, info.modified_us, problem=error.message)
    return Orphan(info.name, info.size, info.modified_us, deleted=True)


def _listed(namer: Namer, before: int) -> Iterator[list[ObjectInfo]]:
    """What may be data and was written before a time, so many at a time."""
    every = (info for prefix in namer.prefixes for info in namer.store.list(prefix))
    old = (info for info in every if info.modified_us < before and namer.may_be(info.name))
    while found := list(islice(old, AT_ONCE)):
        yield found


def _orphaned(snapshot: Snapshot, namer: Namer, wanted: pa.Array) -> Mask:
    """Which of the wanted names can be of data, and no version names that some retained cut may show with its data."""
    ends = KnownBoundaries.of(snapshot.view).used(snapshot, waited=True).ends(sys.maxsize)
    pins, found = Pins.of(snapshot.view), np.zeros(len(wanted), dtype=bool)
    alike = ~np.fromiter(map(namer.by_likeness, wanted.to_pylist()), bool, len(wanted))
    shapes = _shapes(wanted)
    for table, names_of in namer.naming(snapshot):
        columns = [table.by_name[column] for column in table.data_reference]
        for facts in state_rows(snapshot.state(table.name), Part.EVERYTHING, columns):
            versions: Mask = facts.numbers("_kind") == Kind.VERSION
            forgotten = (facts.numbers("_purged") > 0) & ends.count(facts) & ~pins.live(facts)
            names = names_of(facts.filter(pa.array(versions & ~forgotten)), table)
            found |= np.asarray(pc.is_in(wanted, value_set=names))
            if not alike.all():
                gone = names_of(facts.filter(pa.array(versions & forgotten)), table)
                alike |= np.asarray(pc.is_in(shapes, value_set=pa.concat_arrays([_shapes(names), _shapes(gone)]).unique()))
    return alike & ~found


def _shapes(names: pa.Array | pa.ChunkedArray) -> pa.Array:
    """What names that are alike have in common: the folder, in which numbers and uuids may differ, and the ending."""
    text = names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names
    for pattern, by in ((_LAST_PART, r"\1"), (_UUID, "U"), ("[0-9]+", "9")):
        text = pc.replace_substring_regex(text, pattern, by)
    return text


def _names(facts: Facts, table: Table, template: Template) -> pa.Array:
    """The names of the data of some rows, without those that have none."""
    return template.names(render(facts, table, output_schema(table, columns=list(template.columns))).drop_null())


def _pattern(template: Template, table: Table) -> str:
    """What the names of the table's data look like."""
    other = ".+" if len(template.columns) == 1 else _ENCODED
    values = [f"(?:{_PATTERNS.get(table.by_name[column].type, other)})" for column in template.columns]
    return re.escape(template.literals[0]) + "".join(
        value + re.escape(literal) for value, literal in zip(values, template.literals[1:], strict=True)
    )


def _is_any_text(template: Template, table: Table) -> bool:
    """Whether the names of the table's data may be any text, between what the template says."""
    return len(template.columns) == 1 and table.by_name[template.columns[0]].type not in _PATTERNS


def _require(tables: Mapping[str, object], what: str) -> None:
    if not tables:
        raise InvalidOption(
            f"No table {what}, so nothing there could be data.",
            next_step="Say where data lies by a URL with the columns of a table's data reference, each once.",
        )
