"""The operations of Manta's metadata service, on the core tables ``buckets`` and ``objects``.

Names, payloads, results and errors are the service's; what it leaves open, or has wrong, is as the guide says. Each operation that changes
something is one commit, shared with those that other threads make at the same moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from ... import clock
from ...catalog import DEFAULT_DATABASE, Catalog
from ...errors import InvalidOption
from ...model.coerce import storage_row
from ...model.names import writer_id
from ...model.times import Age, datetime_of
from ...wording import either
from ...write.derived_ids import ids_of
from ...write.given import GivenRows
from ...write.intake import checked_rows
from ...write.writer import Writer
from .commits import Commit, Commits, Decision, Event, Operation
from .conditions import Conditions
from .errors import BucketAlreadyExists, BucketNotEmpty, BucketNotFound, ObjectNotFound
from .garbage import TABLE as GARBAGE_TABLE
from .garbage import Garbage
from .known import Key, Known, Row
from .names import bucket_name, md5_bytes, object_name, page_delimiter, page_limit, shark_texts, uuid_text
from .payloads import OBJECT, OBJECT_KEY, TIMES, Listing, bucket_payload, deleted_payload, listing, object_payload
from .placement import TABLE as PLACEMENT_TABLE
from .placement import Placement, node_of_bucket, node_of_object

Result = TypeVar("Result")


class Manta:
    """A node of the service: it commits by one writer, which nobody else opens, and reads what all have committed. Threads may share it.

    What it is asked, and conditions, are answered by what has been committed by then. ``fresh`` says by how many seconds that may be older
    of other writers, which saves a look at the store; what it has committed itself it always knows. Without ``zero_byte_tombstones`` it
    forgets objects without content once they are deleted or overwritten, as the service does; the RFD records them as any other. No batch
    of garbage has what ended later than ``grace`` ago. ``clock`` gives the time in microseconds. ``placement`` says which names are whose,
    and moves them. A context manager; ``close`` ends its writer.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        writer: str,
        database: str = DEFAULT_DATABASE,
        fresh: float = 0.0,
        zero_byte_tombstones: bool = True,
        grace: Age = "24h",
        clock: Callable[[], int] = clock.now_us,
    ) -> None:
        if not isinstance(catalog, Catalog):
            raise InvalidOption(f"{catalog!r} is no catalog.", next_step="Give Catalog(PATH).")
        if isinstance(fresh, bool) or not isinstance(fresh, int | float) or not fresh >= 0:
            raise InvalidOption(f"fresh cannot be {fresh!r}.", next_step="Give seconds, 0 or more.")
        writer = writer_id(writer)
        self._zero_byte_tombstones = zero_byte_tombstones
        self._objects = catalog.database(database).definition("objects", by=writer)
        self._known = Known(catalog.database(database).look, "objects", OBJECT_KEY, fresh)

        def opened() -> Writer:
            held = catalog.writer(writer, database=database, clock=clock)
            try:
                held.declare([GARBAGE_TABLE, PLACEMENT_TABLE])  # by which readers of the database find that it is a Manta's
            except BaseException:
                held.close()
                raise
            return held

        self._commits = Commits(opened, self._known.took, self._known.forget)
        self.placement = Placement(writer, self._known, self._commits)
        self._garbage = Garbage(catalog, database, self._known, self._commits, grace)

    def close(self) -> None:
        """End the writer; what was committed stays."""
        self._commits.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def createbucket(self, *, owner: str, name: str) -> Row:
        """Create a bucket; ``BucketAlreadyExists`` where the owner has one of that name. Its id follows from the two and its past ones.

        A look follows the commit: where another node had made another bucket of that name meanwhile, that one is put back, and where one
        of this id had been deleted, this is made anew.
        """
        key = {"owner": uuid_text("owner", owner), "name": bucket_name(name)}

        def decide(since: float) -> Decision[Row]:
            self.placement.check(partial(node_of_bucket, key["owner"], name))
            snapshot = self._known.snapshot(since)
            if snapshot.get("buckets", **key) is not None:
                raise BucketAlreadyExists(f"Owner {owner} has a bucket {name!r}.", next_step="Use it, or choose another name.")
            row = {**key, "id": ids_of(snapshot, "buckets", [key])[0]}
            event = Event("put", "buckets", row, expect="absent")
            return Decision([event], lambda commit: bucket_payload({**row, "created": datetime_of(commit.time)}))

        created = self._commits.run(Operation("createbucket", frozenset({("bucket", *key.values())}), decide))
        return self._unless_it_is_anothers(key, created)

    def getbucket(self, *, owner: str, name: str) -> Row:
        """A bucket; ``BucketNotFound`` where the owner has none of that name."""
        return bucket_payload(self._bucket(_bucket_key(owner, name)))

    def deletebucket(self, *, owner: str, name: str, only_empty: bool = True) -> int:
        """Delete a bucket, and say of how many rows; ``BucketNotFound`` where there is none, ``BucketNotEmpty`` where it has objects.

        The metadata service deletes one with objects too, as ``only_empty=False`` does. They stay, below the id of the bucket that has
        ended, until they are reaped.
        """
        key = _bucket_key(owner, name)

        def decide(since: float) -> Decision[int]:
            bucket = self._bucket(key, since)
            self.placement.check(partial(node_of_bucket, bucket["owner"], name))
            inside = self._known.snapshot(since).list("objects", owner=key["owner"], bucket_id=bucket["id"], limit=1)
            if only_empty and len(inside.rows):
                raise BucketNotEmpty(
                    f"The bucket {name!r} of owner {owner} has objects.",
                    next_step="Delete its objects first, or it with them: " + either("only_empty=False.", "--with-objects."),
                )
            event = Event("delete", "buckets", {**key, "_version": bucket["_version"]})
            return Decision([event], lambda commit: 1)

        return self._commits.run(Operation("deletebucket", frozenset({("bucket", *key.values())}), decide, alone=True))

    def listbuckets(self, *, owner: str, prefix: str = "", marker: str | None = None, limit: int = 1000) -> Listing:
        """A page of an owner's buckets by name, of those after ``marker``; ``LimitConstraintError`` unless of 1 to 1,024."""
        owner = uuid_text("owner", owner)
        page = self._known.snapshot().list("buckets", owner=owner, prefix=prefix, marker=marker, limit=page_limit(limit))
        return listing(page, bucket_payload)

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
        sharks: Iterable[Any] | None = None,
        properties: Any = None,
        creator: str | None = None,
        roles: Sequence[str] | None = None,
        conditions: Mapping[str, Any] | None = None,
    ) -> Row:
        """Create an object, or overwrite what has its name, which then is recorded as deleted; the whole row.

        ``ContentMd5Error`` for an MD5 that is none; ``PreconditionFailedError`` or ``ObjectNotFound`` where the conditions do not hold.
        Without conditions nothing is looked up, unless objects without content leave no record. Whether there is a bucket of that id is
        not asked.
        """
        asked = Conditions.of(conditions)
        given = self._checked(
            {
                **_key(owner, bucket_id, name),
                "id": uuid_text("id", id),
                "creator": creator,
                "content_length": content_length,
                "content_md5": md5_bytes(content_md5),
                "content_type": content_type,
                "headers": headers,
                "roles": roles,
                "sharks": shark_texts(sharks),
                "properties": properties,
            }
        )
        row = self._shown(given)

        def decide(key: Key, since: float) -> Decision[Row]:
            if not asked and self._zero_byte_tombstones:
                return self._created(key, row, [Event("put", "objects", given)])
            found = self._known.rows([key], since)[0]
            asked.check(name, found)
            expect = None if not asked else "absent" if found is None else found["_version"]
            return self._created(key, row, [Event("put", "objects", given, expect=expect), *self._forgotten(found)])

        return self._of_object("createobject", row, decide)

    def getobject(self, *, owner: str, bucket_id: str, name: str, conditions: Mapping[str, Any] | None = None) -> Row:
        """An object; ``ObjectNotFound`` where there is none, ``PreconditionFailedError`` where the conditions do not hold of it."""
        asked = Conditions.of(conditions)
        found = self._known.rows([tuple(_key(owner, bucket_id, name).values())])[0]
        asked.check(name, found)
        return object_payload(_there(name, found))

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
        """Replace what describes an object: type, headers and properties; the whole row, whose ``modified`` is the time of now.

        Its id, and so its entity tag, and all that says what and where its content is stay. ``ObjectNotFound`` where there is none.
        """
        asked = Conditions.of(conditions)
        key = _key(owner, bucket_id, name)
        describing = {"content_type": content_type, "headers": headers, "properties": properties}
        stored = storage_row(self._objects, {**key, **describing})
        described = {name: stored.get(self._objects.by_name[name].field_name) for name in describing}

        def decide(key: Key, since: float) -> Decision[Row]:
            found = self._known.rows([key], since)[0]
            asked.check(name, found)
            row = {**_there(name, found), **described}
            row.pop("modified")

            def updated(commit: Commit) -> Row:
                return {**row, "modified": datetime_of(commit.time)}

            events = [Event("update", "objects", row)]
            return Decision(events, lambda commit: object_payload(updated(commit)), lambda commit: [(key, updated(commit))])

        return self._of_object("updateobject", key, decide)

    def deleteobject(self, *, owner: str, bucket_id: str, name: str, conditions: Mapping[str, Any] | None = None) -> list[Row]:
        """Delete an object, and say what it was, in a list of one; ``ObjectNotFound`` where there is none."""
        asked = Conditions.of(conditions)

        def decide(key: Key, since: float) -> Decision[list[Row]]:
            found = self._known.rows([key], since)[0]
            asked.check(name, found)
            row = _there(name, found)
            named, version = dict(zip(OBJECT_KEY, key, strict=True)), row["_version"]
            # Under a condition it ends what meets that, else what is live, whatever came of it meanwhile.
            end = Event("delete", "objects", {**named, "_version": version} if asked else named, None if asked else version)
            events = [end, *self._forgotten(row)]
            return Decision(events, lambda commit: [deleted_payload(row)], lambda commit: [(key, None)])

        return self._of_object("deleteobject", _key(owner, bucket_id, name), decide)

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
        """A page of a bucket's objects by name, of those after ``marker``; ``LimitConstraintError`` unless of 1 to 1,024.

        ``prefix`` is literal. Names that share what lies between it and the next ``delimiter``, one character, make one group.
        """
        page = self._known.snapshot().list(
            "objects",
            owner=uuid_text("owner", owner),
            bucket_id=uuid_text("bucket_id", bucket_id),
            prefix=prefix,
            marker=marker,
            delimiter=page_delimiter(delimiter),
            limit=page_limit(limit),
        )
        return listing(page, object_payload)

    def getgcbatch(self) -> Row:
        """The batch of garbage: ``batch_id`` and ``garbage``, objects that were deleted or overwritten longer ago than ``grace``.

        It is the same on all nodes until it is deleted; where there is no garbage its id is None.
        """
        return self._garbage.batch()

    def deletegcbatch(self, *, batch_id: str) -> str:
        """Remove the records of the batch of garbage, whose space was freed; nothing where ``batch_id`` is not its id. Returns ``ok``."""
        return self._garbage.delete_batch(batch_id)

    def deletedbuckets(self, *, older_than: Age = "24h", limit: int = 25) -> list[Row]:
        """The records of buckets that were deleted first, of those deleted so long ago (RFD 149, queries)."""
        return self._garbage.buckets(older_than, page_limit(limit))

    def deletedobjects(self, *, older_than: Age = "24h", limit: int = 100) -> list[Row]:
        """The records of objects that were deleted or overwritten first, of those so long ago (RFD 149, queries)."""
        return self._garbage.objects(older_than, page_limit(limit))

    def removedeletedbucket(self, *, owner: str, name: str, id: str) -> int:
        """Remove the records of a deleted bucket, and say how many there were; ``BucketNotEmpty`` before those of its objects are."""
        return self._garbage.remove_bucket({"owner": uuid_text("owner", owner), "name": name}, uuid_text("id", id))

    def removedeletedobject(self, *, owner: str, bucket_id: str, name: str, id: str) -> int:
        """Remove the records of a deleted object, all that have its name and id, and say how many there were."""
        return self._garbage.remove_object(_key(owner, bucket_id, name), uuid_text("id", id))

    def _bucket(self, key: Mapping[str, str], since: float | None = None) -> Row:
        columns = ("id", "owner", "name", "created", "_version")
        found = self._known.snapshot(since).get_all("buckets", [key], columns=columns)[0]
        if found is None:
            raise BucketNotFound(f"Owner {key['owner']} has no bucket {key['name']!r}.", next_step="List the owner's buckets.")
        return found

    def _unless_it_is_anothers(self, key: Mapping[str, str], created: Row) -> Row:
        """A bucket that was created, unless its commit has ended one of another id, or its id had been a deleted bucket's."""
        snapshot = self._known.snapshot()
        live = snapshot.get_all("buckets", [key], columns=["id", "created", "_version"])[0]
        if live is None or (live["id"], live["created"]) != (created["id"], created["created"]):
            return created  # somebody came after it
        ended = snapshot.scan("deleted_buckets", columns=["id", "created", "deleted_at"], where=key).to_arrow().to_pylist()
        others = [row["id"] for row in ended if row["deleted_at"] == created["created"] and row["id"] != created["id"]]
        if others:
            self._change_bucket("createbucket", key, Event("put", "buckets", {**key, "id": others[-1]}, expect=live["_version"]))
            raise BucketAlreadyExists(
                f"Owner {key['owner']} has a bucket {key['name']!r}.", next_step="Use it, or choose another name."
            )
        followed = {created["created"], *(row["created"] for row in ended if row["id"] == created["id"])}
        if any(row["id"] == created["id"] and row["deleted_at"] not in followed for row in ended):
            self._change_bucket("deletebucket", key, Event("delete", "buckets", {**key, "_version": live["_version"]}))
            return self.createbucket(**key)
        return created

    def _change_bucket(self, operation: str, key: Mapping[str, str], event: Event) -> None:
        decision = Decision([event], lambda commit: None)
        self._commits.run(Operation(operation, frozenset({("bucket", *key.values())}), lambda since: decision, alone=True))

    def _of_object(self, operation: str, row: Mapping[str, Any], decide: Callable[[Key, float], Decision[Result]]) -> Result:
        key = tuple(row[name] for name in OBJECT_KEY)

        def decided(since: float) -> Decision[Result]:
            self.placement.check(partial(node_of_object, *key))
            return decide(key, since)

        return self._commits.run(Operation(operation, frozenset({key}), decided))

    def _checked(self, row: Row) -> GivenRows:
        """An object that is to be put; ``InvalidRows`` where it does not fit. Others do not wait for that, as they would in the commit."""
        return checked_rows(self._objects, [row])

    def _shown(self, given: GivenRows) -> Row:
        """Such an object as readers see it once it is stored, but for its times."""
        stored = given.rows[0]
        return {name: stored.get(self._objects.by_name[name].field_name) for name in OBJECT if name not in TIMES}

    def _created(self, key: Key, row: Row, events: Sequence[Event]) -> Decision[Row]:
        def created(commit: Commit) -> Row:
            time = datetime_of(commit.time)
            return {**row, "created": time, "modified": time, "_version": commit.version}

        return Decision(events, lambda commit: object_payload(created(commit)), lambda commit: [(key, created(commit))])

    def _forgotten(self, found: Row | None) -> list[Event]:
        """What forgets a version without content that has ended, where nothing is to be recorded of such."""
        if found is None or self._zero_byte_tombstones or found["content_length"]:
            return []
        return [Event("purge", "objects", {**{name: found[name] for name in OBJECT_KEY}, "_version": found["_version"]})]


def _key(owner: str, bucket_id: str, name: str) -> dict[str, str]:
    return {"owner": uuid_text("owner", owner), "bucket_id": uuid_text("bucket_id", bucket_id), "name": object_name(name)}


def _bucket_key(owner: str, name: str) -> dict[str, str]:
    return {"owner": uuid_text("owner", owner), "name": name}


def _there(name: str, found: Row | None) -> Row:
    if found is None:
        raise ObjectNotFound(f"There is no object {name!r}.", next_step="List the bucket's objects.")
    return found
