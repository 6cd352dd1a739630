"""What lies below the writers' folders of data, and what each file there says of itself: data files by their footers, markers whole.

Of a data file the footer alone is read, by ranges. What it says is checked before anybody goes by it, since it may be damaged, or lie: it
can be asked for every column without the process ending, it is that of a data table's file, this lies where it says that it does, and it
has ids where ids belong.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from ...clock import uuid7_time
from ...errors import CorruptionError, InvalidName, ObjectNotFound
from ...model.names import is_data_writer, is_name
from ...model.paths import data_prefix, writer_of
from ...model.times import is_uuid7
from ...model.uuids import uuid_bytes, uuid_value
from ...parallel import in_order
from ...query.parquet_footers import read_metadata
from ...store.base import ObjectInfo, Store
from .files import About, described
from .findings import Finding
from .names import marker_path, parsed, unescaped
from .predicates import Predicate
from .statistics import SCHEMA as STATISTICS

_LARGEST_MARKER = 16 << 20
_TELL_EVERY = 1_000
_ARROW = b"ARROW:schema"
_DAMAGE = (pa.ArrowException, OSError, ValueError, TypeError, ArithmeticError, LookupError, NotImplementedError, CorruptionError)
"""What reading a footer that is none may raise."""
Tell = Callable[[str], None]
Found = TypeVar("Found")


@dataclass(frozen=True)
class Listed:
    """The data files and the markers of a database, of all of its writers, by name."""

    files: dict[str, ObjectInfo] = field(repr=False)
    markers: dict[str, ObjectInfo] = field(repr=False)


@dataclass(frozen=True)
class Stored:
    """A data file that is whole, as its footer tells it; ``added`` is when its write began, in microseconds.

    There may be a million of them: what statistics say is kept as bytes, a tenth of what Arrow takes for so few rows, and Bloom filters
    are left out unless they were asked for.
    """

    info: ObjectInfo
    about: About
    row: Mapping[str, Any] = field(repr=False)
    schema: pa.Schema = field(repr=False)
    packed: bytes = field(repr=False)
    added: int

    @property
    def statistics(self) -> pa.Table:
        """Its rows in ``iox.statistics``."""
        return pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(self.packed), STATISTICS)])

    @property
    def is_compacted(self) -> bool:
        """Whether compaction has made it."""
        return bool(self.about.origins)

    @property
    def claims(self) -> tuple[str, ...]:
        """Where its rows were added."""
        return self.about.origins or (self.about.chunk,)


@dataclass(frozen=True)
class Marker:
    """A file that says what was deleted of a data table; ``added`` is when, in microseconds."""

    info: ObjectInfo
    table: str
    predicate: Predicate
    added: int


def listed(store: Store, database: str) -> Listed:
    """What the writers have below their folders of data that is called as files of data tables are; a listing for each writer."""
    found = Listed({}, {})
    for writer in filter(is_name, store.list_prefixes("")):
        prefix = data_prefix(writer, database)
        for info in store.list(prefix):
            if parsed(prefix, info.name) is not None:
                found.files[info.name] = info
            elif _marked(prefix, info.name) is not None:
                found.markers[info.name] = info
    return found


def read_each(
    read: Callable[[Store, ObjectInfo], Found | Finding], store: Store, infos: Sequence[ObjectInfo], what: str, tell: Tell
) -> Iterator[Found | Finding]:
    """What ``read`` finds of each object, in their order, several at once; ``tell`` is told how far it is."""
    for number, found in enumerate(in_order(partial(read, store), infos, threads=store.concurrency), 1):
        if number % _TELL_EVERY == 0:
            tell(f"{number:,} of {len(infos):,} {what}")
        yield found


def stored_file(store: Store, info: ObjectInfo, *, filters: bool = False) -> Stored | Finding:
    """A data file as its footer tells it, or what is wrong with it; an error of the store's is raised. ``filters`` has those read too."""
    fetch = partial(store.get_range, info.name)
    try:
        metadata = read_metadata(fetch, info.size, info.name, decoded=True)
        about = About.parse(metadata.metadata, info.name)
        if (why := _unsound(about)) is not None:
            return Finding("UNREADABLE", info.name, f"What it says of itself cannot be: {why}.")
        if about.path != info.name:
            return Finding("CLAIMS_ANOTHER_PATH", info.name, f"It says that it is {about.path}.")
        if about.origins and is_data_writer(about.writer):
            return Finding(
                "NOT_A_COMPACTOR", info.name, "It says that it was made of other files, and its writer makes none of these."
            )
        if not metadata.num_row_groups:
            return Finding("NO_ROW_GROUPS", info.name, "It has no row groups.")
        written = described(about, metadata, schema_of(metadata), info.size, fetch if filters else None)
    except ObjectNotFound:
        return Finding("UNREADABLE", info.name, "It is gone since it was listed.")
    except (*_DAMAGE, InvalidName) as error:
        return Finding("UNREADABLE", info.name, f"Its footer cannot be read: {_first_line(error)}.")
    (packed,) = written.statistics.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], STATISTICS)]
    added = uuid7_time(uuid_bytes(about.write))
    return Stored(info, about, written.row, written.schema, packed.serialize().to_pybytes(), added)


def schema_of(metadata: Any) -> pa.Schema:
    """The columns as they were written, to the type and the name; as Parquet has them where the footer does not say so."""
    stored = metadata.schema.to_arrow_schema()
    said = (metadata.metadata or {}).get(_ARROW)
    try:
        found = stored if said is None else pa.ipc.read_schema(pa.py_buffer(base64.b64decode(said)))
    except (pa.ArrowException, ValueError, OSError):
        return stored
    return found if found.names == stored.names else stored


def marker(store: Store, info: ObjectInfo) -> Marker | Finding:
    """What a marker says, or what is wrong with it."""
    prefix = data_prefix(writer_of(info.name), info.name.split("/")[1])
    table, id_ = _marked(prefix, info.name) or ("", "")
    try:
        row: dict[str, Any] = json.loads(store.get(info.name, most=_LARGEST_MARKER))
        if row.pop("version") != 1:
            raise ValueError("it was written by a later release")
        _check_marker(row)
        if (row["table"], row["id"], row["path"]) != (table, id_, info.name):
            return Finding("CLAIMS_ANOTHER_PATH", info.name, f"It says that it is {row['path']}.")
        predicate = Predicate.parse(row)
    except ObjectNotFound:
        return Finding("MARKER_UNREADABLE", info.name, "It is gone since it was listed.")
    except (*_DAMAGE, AttributeError) as error:
        return Finding("MARKER_UNREADABLE", info.name, f"It does not say what was deleted: {_first_line(error)}.")
    return Marker(info, table, predicate, uuid7_time(uuid_bytes(id_)))


def _marked(prefix: str, name: str) -> tuple[str, str] | None:
    """Table and id of a marker below a writer's ``prefix`` of data; None for what is called otherwise."""
    parts = name.removeprefix(prefix).split("/")
    if not name.startswith(prefix) or len(parts) != 3 or not parts[2].endswith(".json"):
        return None
    table, id_ = unescaped(parts[1]), parts[2].removesuffix(".json")
    writer, database = prefix.split("/")[:2]
    try:
        is_one = _is_id(id_) and marker_path(writer, database, table, id_) == name
    except InvalidName:
        return None
    return (table, id_) if is_one else None


def _unsound(about: About) -> str | None:
    """What no file of a data table says of itself, if it says so."""
    texts = (about.write, about.writer, about.database, about.table, about.partition, about.chunk)
    lists = (about.key_columns, about.origins, about.applied)
    if not all(isinstance(each, str) for each in texts) or not all(_are_texts(each) for each in lists):
        return "there is no text where text belongs"
    clocks = (about.first_clock, about.last_clock)
    if not all(isinstance(each, int) and not isinstance(each, bool) and 0 <= each < 1 << 63 for each in clocks):
        return f"{about.first_clock!r} to {about.last_clock!r} are no logical clocks"
    if not _is_id(about.write) or not is_uuid7(uuid_bytes(about.write)):
        return f"{about.write!r} is the id of no write"
    wrong = next((each for each in (*about.origins, *about.applied) if not _is_id(each)), None)
    return None if wrong is None else f"{wrong!r} is the id of nothing"


def _check_marker(row: dict[str, Any]) -> None:
    conditions = row["conditions"]
    if not _are_texts(row["chunks"]) or not isinstance(conditions, list) or not all(map(_is_id, row["chunks"])):
        raise ValueError("it names no files")
    if not is_uuid7(uuid_bytes(row["id"])):
        raise ValueError(f"{row['id']!r} is the id of no deletion")
    for each in conditions:
        if not isinstance(each["column"], str) or not isinstance(each["value"], (str, type(None))):
            raise ValueError("it has a condition that is none")


def _are_texts(values: Any) -> bool:
    return isinstance(values, (tuple, list)) and all(isinstance(each, str) for each in values)


def _is_id(text: str) -> bool:
    try:
        return uuid_value(text) == text
    except (ValueError, TypeError):
        return False


def _first_line(error: BaseException) -> str:
    text = str(error) or type(error).__name__
    return text.splitlines()[0].rstrip(".")
