"""What the tests of the engine share: a clock that stands still, catalogs in memory, rows, and tables compiled from ``.proto`` text."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, Self

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import Descriptor, FileDescriptor

from bucketcatalog import Catalog
from bucketcatalog.format.definitions import tables_of
from bucketcatalog.model import paths
from bucketcatalog.model.cuts import Head
from bucketcatalog.model.events import EventKind
from bucketcatalog.model.uuids import uuid_bytes
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.store import Store
from bucketcatalog.store.faults import Counting
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.store.wrappers import Wrapped
from bucketcatalog.write.commit import Commit, Committed
from bucketcatalog.write.draft import Draft
from bucketcatalog.write.writer import Writer

PROTO = Path(__file__).resolve().parent.parent.parent / "proto"
START = 1_700_000_000_000_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
OWNER = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"
BUCKET = "33333333-3333-4333-8333-333333333333"
ID_1, ID_2 = "aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002"
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
BEYOND = [
    datetime.datetime.max.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=-5))),
    datetime.datetime.min.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=5))),
]
"""Times that are datetimes and, in UTC, none: of the years 10000 and 0."""


class Clock:
    """A clock that moves when told to; give it to a store and to writers."""

    def __init__(self, now: int = START) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def tick(self, by: int = SECOND) -> int:
        self.now += by
        return self.now


def time_at(micros: int) -> datetime.datetime:
    return EPOCH + datetime.timedelta(microseconds=micros)


class World:
    """A store in memory with a clock of its own, and fresh catalogs over it."""

    def __init__(self, store: Store | None = None) -> None:
        self.clock = Clock()
        self.store: Store = store if store is not None else MemoryStore(clock=self.clock)

    @classmethod
    def counting(cls) -> Self:
        """One whose store counts its requests."""
        clock = Clock()
        world = cls(Counting(MemoryStore(clock=clock)))
        world.clock = clock
        return world

    def catalog(self) -> Catalog:
        """A catalog that has read nothing, as another process would have it."""
        return Catalog(self.store)

    def writer(self, name: str = "w", *, database: str = "default", catalog: Catalog | None = None) -> Writer:
        return (catalog or self.catalog()).writer(name, database=database, clock=self.clock)

    def snapshot(self, **options: Any) -> Snapshot:
        return self.catalog().snapshot(**options)

    def commit(self, writer: Writer, *calls: tuple[Any, ...], **options: Any) -> Committed:
        """One transaction of calls such as ``("put", "objects", row)``, a second after the last."""
        self.clock.tick()
        with writer.transaction(**options) as tx:
            for method, *arguments in calls:
                keywords = arguments.pop() if len(arguments) > 2 else {}
                getattr(tx, method)(*arguments, **keywords)
        assert tx.committed is not None
        return tx.committed

    def under_way(self, writer: Writer, row: dict[str, Any]) -> tuple[str, bytes]:
        """A commit that puts an object, whose file is taken out of the store again: its name and bytes, to be put when it is to arrive."""
        committed = self.commit(writer, ("put", "objects", row))
        name = paths.transaction(writer.id, "default", Head(committed.revision, uuid_bytes(committed.uuid)))
        data = self.store.get(name)
        self.store.delete(name)
        return name, data

    def commit_unasked(self, writer: Writer, declared: Iterable[Descriptor], *calls: tuple[str, str, Any]) -> Committed:
        """The same by a writer of somebody else's, or of an older release, who writes by these declarations whatever else there is."""
        self.clock.tick()
        known = {table.name: table for table in tables_of(declared)}
        draft = Draft(known.__getitem__, self.catalog().database(writer.database).look)
        for kind, table, given in calls:
            draft.add(EventKind[kind.upper()], table, given)
        committed = writer.commit(Commit(events=draft))
        assert committed is not None
        return committed


class Intervening(Wrapped):
    """A store in which something happens once, right before the first put whose name begins with ``prefix``."""

    def __init__(self, inner: Any, prefix: str, act: Callable[[], None]) -> None:
        super().__init__(inner)
        self._prefix = prefix
        self._act: Callable[[], None] | None = act

    def put(self, name: str, data: bytes) -> None:
        if self._act is not None and name.startswith(self._prefix):
            act, self._act = self._act, None
            act()
        super().put(name, data)


def obj(name: str, **more: Any) -> dict[str, Any]:
    """A row or key of ``objects``."""
    return {"owner": OWNER, "bucket_id": BUCKET, "name": name, **more}


def bucket(name: str, **more: Any) -> dict[str, Any]:
    """A row or key of ``buckets``."""
    return {"owner": OWNER, "name": name, **more}


def as_arrow(given: list[dict[str, Any]]) -> pa.Table:
    """Rows of ``objects`` or ``buckets`` as columns, with all that any of them has."""
    types = {"headers": pa.map_(pa.string(), pa.string()), "tags": pa.map_(pa.string(), pa.string())}
    columns = list(dict.fromkeys(name for row in given for name in row))
    data = {}
    for name in columns:
        values = [sorted(v.items()) if isinstance(v := row.get(name), dict) and name in types else v for row in given]
        data[name] = pa.array(values, types.get(name))
    return pa.table(data)


def names(snapshot: Snapshot, table: str = "objects") -> list[str]:
    return snapshot.scan(table, columns=["name"]).to_arrow()["name"].to_pylist()


def rows(snapshot: Snapshot, table: str = "objects", columns: list[str] | None = None) -> list[dict[str, Any]]:
    return snapshot.scan(table, columns=columns).to_arrow().to_pylist()


def stored(world: World, ending: str = "") -> list[str]:
    """The names of what lies in the world's store, those that end so."""
    return [info.name for info in world.store.list("") if info.name.endswith(ending)]


def counted(world: World, call: Callable[[], Any]) -> tuple[int, Any]:
    """How many ranges of files are read for a call, in a world that counts, and what it gives."""
    store = world.store
    assert isinstance(store, Counting)
    store.reset()
    found = call()
    return store.requests["get_range"], found


def version(row: Mapping[str, Any], snapshot: Snapshot, table: str = "objects") -> str:
    """The ``_version`` of the live row with this key."""
    where = {name: row[name] for name in snapshot.table(table).key}
    (found,) = snapshot.scan(table, columns=["_version"], where=where).to_arrow()["_version"].to_pylist()
    return str(found)


@cache
def compiled(source: str, name: str = "tables.proto") -> bytes:
    """The FileDescriptorSet of one ``.proto`` text, as a file of that name, with all that it imports."""
    tools = Path(sys.prefix) / "protoc"
    environment = os.environ | ({"PYTHONPATH": str(tools)} if (tools / "grpc_tools").is_dir() else {})
    with TemporaryDirectory() as folder:
        Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
        Path(folder, name).write_text(source)
        command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={folder}", f"--proto_path={PROTO}"]
        command += ["--include_imports", f"--descriptor_set_out={folder}/out.binpb", name]
        subprocess.run(command, env=environment, check=True, cwd=folder)
        return Path(folder, "out.binpb").read_bytes()


def messages(source: str) -> dict[str, Descriptor]:
    """The top-level messages of a ``.proto`` text by name, in a pool of their own, so that two of one name can meet."""
    return dict(_file(source).message_types_by_name)


def declaring(*bodies: str) -> ModuleType:
    """A module as protoc generates one, with these messages."""
    module = ModuleType("tables_pb2")
    module.__dict__["DESCRIPTOR"] = _file(proto(*bodies))
    return module


def _file(source: str) -> FileDescriptor:
    pool = descriptor_pool.DescriptorPool()
    files = descriptor_pb2.FileDescriptorSet.FromString(compiled(source)).file
    for file in files:
        pool.Add(file)
    return pool.FindFileByName("tables.proto")


def proto(*bodies: str, syntax: str = "proto3", package: str = "test", imports: Iterable[str] = ()) -> str:
    """The text of a ``.proto`` with these messages; ``(table)`` and ``(column)`` are the package's options."""
    body = "\n".join(bodies).replace("(table)", "(bucketcatalog.v1.table)").replace("(column)", "(bucketcatalog.v1.column)")
    head = f'edition = "{syntax}";' if syntax.isdigit() else f'syntax = "{syntax}";'
    needed = "".join(f'import "{name}";\n' for name in ("bucketcatalog/v1/options.proto", *imports))
    return f"{head}\npackage {package};\n{needed}{body}\n"


def without_aws(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Nothing of this machine's own configuration of the AWS SDKs is found: it is looked for in a folder, and may be put there."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        patch.delenv(name)
    patch.setenv("AWS_CONFIG_FILE", str(folder / "config"))
    patch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "credentials"))
    patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
