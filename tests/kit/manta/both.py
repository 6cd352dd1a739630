"""Runs a trace against the system and against PostgreSQL, and compares all that each answers.

Ids of buckets are paired when they are made. Times are compared by their order: which of the two has been seen before, and what was later.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from bucketcatalog import Catalog
from bucketcatalog.catalog import DEFAULT_DATABASE
from bucketcatalog.errors import CatalogNotFound
from bucketcatalog.store.local import LocalStore
from bucketcatalog.systems.manta.operations import Manta

from ..postgres import Schema
from .differences import error_name, http_time, our_marker, plain, service_marker
from .rfd import Rfd
from .steps import NO_BUCKET, NO_OBJECT, OWNERS, Checkpoint, OfBucket, OfObject, Pause, Step, Tags, Trace, When
from .traces import bucket_page, object_page

Row = dict[str, Any]
EVERY = 25
"""After so many steps tables and pages are compared."""
TABLES = ("manta_bucket", "manta_bucket_object", "manta_bucket_deleted_bucket", "manta_bucket_deleted_object")
PAGES = 2
"""So many pages of each of two buckets are compared, and one of each owner's buckets."""
TIMES = ("created", "modified", "deleted_at")
COMPACTOR = "compactor-1"
_NOTHING = {"id": NO_OBJECT, "modified": datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)}
_NONE = _NOTHING, _NOTHING
"""What conditions of an object that is not there are about."""


@dataclass
class Ours:
    """The system: its tables are its views, as a catalog of its own shows them."""

    catalog: Catalog
    service: Manta

    def table(self, name: str) -> list[Row]:
        try:
            snapshot = self.catalog.snapshot(database=DEFAULT_DATABASE)
        except CatalogNotFound:  # nothing has been committed yet
            return []
        rows: list[Row] = snapshot.scan(name).to_arrow().to_pylist()
        return rows


@dataclass
class Theirs:
    """PostgreSQL."""

    service: Rfd

    def table(self, name: str) -> list[Row]:
        return self.service.table(name)


def node(folder: Path, number: int, *, zero_byte_tombstones: bool) -> Manta:
    """A node of the system, with a store and a catalog of its own as another process has them."""
    catalog = Catalog(LocalStore(folder))
    return Manta(catalog, writer=f"node-{number}", grace="0s", zero_byte_tombstones=zero_byte_tombstones)


@contextmanager
def sides(folder: Path, schema: Schema, *, zero_byte_tombstones: bool = True) -> Iterator[tuple[Ours, Theirs]]:
    """Both, with empty tables."""
    with node(folder, 0, zero_byte_tombstones=zero_byte_tombstones) as manta:
        yield Ours(Catalog(LocalStore(folder)), manta), Theirs(Rfd(schema, zero_byte_tombstones=zero_byte_tombstones))


@dataclass
class Seen:
    """The times that one side has told: what a new one is compared with."""

    of: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict)
    last: Any = None

    def told(self, key: tuple[Any, ...], row: Mapping[str, Any]) -> dict[str, Any]:
        """How the times of a row compare: with what was told of it before, with the latest of all, and with one another."""
        times = {name: row[name] for name in TIMES if name in row}
        before = self.of.get(key, {})
        order = {name: (_order(time, before.get(name)), _order(time, self.last)) for name, time in times.items()}
        self.of[key] = times
        self.last = max((*times.values(), *([] if self.last is None else [self.last])))
        return {**order, "modified after created": "modified" in times and _order(times["modified"], times["created"])}


def _order(time: Any, other: Any) -> int | None:
    return None if other is None else (time > other) - (time < other)


class Both:
    """The two, and what is known of both: pairs of ids, the objects that are live as each has told of them, and the times."""

    def __init__(self, trace: Trace, folder: Path, schema: Schema, stack: ExitStack) -> None:
        self._trace = trace
        empty = trace.zero_byte_tombstones
        self._ours, self._theirs = stack.enter_context(sides(folder, schema, zero_byte_tombstones=empty))
        others = [node(folder, number, zero_byte_tombstones=empty) for number in range(1, trace.nodes)]
        self._nodes = [self._ours.service, *map(stack.enter_context, others)]
        self._compactor = stack.enter_context(Catalog(LocalStore(folder)).writer(COMPACTOR))
        self._seen = Seen(), Seen()
        self._buckets: list[tuple[int, str, str]] = [(0, NO_BUCKET, NO_BUCKET)]
        self._live: dict[tuple[str, str, str], tuple[Row, Row]] = {}
        self._their_id = {NO_BUCKET: NO_BUCKET}

    def run(self) -> None:
        """Take every step, and compare everything that can be asked in between and at the end."""
        for number, step in enumerate(self._trace.steps):
            try:
                self._take(step, self._nodes[number % len(self._nodes)])
                if (number + 1) % EVERY == 0 or number + 1 == len(self._trace.steps):
                    self._compare(Random(self._trace.questions + number))
            except BaseException as error:
                error.add_note(f"at step {number}, {step}, buckets {self._buckets}")
                raise

    def _take(self, step: Step, node: Manta) -> None:
        if isinstance(step, Checkpoint):
            self._compactor.checkpoint(scope="all")
        elif isinstance(step, OfBucket):
            self._of_buckets(node, step.operation, {"owner": OWNERS[step.owner], **step.arguments})
        elif isinstance(step, OfObject):
            self._of_objects(node, step)
        else:
            assert isinstance(step, Pause)

    def _of_buckets(self, node: Manta, operation: str, arguments: Mapping[str, Any]) -> None:
        ours = outcome(lambda: getattr(node, operation)(**arguments))
        theirs = outcome(lambda: getattr(self._theirs.service, operation)(**arguments))
        if operation == "createbucket" and not isinstance(theirs, str) and not isinstance(ours, str):
            assert ours["id"] not in self._their_id, "an id that another bucket has, or had"
            assert UUID(ours["id"]).version == 5
            self._their_id[ours["id"]] = theirs["id"]
            self._buckets.append((OWNERS.index(arguments["owner"].lower()), ours["id"], theirs["id"]))
        if isinstance(theirs, str | int) or isinstance(ours, str | int):
            assert ours == theirs
        elif operation == "listbuckets":
            self._same_pages(ours, theirs)
        else:
            self._same_rows([ours], [theirs])

    def _of_objects(self, node: Manta, step: OfObject) -> None:
        owner, our_id, their_id = self._buckets[-1 - step.bucket % len(self._buckets)]
        named = {"owner": OWNERS[owner]}
        our_arguments = {**named, "bucket_id": our_id, **step.arguments}
        their_arguments = {**named, "bucket_id": their_id, **step.arguments}
        if step.operation == "listobjects":
            self._page(node, our_arguments, their_arguments)
            return
        key = (our_arguments["owner"].lower(), our_id, step.arguments["name"])
        live = self._live.get(key, _NONE)
        if step.conditions:
            our_arguments["conditions"] = {name: condition(asked, live[0], ours=True) for name, asked in step.conditions}
            their_arguments["conditions"] = {name: condition(asked, live[1], ours=False) for name, asked in step.conditions}
        ours = outcome(lambda: getattr(node, step.operation)(**our_arguments))
        theirs = outcome(lambda: getattr(self._theirs.service, step.operation)(**their_arguments))
        if isinstance(theirs, str) or isinstance(ours, str):
            assert ours == theirs
            return
        if step.operation == "deleteobject":
            del self._live[key]
            self._same_rows(ours, theirs)
            return
        if step.operation != "getobject":
            self._live[key] = ours, theirs
        self._same_rows([ours], [theirs])

    def _compare(self, random: Random) -> None:
        for table in TABLES:
            ours, theirs = self._ours.table(table), self._theirs.table(table)
            assert _sorted(map(self._mapped, ours)) == _sorted(map(plain, theirs)), table
            if "deleted" in table:
                assert _in_order_of_end(map(self._mapped, ours)) == _in_order_of_end(map(plain, theirs)), table
        self._collect(random)
        node = random.choice(self._nodes)
        for account in OWNERS:
            self._of_buckets(node, "listbuckets", {"owner": account, **bucket_page(random)})
        for owner, our_id, their_id in random.sample(self._buckets[-4:], min(2, len(self._buckets))):
            for _ in range(PAGES):
                page = {"owner": OWNERS[owner], **object_page(random, self._trace.names)}
                self._page(node, {**page, "bucket_id": our_id}, {**page, "bucket_id": their_id})
        self._all_pages(node, {**page, "bucket_id": our_id, "marker": None}, {**page, "bucket_id": their_id})

    def _collect(self, random: Random) -> None:
        """The batch of garbage, the same on every node until it is deleted by its own id, and the records of deleted buckets."""
        ours, theirs = self._batches(random)
        is_right = random.random() < 0.6
        ids = (ours["batch_id"], theirs["batch_id"]) if is_right and ours["batch_id"] is not None else (NO_OBJECT, NO_OBJECT)
        assert random.choice(self._nodes).deletegcbatch(batch_id=ids[0]) == self._theirs.service.deletegcbatch(batch_id=ids[1])
        again = self._batches(random)
        assert again == (ours, theirs) or ids[0] == ours["batch_id"]
        limit = random.choice([1, 2, 25])
        buckets = random.choice(self._nodes).deletedbuckets(older_than="0s", limit=limit)
        records = self._theirs.service.deletedbuckets(limit)
        assert [_text(self._mapped(row)) for row in buckets] == [_text(row) for row in records]
        for row, other in zip(buckets, records, strict=True):
            named = {"owner": row["owner"], "name": row["name"]}
            node = random.choice(self._nodes)
            removed = outcome(partial(node.removedeletedbucket, **named, id=row["id"]))
            assert removed == outcome(partial(self._theirs.service.removedeletedbucket, **named, id=other["id"]))

    def _batches(self, random: Random) -> tuple[Row, Row]:
        """The batch of both."""
        ours, theirs = random.choice(self._nodes).getgcbatch(), self._theirs.service.getgcbatch()
        assert (ours["batch_id"] is None) == (theirs["batch_id"] is None)
        assert _in_order_of_end(map(self._mapped, ours["garbage"])) == _in_order_of_end(map(plain, theirs["garbage"]))
        return ours, theirs

    def _all_pages(self, node: Manta, ours: Row, theirs: Row) -> None:
        """Every page of a listing, each from where the one before has ended."""
        while True:
            marker = self._page(node, ours, {**theirs, "marker": ours["marker"]})
            if marker is None:
                return
            assert ours["marker"] is None or marker.encode() > ours["marker"].encode()
            ours = {**ours, "marker": marker}

    def _page(self, node: Manta, ours: Row, theirs: Row) -> str | None:
        prefix, delimiter = theirs["prefix"], theirs["delimiter"]
        marker = service_marker(theirs["marker"], prefix, delimiter)
        our_page = outcome(lambda: node.listobjects(**ours))
        their_page = outcome(lambda: self._theirs.service.listobjects(**{**theirs, "marker": marker}))
        if isinstance(our_page, str) or isinstance(their_page, str):
            assert our_page == their_page
            return None
        self._same_pages(our_page, their_page)
        return str(our_page.next_marker) if our_page.next_marker is not None else None

    def _same_pages(self, ours: Any, theirs: Any) -> None:
        self._same_rows(ours.rows, theirs.rows)
        assert list(ours.groups) == [{**group, "nextMarker": group["name"]} for group in theirs.groups]
        assert ours.next_marker == our_marker(theirs.next_marker, theirs.rows, theirs.groups)

    def _same_rows(self, ours: Sequence[Row], theirs: Sequence[Row]) -> None:
        """Rows in the same order, with times that compare the same."""
        mapped = [self._mapped(row) for row in ours]
        expected = [plain(row) for row in theirs]
        assert [_timeless(row) for row in mapped] == [_timeless(row) for row in expected]
        for row, other in zip(mapped, expected, strict=True):
            key = (row["owner"], row.get("bucket_id"), row["name"])
            if "created" in row:
                assert self._seen[0].told(key, row) == self._seen[1].told(key, other), (row, other)
        for row, other in zip(ours, theirs, strict=True):
            if "modified" in row:
                told = self._live[row["owner"], row["bucket_id"], row["name"]]
                assert (row, other) == told, "whatever tells of an object tells what the operation did that wrote it"

    def _mapped(self, row: Mapping[str, Any]) -> Row:
        """A row of ours with the other side's ids of buckets."""
        shown = plain(row)
        name = "bucket_id" if "bucket_id" in shown else "id"
        shown[name] = self._their_id[shown[name]]
        return shown


def outcome(ask: Callable[[], Any]) -> Any:
    """What an operation answers, or the name of what it refuses with."""
    try:
        return ask()
    except Exception as error:
        return error_name(error)


def condition(asked: Tags | When, live: Row, *, ours: bool) -> Any:
    """A condition for one side, with the entity tag and the time that the object has there."""
    if isinstance(asked, Tags):
        spelled = {"right": live["id"], "quoted": f'"{live["id"]}"', "weak": f'W/"{live["id"]}"', "wrong": NO_OBJECT, "*": "*"}
        tags = [spelled[tag] for tag in asked.tags]
        return ", ".join(tags) if asked.as_text else tags
    time = live["modified"] + datetime.timedelta(microseconds=asked.later)
    if asked.form == "http":
        return http_time(time)[0 if ours else 1]
    return time.isoformat() if asked.form == "iso" else time


def _timeless(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in TIMES}


def _text(row: Row) -> str:
    return json.dumps(_timeless(row), sort_keys=True, default=bytes.hex)


def _sorted(rows: Iterator[Row]) -> list[str]:
    return sorted(map(_text, rows))


def _in_order_of_end(rows: Iterator[Row]) -> list[str]:
    """Tombstones by when they ended; what is in one was created first, then modified, and ended last."""
    found = sorted(rows, key=lambda row: row["deleted_at"])
    for row in found:
        assert row["created"] <= row.get("modified", row["created"]) <= row["deleted_at"]
    return [_text(row) for row in found]
