"""What a user may say about a read, a stream or a write, as values made of the options that are given, and back.

Values of ``storage.*`` options may be credentials: no error, ``repr`` or plan shows them.
"""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bucketcatalog import InvalidOption, clock
from bucketcatalog.catalog import DEFAULT_DATABASE
from bucketcatalog.model.names import WriterId, new_pin_name, writer_id
from bucketcatalog.model.times import Moment, Time, parse_time, settled_time, shown_time, span_of
from bucketcatalog.where.conditions import Where
from bucketcatalog.where.given import Predicate

from .given import (
    NAMES_OF_READ,
    NAMES_OF_STREAM,
    NAMES_OF_WRITE,
    ONLY_OF_STREAMS,
    STORAGE,
    by_names,
    flag_in,
    list_in,
    moment_in,
    path_in,
    positive_in,
    pre_images_in,
    refuse_of_batches,
    whole_in,
)
from .where import where_of, where_text

MAX_PARTITION_ROWS = 1 << 20
WRITER_PREFIX, PINNER_PREFIX = "spark-", "spark-pin-"
OPERATIONS = ("put", "update", "delete", "purge")
_EXCLUDE = [
    ("timestampAsOf", "versionAsOf"),
    ("startingVersion", "startingTimestamp"),
    ("endingVersion", "endingTimestamp"),
    ("readChangeFeed", "readDifference"),
    *(
        (read, name)
        for read in ("readChangeFeed", "readDifference")
        for name in ("timestampAsOf", "versionAsOf", "onSchemaConflict")
    ),
]
_TIMES = frozenset({"timestampasof", "startingtimestamp", "endingtimestamp"})
_OF_CHANGES = ("startingVersion", "startingTimestamp", "endingVersion", "endingTimestamp", "preImages")
_NOT_GIVEN = Moment()


@dataclass(frozen=True)
class ReadOptions:
    """A read, as the user asked for it, but for times that count from now: these are settled when the options are parsed.

    Without ``columns`` those are read that are shown unasked. ``at`` is the state to read, or with ``changes`` or ``difference`` the end of
    what lies between; ``start`` is meant only there.
    """

    path: str
    storage: Mapping[str, Any] = field(default_factory=dict, repr=False)
    database: str | None = None
    table: str = "objects"
    columns: tuple[str, ...] | None = None
    at: Moment = _NOT_GIVEN
    start: Moment = _NOT_GIVEN
    changes: bool = False
    difference: bool = False
    pre_images: bool | tuple[str, ...] = False
    bucket: str | None = None
    owner: str | None = None
    prefix: str | None = None
    where: Where | Predicate = field(default_factory=dict)
    on_schema_conflict: str | None = None
    strict: bool = False
    ignore_corruption: bool = False
    max_partition_rows: int = MAX_PARTITION_ROWS

    @property
    def of_read(self) -> dict[str, str]:
        """Options of who keeps the rows of what is read."""
        return {} if self.on_schema_conflict is None else {"on_schema_conflict": self.on_schema_conflict}

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> ReadOptions:
        """The read that these options ask for; ``InvalidOption`` names the one that cannot be."""
        given, storage = by_names(settled_options(options), NAMES_OF_READ)
        _check_combination(given)
        changes, difference = flag_in(given, "readChangeFeed"), flag_in(given, "readDifference")
        end = "ending{}" if changes or difference else "{}AsOf"
        return cls(
            path=path_in(given),
            storage=storage,
            database=given.get("database"),
            table=given.get("table", "objects"),
            columns=list_in(given, "columns"),
            at=moment_in(given, end),
            start=moment_in(given, "starting{}"),
            changes=changes,
            difference=difference,
            pre_images=pre_images_in(given),
            bucket=given.get("bucket"),
            owner=given.get("owner"),
            prefix=given.get("prefix"),
            where=where_of(given.get("where")),
            on_schema_conflict=given.get("onSchemaConflict"),
            strict=flag_in(given, "strict"),
            ignore_corruption=flag_in(given, "ignoreCorruption"),
            max_partition_rows=positive_in(given, "maxPartitionRows", MAX_PARTITION_ROWS),
        )


@dataclass(frozen=True)
class StreamOptions:
    """A stream of events, as the user asked for it: those after ``start``, or all, and ``with_state`` what there was at the start first.

    A time that counts from now is settled when the options are parsed.

    ``with_state`` and without a start it begins with what there is when the query first starts. The ``writer``'s ``pin`` keeps what it
    has yet to receive from being pruned; without a ``writer`` it is one called after the pin.
    """

    path: str
    storage: Mapping[str, Any] = field(default_factory=dict, repr=False)
    database: str | None = None
    table: str = "objects"
    start: Moment = _NOT_GIVEN
    with_state: bool = False
    max_files: int | None = None
    max_bytes: int | None = None
    ignore_corruption: bool = False
    max_partition_rows: int = MAX_PARTITION_ROWS
    pin: str | None = None
    writer: str | None = None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> StreamOptions:
        """The stream that these options ask for; ``InvalidOption`` names the one that cannot be."""
        given, storage = by_names(settled_options(options), NAMES_OF_STREAM)
        if "readChangeFeed" in given and not flag_in(given, "readChangeFeed"):
            raise InvalidOption("A stream is one of events.", next_step="Set readChangeFeed to true, or leave it out.")
        if "startingVersion" in given and "startingTimestamp" in given:
            raise InvalidOption("A stream starts after a version or a time.", next_step="Leave one of the two out.")
        pin, writer = given.get("pin"), given.get("writer")
        if pin is None and writer is not None:
            raise InvalidOption("A stream writes nothing but its pin.", next_step="Give pin a name, or leave writer out.")
        asked = cls(
            path=path_in(given),
            storage=storage,
            database=given.get("database"),
            table=given.get("table", "objects"),
            start=moment_in(given, "starting{}"),
            with_state=flag_in(given, "startingState"),
            max_files=positive_in(given, "maxFilesPerTrigger", None),
            max_bytes=positive_in(given, "maxBytesPerTrigger", None),
            ignore_corruption=flag_in(given, "ignoreCorruption"),
            max_partition_rows=positive_in(given, "maxPartitionRows", MAX_PARTITION_ROWS),
            pin=None if pin is None else new_pin_name(pin),
            writer=writer,
        )
        if pin is not None:
            _ = asked.pinner  # an error before anything is read
        return asked

    @property
    def pinner(self) -> WriterId:
        """Who gives the pin."""
        return writer_id(f"{PINNER_PREFIX}{self.pin}" if self.writer is None else self.writer)


def speaks_of_a_stream(options: Mapping[str, str]) -> bool:
    """Whether options can be meant of a stream alone: Spark does not say which of the two is to be read before it is."""
    names = {name.lower() for name in options}
    started = not names.isdisjoint({"startingversion", "startingtimestamp"})
    return (started and names.isdisjoint({"readchangefeed", "readdifference"})) or not names.isdisjoint(
        map(str.lower, ONLY_OF_STREAMS)
    )


def may_be_a_stream(options: Mapping[str, str]) -> bool:
    """Whether options can be meant of a stream, be it of a batch as well."""
    names = {name.lower() for name in options if not name.lower().startswith(STORAGE)}
    return speaks_of_a_stream(options) or (speaks_of_events(options) and names <= set(map(str.lower, NAMES_OF_STREAM)))


def speaks_of_events(options: Mapping[str, str]) -> bool:
    """Whether events are asked for."""
    return any(name.lower() == "readchangefeed" and value.strip().lower() == "true" for name, value in options.items())


def refuse_rows(options: Mapping[str, str]) -> None:
    """``InvalidOption`` for a stream whose options do not say that it is one of events: Spark takes its columns for those of rows."""
    if not speaks_of_events(options) and not speaks_of_a_stream(options):
        refuse_of_batches(options)
        raise InvalidOption(
            "A stream is one of change events, and nothing says so before Spark asks for its columns.",
            next_step="Set readChangeFeed to true for all events, startingVersion or startingTimestamp for those from then on, or "
            "startingState to true for what there is and the events from then on.",
        )


@dataclass(frozen=True)
class WriteOptions:
    """A write, as the user asked for it.

    Without a ``writer`` it is this machine's own, without an ``operation`` the column of that name says what each row is, else it is put.
    """

    path: str
    storage: Mapping[str, Any] = field(default_factory=dict, repr=False)
    database: str = DEFAULT_DATABASE
    table: str = "objects"
    writer: str | None = None
    operation: str | None = None
    app_id: str | None = None
    app_version: int | None = None
    bloom_filters: tuple[str, ...] | None = None

    @property
    def of_parts(self) -> dict[str, Any]:
        """Options of who takes rows for names that are no tables."""
        return {} if self.bloom_filters is None else {"bloom_filters": self.bloom_filters}

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> WriteOptions:
        """The write that these options ask for; ``InvalidOption`` names the one that cannot be."""
        given, storage = by_names(options, NAMES_OF_WRITE)
        operation = given.get("operation")
        if operation is not None and operation.lower() not in OPERATIONS:
            raise InvalidOption(f"There is no operation {operation!r}.", next_step=f"Name one of {', '.join(OPERATIONS)}.")
        if ("txnAppId" in given) != ("txnVersion" in given):
            raise InvalidOption("The options txnAppId and txnVersion go together.", next_step="Give both or neither.")
        return cls(
            path=path_in(given),
            storage=storage,
            database=given.get("database", DEFAULT_DATABASE),
            table=given.get("table", "objects"),
            writer=given.get("writer"),
            operation=None if operation is None else operation.lower(),
            app_id=given.get("txnAppId"),
            app_version=whole_in(given, "txnVersion"),
            bloom_filters=list_in(given, "bloomFilters"),
        )


def settled_options(options: Mapping[str, Any], now: int | None = None) -> dict[str, Any]:
    """The options with times that say the same whenever they are read; all that count from now count from one ``now``.

    ``InvalidTime`` for one that counts too far back.
    """
    now = clock.now_us() if now is None else now
    return {
        name: settled_time(value, now) if name.lower() in _TIMES and isinstance(value, str) else value
        for name, value in options.items()
    }


def options_between(start: Time | int | None, end: Time | int | None) -> dict[str, Any]:
    """The options that say between which times or versions something lies."""
    found: dict[str, Any] = {}
    for word, moment in zip(("starting", "ending"), span_of(start, end), strict=True):
        if moment.version is not None:
            found[f"{word}Version"] = moment.version
        if moment.timestamp is not None:
            found[f"{word}Timestamp"] = moment.timestamp
    return found


def _check_combination(given: Mapping[str, str]) -> None:
    between = {name for name in ("readChangeFeed", "readDifference") if flag_in(given, name)}
    present = {name for name in given if name not in ("readChangeFeed", "readDifference")} | between
    for one, other in _EXCLUDE:
        if one in present and other in present:
            ends = {"readChangeFeed": "; endingVersion ends the events", "readDifference": "; endingVersion is what it ends with"}
            step = f"Leave one of them out{ends.get(one, '') if other not in between else ''}."
            raise InvalidOption(f"The options {one} and {other} exclude each other.", next_step=step)
    if not between:
        for name in _OF_CHANGES:
            if name in present:
                raise InvalidOption(
                    f"The option {name} is about events and differences.",
                    next_step="Set readChangeFeed or readDifference to true, or leave it out.",
                )


def folded(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a read under the names that they are known by, whatever their case; what is not known stays."""
    known = {name.lower(): name for name in NAMES_OF_READ}
    return {known.get(name.lower(), name): value for name, value in options.items()}


def given_options(
    path: str | os.PathLike[str], database: str | None, storage_options: Mapping[str, Any] | None, options: Mapping[str, Any]
) -> dict[str, str]:
    """The options of a read as Spark carries them."""
    given = {"path": os.fspath(path)} | ({} if database is None else {"database": database})
    given |= {f"{STORAGE}{name}": _text(value) for name, value in (storage_options or {}).items()}
    options = folded(options)
    where = options.get("where")
    lists = ((name, options.get(name)) for name in ("columns", "preImages"))
    named = {name: ",".join(value) for name, value in lists if value is not None and not isinstance(value, (str, bool))}
    named |= {} if where is None or isinstance(where, str) else {"where": where_text(where)}
    return given | {name: _text(value) for name, value in {**options, **named}.items()}


def _text(value: Any) -> str:
    """An option's value as Spark carries it."""
    if isinstance(value, datetime.datetime):
        return shown_time(parse_time(value))
    if isinstance(value, (bool, Mapping, list)):
        return json.dumps(value)
    return str(value)
