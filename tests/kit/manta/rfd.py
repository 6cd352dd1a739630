"""Manta's metadata service by the SQL of RFD 149, an operation a transaction, on a real PostgreSQL.

It shares nothing with the system under test but the names of its errors. The RFD's statements are followed in what they mean: its upsert
sets every column, ``creator`` too, from the row that was given, and its listing reads the live objects. Prefixes are literal.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb, set_json_loads

from bucketcatalog.systems.manta import errors

from ..postgres import Schema
from .conditions import check

Row = dict[str, Any]

COLUMNS = (
    "id", "name", "owner", "bucket_id", "created", "modified", "creator", "content_length", "content_md5", "content_type", "headers",
    "roles", "sharks", "properties",
)  # fmt: skip
_ALL = ", ".join(COLUMNS)
_KEY = "owner = %(owner)s AND bucket_id = %(bucket_id)s AND name = %(name)s"
_GIVEN = tuple(column for column in COLUMNS if column not in ("created", "modified"))
_UPSERT = f"""
    INSERT INTO manta_bucket_object ({", ".join(_GIVEN)})
    VALUES ({", ".join(f"%({column})s" for column in _GIVEN)})
    ON CONFLICT (owner, bucket_id, name) DO UPDATE
    SET created = current_timestamp, modified = current_timestamp,
        {", ".join(f"{column} = EXCLUDED.{column}" for column in _GIVEN if column not in ("owner", "bucket_id", "name"))}
    RETURNING {_ALL}
"""
_RECORD = f"""
    INSERT INTO manta_bucket_deleted_object ({_ALL})
    SELECT {_ALL} FROM manta_bucket_object WHERE {_KEY} AND (%(empty)s OR content_length > 0)
"""
_LIST = f"""
    WITH below AS (
        SELECT {_ALL}, strpos(substr(name, length(%(prefix)s::text) + 1), %(delimiter)s::text) AS at
        FROM manta_bucket_object
        WHERE owner = %(owner)s AND bucket_id = %(bucket_id)s AND starts_with(name, %(prefix)s::text)
        AND (%(marker)s::text IS NULL OR name > %(marker)s::text COLLATE "C")
    ), entries AS (
        SELECT *, CASE WHEN at > 0 THEN left(name, length(%(prefix)s::text) + at) END AS in_group FROM below
    )
    SELECT DISTINCT ON (coalesce(in_group, name) COLLATE "C") {_ALL}, in_group
    FROM entries
    ORDER BY coalesce(in_group, name) COLLATE "C", name
    LIMIT %(limit)s
"""
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_LABELS = re.compile(r"(?!-)[a-z0-9-]+(?<!-)(?:\.(?!-)[a-z0-9-]+(?<!-))*")
_FOUR_NUMBERS = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}")


@dataclass(frozen=True)
class Listing:
    """A page: rows and groups in the order of their names' bytes, and the marker that the service tells for the next page, if any."""

    rows: Sequence[Row]
    groups: Sequence[Row]
    next_marker: str | None


class Rfd:
    """The service's operations, with the parameters and answers of the system's; wrong values of a type are PostgreSQL's ``DataError``."""

    def __init__(self, schema: Schema, *, zero_byte_tombstones: bool = True) -> None:
        self._schema = schema
        self._connection = schema.connection
        self._empty = zero_byte_tombstones
        self._batch: tuple[str | None, list[Row]] = (None, [])
        set_json_loads(json.loads, self._connection)

    def createbucket(self, *, owner: str, name: str) -> Row:
        drawn = {"id": uuid.uuid4(), "owner": owner, "name": _bucket_name(name)}
        found = self._execute(
            "INSERT INTO manta_bucket (id, owner, name) VALUES (%(id)s, %(owner)s, %(name)s) ON CONFLICT DO NOTHING"
            " RETURNING id, owner, name, created",
            drawn,
        )
        if not found:
            raise errors.BucketAlreadyExists(name, next_step="")
        return _texts(found[0])

    def getbucket(self, *, owner: str, name: str) -> Row:
        query = "SELECT id, owner, name, created FROM manta_bucket WHERE owner = %(owner)s AND name = %(name)s"
        found = self._execute(query, {"owner": owner, "name": name})
        if not found:
            raise errors.BucketNotFound(name, next_step="")
        return _texts(found[0])

    def deletebucket(self, *, owner: str, name: str, only_empty: bool = True) -> int:
        with self._connection.transaction():
            bucket = self.getbucket(owner=owner, name=name)
            inside = self._execute(
                "SELECT 1 AS one FROM manta_bucket_object WHERE owner = %(owner)s AND bucket_id = %(id)s LIMIT 1", bucket
            )
            if inside and only_empty:
                raise errors.BucketNotEmpty(name, next_step="")
            deleted = self._execute(
                """
                WITH write_deletion_record AS (
                    INSERT INTO manta_bucket_deleted_bucket (id, owner, name, created)
                    SELECT id, owner, name, created FROM manta_bucket WHERE owner = %(owner)s AND name = %(name)s
                )
                DELETE FROM manta_bucket WHERE owner = %(owner)s AND name = %(name)s RETURNING id
                """,
                bucket,
            )
            return len(deleted)

    def listbuckets(self, *, owner: str, prefix: str = "", marker: str | None = None, limit: int = 1000) -> Listing:
        found = self._execute(
            """
            SELECT id, owner, name, created FROM manta_bucket
            WHERE owner = %(owner)s AND starts_with(name, %(prefix)s::text)
            AND (%(marker)s::text IS NULL OR name > %(marker)s::text COLLATE "C")
            ORDER BY name LIMIT %(limit)s
            """,
            {"owner": owner, "prefix": prefix, "marker": marker, "limit": _limit(limit) + 1},
        )
        rows = [_texts(row) for row in found[:limit]]
        return Listing(rows, [], rows[-1]["name"] if len(found) > limit else None)

    def createobject(
        self,
        *,
        owner: str,
        bucket_id: str,
        name: str,
        id: str,
        content_length: int | None = None,
        content_md5: str | None = None,
        content_type: str | None = None,
        headers: Mapping[str, str] | None = None,
        sharks: Sequence[Any] | None = None,
        properties: Any = None,
        creator: str | None = None,
        roles: Sequence[str] | None = None,
        conditions: Mapping[str, Any] | None = None,
    ) -> Row:
        row = {
            "owner": owner,
            "bucket_id": bucket_id,
            "name": _object_name(name),
            "id": id,
            "creator": creator,
            "content_length": content_length,
            "content_md5": _md5(content_md5),
            "content_type": content_type,
            "headers": None if headers is None else self._schema.headers(dict(headers)),
            "roles": None if roles is None else list(roles),
            "sharks": None if sharks is None else [_shark(shark) for shark in sharks],
            "properties": _json(properties),
        }
        with self._connection.transaction():
            check(conditions, self._live(row))
            self._connection.execute(_RECORD, {**row, "empty": self._empty})
            return _payload(self._execute(_UPSERT, row)[0])

    def getobject(self, *, owner: str, bucket_id: str, name: str, conditions: Mapping[str, Any] | None = None) -> Row:
        found = self._live({"owner": owner, "bucket_id": bucket_id, "name": _object_name(name)})
        check(conditions, found)
        return _payload(_there(name, found))

    def updateobject(
        self,
        *,
        owner: str,
        bucket_id: str,
        name: str,
        content_type: str | None,
        headers: Mapping[str, str] | None,
        properties: Any = None,
        conditions: Mapping[str, Any] | None = None,
    ) -> Row:
        row = {
            "owner": owner,
            "bucket_id": bucket_id,
            "name": _object_name(name),
            "content_type": content_type,
            "headers": None if headers is None else self._schema.headers(dict(headers)),
            "properties": _json(properties),
        }
        with self._connection.transaction():
            found = self._live(row)
            check(conditions, found)
            _there(name, found)
            query = f"""
                UPDATE manta_bucket_object SET modified = current_timestamp, content_type = %(content_type)s, headers = %(headers)s,
                properties = %(properties)s WHERE {_KEY} RETURNING {_ALL}
            """
            return _payload(self._execute(query, row)[0])

    def deleteobject(self, *, owner: str, bucket_id: str, name: str, conditions: Mapping[str, Any] | None = None) -> list[Row]:
        key = {"owner": owner, "bucket_id": bucket_id, "name": _object_name(name)}
        with self._connection.transaction():
            found = self._live(key)
            check(conditions, found)
            _there(name, found)
            self._connection.execute(_RECORD, {**key, "empty": self._empty})
            told = "id, owner, bucket_id, name, content_length, coalesce(cardinality(sharks), 0) AS shark_count"
            return [_texts(row) for row in self._execute(f"DELETE FROM manta_bucket_object WHERE {_KEY} RETURNING {told}", key)]

    def listobjects(
        self,
        *,
        owner: str,
        bucket_id: str,
        prefix: str = "",
        marker: str | None = None,
        delimiter: str | None = None,
        limit: int = 1000,
    ) -> Listing:
        found = self._execute(
            _LIST,
            {
                "owner": owner,
                "bucket_id": bucket_id,
                "prefix": prefix,
                "marker": marker,
                "delimiter": delimiter,
                "limit": _limit(limit) + 1,
            },
        )
        entries = [(row.pop("in_group"), row) for row in found[:limit]]
        groups = [_group(group) for group, _ in entries if group is not None]
        last = None
        if len(found) > limit:
            last = groups[-1]["nextMarker"] if entries[-1][0] is not None else entries[-1][1]["name"]
        return Listing([_payload(row) for group, row in entries if group is None], groups, last)

    def table(self, name: str) -> list[Row]:
        """All rows of one of the four tables, uuids as text."""
        return [_texts(row) for row in self._execute(f"SELECT * FROM {name}", {})]

    def _live(self, key: Mapping[str, Any]) -> Row | None:
        named = {column: key[column] for column in ("owner", "bucket_id", "name")}
        return next(iter(self._execute(f"SELECT {_ALL} FROM manta_bucket_object WHERE {_KEY}", named)), None)

    def getgcbatch(self) -> Row:
        """The records of at most 1,000 deleted objects, the same until they are deleted: the service keeps them in a view.

        Other than there, none whose id the live object of its name has: a difference that is meant.
        """
        if not self._batch[1]:
            query = f"""
                SELECT {_ALL}, deleted_at FROM manta_bucket_deleted_object AS d WHERE NOT EXISTS (
                    SELECT 1 FROM manta_bucket_object AS o WHERE (o.owner, o.bucket_id, o.name, o.id) = (d.owner, d.bucket_id, d.name, d.id)
                ) ORDER BY deleted_at, name COLLATE "C" LIMIT 1000"""
            rows = [{**_payload(row), "deleted_at": row["deleted_at"]} for row in self._execute(query, {})]
            self._batch = (str(uuid.uuid4()) if rows else None, rows)
        return {"batch_id": self._batch[0], "garbage": self._batch[1]}

    def deletegcbatch(self, *, batch_id: str) -> str:
        """By what the RFD removes a record by, and the time at which it ended, since one that ends later may have the same id."""
        if batch_id == self._batch[0]:
            for row in self._batch[1]:
                query = f"DELETE FROM manta_bucket_deleted_object WHERE {_KEY} AND id = %(id)s AND deleted_at = %(deleted_at)s"
                self._connection.execute(query, {name: row[name] for name in ("owner", "bucket_id", "name", "id", "deleted_at")})
            self._batch = (None, [])
        return "ok"

    def deletedbuckets(self, limit: int) -> list[Row]:
        query = "SELECT id, owner, name, created, deleted_at FROM manta_bucket_deleted_bucket ORDER BY deleted_at LIMIT %(limit)s"
        return [_texts(row) for row in self._execute(query, {"limit": limit})]

    def removedeletedbucket(self, *, owner: str, name: str, id: str) -> int:
        """The RFD's condition: the storage of its objects has been released before."""
        named = {"owner": owner, "name": name, "id": id}
        for table in ("manta_bucket_object", "manta_bucket_deleted_object"):
            query = f"SELECT 1 AS one FROM {table} WHERE owner = %(owner)s AND bucket_id = %(id)s LIMIT 1"
            if self._execute(query, named):
                raise errors.BucketNotEmpty(name, next_step="")
        query = "DELETE FROM manta_bucket_deleted_bucket WHERE id = %(id)s AND owner = %(owner)s AND name = %(name)s RETURNING id"
        return len(self._execute(query, named))

    def _execute(self, query: str, parameters: Mapping[str, Any]) -> list[Row]:
        with self._connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(query, parameters).fetchall()


def _there(name: str, found: Row | None) -> Row:
    if found is None:
        raise errors.ObjectNotFound(name, next_step="")
    return found


def _group(name: str) -> Row:
    """A group, and what the service has a client go on with: the group with the next character in place of the delimiter."""
    following = ord(name[-1]) + 1
    following = 0xE000 if following == 0xD800 else following
    return {"name": name, "type": "group", "nextMarker": name[:-1] + chr(following) if following < 0x110000 else name}


def _texts(row: Row) -> Row:
    return {column: _text(value) for column, value in row.items()}


def _text(value: Any) -> Any:
    if isinstance(value, uuid.UUID):
        return str(value)
    return [_text(one) for one in value] if isinstance(value, list) else value


def _payload(row: Row) -> Row:
    """An object as the service sends it; arrays and maps that are NULL are empty."""
    pairs = [shark.split(":", 1) for shark in row["sharks"] or ()]
    md5 = row["content_md5"]
    return {
        **_texts(row),
        "content_md5": None if md5 is None else base64.b64encode(md5).decode(),
        "headers": row["headers"] or {},
        "roles": _text(row["roles"] or []),
        "sharks": [{"datacenter": datacenter, "manta_storage_id": id_} for datacenter, id_ in pairs],
    }


def _shark(shark: Any) -> str:
    return shark if isinstance(shark, str) else f"{shark['datacenter']}:{shark['manta_storage_id']}"


def _json(value: Any) -> Jsonb | None:
    """Text is JSON already, whatever else is not."""
    return None if value is None else Jsonb(value, dumps=lambda given: given if isinstance(given, str) else json.dumps(given))


def _md5(text: str | None) -> bytes | None:
    if text is None:
        return None
    if not _BASE64.fullmatch(text):
        raise errors.ContentMd5Error(text, next_step="")
    return base64.b64decode(text)


def _limit(limit: int) -> int:
    if not 1 <= limit <= 1024:
        raise errors.LimitConstraintError(str(limit), next_step="")
    return limit


def _bucket_name(name: str) -> str:
    if not 3 <= len(name) <= 63 or not _LABELS.fullmatch(name) or _FOUR_NUMBERS.fullmatch(name):
        raise errors.InvalidBucketNameError(repr(name), next_step="")
    return name


def _object_name(name: str) -> str:
    size = len(name.encode(errors="surrogatepass"))
    if not 1 <= size <= 1024 or "\0" in name or any("\ud800" <= character <= "\udfff" for character in name):
        raise errors.InvalidBucketObjectNameError(repr(name), next_step="")
    return name
