"""What is meant to differ from the service on PostgreSQL: one list, each with its reason, and what the comparison does about it."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import format_datetime
from typing import Any, Protocol
from uuid import UUID

import psycopg

from bucketcatalog.errors import UsageError
from bucketcatalog.systems.manta.errors import MantaError

from .steps import NO_BUCKET, NO_OBJECT, OWNERS

Row = dict[str, Any]
WRONG_VALUE = "a value that the type does not take"
BEHIND = "\U0010ffff" * 256
"""Behind every name that has anything at all in common with what stands before it: names have 1,024 bytes at most."""
_OBJECT = {"owner": OWNERS[0], "bucket_id": NO_BUCKET, "id": NO_OBJECT}
_TIME = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


class Side(Protocol):
    """One of the two: the service's operations, and its tables as lists of rows."""

    @property
    def service(self) -> Any: ...

    def table(self, name: str) -> list[Row]: ...


@dataclass(frozen=True)
class Difference:
    """One thing that differs, why, and what shows it: a question that both answer, on empty tables, with ``ours`` and with ``theirs``."""

    what: str
    reason: str
    show: Callable[[Side], Any]
    ours: Any
    theirs: Any


def error_name(error: Exception) -> str:
    """An error as it is compared."""
    if isinstance(error, MantaError):
        return error.name
    if isinstance(error, UsageError | psycopg.DataError):
        return WRONG_VALUE
    raise error


def plain(row: Mapping[str, Any]) -> Row:
    """A row with empty arrays and maps as None, maps as dicts, and JSON as what it says."""
    shown = dict(row)
    if isinstance(shown.get("headers"), list):
        shown["headers"] = dict(shown["headers"])
    for name in ("headers", "roles", "sharks"):
        if name in shown:
            shown[name] = shown[name] or None
    if isinstance(shown.get("properties"), str):
        shown["properties"] = json.loads(shown["properties"])
    return shown


def service_marker(marker: str | None, prefix: str, delimiter: str | None) -> str | None:
    """What the service is to be given for a marker of ours: one that lies in a group stands for the whole of it."""
    if marker is None or delimiter is None or not marker.startswith(prefix):
        return marker
    at = marker.find(delimiter, len(prefix))
    return marker if at < 0 else marker[: at + len(delimiter)] + BEHIND


def our_marker(marker: str | None, rows: Sequence[Row], groups: Sequence[Row]) -> str | None:
    """What our marker is where the service tells of one: where a page ends in a group, the group."""
    if marker is None or not groups or any(row["name"].encode() > groups[-1]["name"].encode() for row in rows):
        return marker
    assert marker == groups[-1]["nextMarker"]
    return str(groups[-1]["name"])


def http_time(time: datetime.datetime) -> tuple[str, datetime.datetime]:
    """A time as HTTP writes it, and the moment of that second that the service has to be given for the same answer."""
    second = time.astimezone(datetime.UTC).replace(microsecond=0)
    return format_datetime(second, usegmt=True), second.replace(microsecond=999_999)


def _answer(ask: Callable[[], Any]) -> str:
    try:
        ask()
    except (MantaError, UsageError, psycopg.DataError) as error:
        return type(error).__name__
    return "taken"


def _bucket_version(side: Side) -> Any:
    return UUID(side.service.createbucket(owner=OWNERS[0], name="abc")["id"]).version


def _same_id_again(side: Side) -> Any:
    """Whether both lists are empty ones, or one is none."""
    side.service.createobject(name="a", roles=None, **_OBJECT)
    side.service.createobject(name="b", roles=[], **_OBJECT)
    one, other = sorted(side.table("manta_bucket_object"), key=lambda row: row["name"])
    return one["roles"] == other["roles"]


def _properties(side: Side) -> Any:
    side.service.createobject(name="a", properties='{"b": 1, "a": 1, "a": 2}', **_OBJECT)
    (row,) = side.table("manta_bucket_object")
    return row["properties"] if isinstance(row["properties"], str) else json.dumps(row["properties"])


def _behind_a_group(side: Side) -> Any:
    for name in ("a/b", "a0"):
        side.service.createobject(name=name, **_OBJECT)
    asked = {"owner": OWNERS[0], "bucket_id": NO_BUCKET, "delimiter": "/", "limit": 1}
    first = side.service.listobjects(**asked)
    return [row["name"] for row in side.service.listobjects(**asked, marker=first.next_marker).rows]


def _within_a_group(side: Side) -> Any:
    for name in ("a/b", "a/c"):
        side.service.createobject(name=name, **_OBJECT)
    page = side.service.listobjects(owner=OWNERS[0], bucket_id=NO_BUCKET, delimiter="/", marker="a/b")
    return [group["name"] for group in page.groups]


def _whole_seconds(side: Side) -> Any:
    modified = side.service.createobject(name="a", **_OBJECT)["modified"]
    if not modified.microsecond:
        modified = side.service.updateobject(owner=OWNERS[0], bucket_id=NO_BUCKET, name="a", content_type=None, headers=None)[
            "modified"
        ]
    told = {"if-unmodified-since": http_time(modified)[0]}
    return _answer(lambda: side.service.getobject(owner=OWNERS[0], bucket_id=NO_BUCKET, name="a", conditions=told))


def _creates(**arguments: Any) -> Callable[[Side], Any]:
    return lambda side: _answer(lambda: side.service.createobject(name="a", **_OBJECT, **arguments))


DIFFERENCES = (
    Difference(
        "The id of a bucket is of version 5.",
        "It follows from owner, name and past buckets, so that nodes that create one at once create one bucket; the RFD leaves it open.",
        _bucket_version,
        ours=5,
        theirs=4,
    ),
    Difference(
        "Lists and maps that are NULL are empty ones.",
        "The format has no NULL for them, and to the service they mean the same.",
        _same_id_again,
        ours=True,
        theirs=False,
    ),
    Difference(
        "Properties are the JSON text that was given.",
        "jsonb keeps the last of equal keys and an order of its own; what they say is the same.",
        _properties,
        ours='{"b": 1, "a": 1, "a": 2}',
        theirs='{"a": 2, "b": 1}',
    ),
    Difference(
        "The marker of a group is the group.",
        "The service's, with the next character in place of the delimiter, passes over an object whose name is just that.",
        _behind_a_group,
        ours=["a0"],
        theirs=[],
    ),
    Difference(
        "A marker within a group passes over all of it.",
        "The group sorts before the marker, and pages that go on from one another hold no group twice.",
        _within_a_group,
        ours=[],
        theirs=["a/"],
    ),
    Difference(
        "What was modified within the second that an HTTP date names was not modified since.",
        "HTTP has no smaller unit: a client that gives back the date that it was told must not be refused.",
        _whole_seconds,
        ours="taken",
        theirs="PreconditionFailedError",
    ),
    Difference(
        "An MD5 has 16 bytes.",
        "The service takes any base64, which then is the MD5 of nothing.",
        _creates(content_md5="aaaa"),
        ours="ContentMd5Error",
        theirs="taken",
    ),
    Difference(
        "A length is not negative.",
        "bigint takes it, and sums of bytes would be wrong ever after.",
        _creates(content_length=-1),
        ours="InvalidRows",
        theirs="taken",
    ),
    Difference(
        "Texts other than names may contain NUL.",
        "It is PostgreSQL's text that cannot.",
        _creates(content_type="a\0b"),
        ours="taken",
        theirs="DataError",
    ),
    Difference(
        "Properties may be any JSON.",
        "It is jsonb that has no NUL in its texts.",
        _creates(properties='"\\u0000"'),
        ours="taken",
        theirs="UntranslatableCharacter",
    ),
    Difference(
        "A condition that there is not is refused.",
        "Who misspells one would overwrite what it was to save; the service passes over it.",
        _creates(conditions={"if-mach": "*"}),
        ours="InvalidOption",
        theirs="taken",
    ),
    Difference(
        "A value of the wrong type is a usage error of the engine's.",
        "The service sends PostgreSQL's error on as PostgresError.",
        lambda side: _answer(lambda: side.service.createbucket(owner="nobody", name="abc")),
        ours="InvalidOption",
        theirs="InvalidTextRepresentation",
    ),
)
