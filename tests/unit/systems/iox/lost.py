"""Data tables with a past, their catalogs lost in whole or in part, and what is compared afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bucketcatalog import Catalog
from bucketcatalog.store import Store
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.systems.iox.compact import Compacted, Compaction
from bucketcatalog.systems.iox.files import SAYS, Written
from bucketcatalog.systems.iox.findings import Finding
from bucketcatalog.systems.iox.rebuild import Rebuilt, rebuild
from bucketcatalog.systems.iox.verify import verify
from bucketcatalog.systems.iox.write import begin_write

NOW: dict[str, Any] = {"older_than": "0s", "force": True}
"""Takes in whatever is there already."""
ALL: dict[str, Any] = {"dry_run": False, **NOW}


def rows(*values: int, host: str = "a", **more: Any) -> list[dict[str, Any]]:
    return [{"host": host, "v": value, **more} for value in values]


def is_data(name: str) -> bool:
    return name.split("/")[2] == "data"


def named(store: Store, *, ending: str = "", data: bool = True) -> list[str]:
    """What lies in a store: its data, or the files of the log."""
    return [info.name for info in store.list("") if is_data(info.name) is data and info.name.endswith(ending)]


def copy_of(
    store: Store, *, without: Callable[[str], bool] = lambda name: False, changed: Mapping[str, bytes] | None = None
) -> Store:
    """The same in another store, without some objects, and with others in place of some."""
    found = MemoryStore()
    for info in store.list(""):
        if not without(info.name):
            found.put(info.name, (changed or {}).get(info.name) or store.get(info.name))
    return found


def without_log(store: Store) -> Store:
    return copy_of(store, without=lambda name: not is_data(name))


def shown(store: Store, version: str | None = None) -> dict[str, list[Any]]:
    """The rows of every data table as readers see them, in an order of their own, with where each was added and its clock."""
    snapshot = Catalog(store).snapshot(version=version)
    found = {}
    for name in snapshot.tables:
        if name.startswith("data."):
            table = Catalog(store).data(name.removeprefix("data."))
            read = table.scan(version=version)
            # Of a table without a key compaction keeps no clocks.
            has_key = any(table.files(version=version)["key_columns"].to_pylist())
            extra = ["_partition", "_chunk", *(["_clock"] if has_key else [])]
            got = table.scan(columns=[*sorted(read.schema.names), *extra], version=version).to_arrow().to_pylist()
            found[name] = sorted(got, key=repr)
    return found


def kept(store: Store, table: str) -> list[dict[str, Any]]:
    """The live rows of a table of the system, without what tells one commit from another."""
    found = Catalog(store).snapshot().scan(table).to_arrow().to_pylist()
    return sorted(({name: value for name, value in row.items() if name != "added"} for row in found), key=repr)


def rebuilt(store: Store, **options: Any) -> Rebuilt:
    return rebuild(Catalog(store), **{**ALL, **options})


def codes(findings: Iterable[Finding]) -> list[str]:
    return sorted(finding.code for finding in findings)


def by_file(findings: Iterable[Finding]) -> dict[str, str]:
    return {finding.file: finding.code for finding in findings}


def written(
    catalog: Catalog, given: list[dict[str, Any]], *, writer: str = "dead", table: str = "cpu", times: int = 1
) -> list[Written]:
    """Rows put as a file so often, by attempts of one write that nobody has committed."""
    files = begin_write(writer, "default", table)
    batches = pa.Table.from_pylist(given).to_batches()
    return [each for _ in range(times) for each in files.write_rows(catalog.store, batches)]


class Compactor:
    """A compaction that has put its files, and commits when it is told to."""

    def __init__(self, catalog: Catalog, writer: str, table: str = "cpu") -> None:
        self._writer = catalog.writer(writer).__enter__()
        self._planned = Compaction(Catalog(catalog.store).snapshot(), self._writer, table=table, least=1)
        self._made = [task.run(catalog.store) for task in self._planned.tasks]

    def finish(self) -> Compacted:
        done = self._planned.finish(self._made)
        self._writer.close()
        return done


def compact(catalog: Catalog, **options: Any) -> Compacted:
    done: Compacted = catalog.run_job("iox.compact", table="cpu", **options)
    return done


# Catalogs with a past.


def plain(catalog: Catalog) -> None:
    catalog.data("cpu", writer="alice").append(rows(1, 2, 3))
    catalog.data("cpu", writer="bob").append(rows(1, 2, host="b", load=0.5), partition="p/1")
    catalog.data("mem/..", writer="bob").append([{"_partition": "x", "n": None}, {"_partition": "\u00e9", "n": b"\x00"}])


def keyed(catalog: Catalog) -> None:
    for clock, writer in ((3, "alice"), (1, "bob"), (2, "alice")):
        given = rows(1, 2, load=float(clock)) + rows(clock, host="b", load=0.0)
        catalog.data("cpu", writer=writer).append(given, key=["host", "v"], clock=clock)


def keyed_and_compacted(catalog: Catalog) -> None:
    keyed(catalog)
    catalog.data("cpu", writer="bob").delete_where({"v": 2})
    compact(catalog)
    catalog.data("cpu", writer="bob").append(rows(1, 2, load=9.0), clock=2)
    compact(catalog)


def deleted(catalog: Catalog) -> None:
    plain(catalog)
    catalog.data("cpu", writer="bob").delete_where({"v": 2})
    catalog.data("cpu", writer="alice").append(rows(2, 4))
    catalog.data("cpu", writer="alice").delete_where([("host", "=", "a"), ("v", ">", 3)])


def removed(catalog: Catalog) -> None:
    plain(catalog)
    catalog.data("cpu", writer="bob").remove(partition="default")
    catalog.data("cpu", writer="bob").append(rows(7))


def compacted(catalog: Catalog) -> None:
    deleted(catalog)
    compact(catalog)


def of_two_generations(catalog: Catalog) -> None:
    compacted(catalog)
    for value in (5, 6):
        catalog.data("cpu", writer="alice").append(rows(value))
    compact(catalog, writer="compactor-2")
    catalog.data("cpu", writer="bob").delete_where({"v": 5})


def emptied(catalog: Catalog) -> None:
    plain(catalog)
    catalog.data("cpu", writer="bob").delete_where({"v": [1, 2, 3]})
    compact(catalog, least=1)


def removed_after_compaction(catalog: Catalog) -> None:
    of_two_generations(catalog)
    catalog.data("cpu", writer="bob").remove(partition="default")


def racing(catalog: Catalog) -> None:
    """Two compactions of partly the same files, and a deletion and a removal that neither has seen."""
    for value in (1, 2):
        catalog.data("cpu", writer="alice").append(rows(value, 10 + value))
    first = Compactor(catalog, "compactor-1")
    catalog.data("cpu", writer="bob").append(rows(3, 13))
    catalog.data("cpu", writer="bob").delete_where({"v": 11})
    second = Compactor(catalog, "compactor-2")
    catalog.data("cpu", writer="bob").delete_where({"v": 13})
    catalog.data("cpu", writer="alice").append(rows(4, 14))
    for each in (first, second):
        each.finish()


def removed_in_a_race(catalog: Catalog) -> None:
    racing(catalog)
    late = Compactor(catalog, "compactor-3")
    catalog.data("cpu", writer="bob").remove([catalog.data("cpu").files()["chunk"][0].as_py()])
    late.finish()


def never_committed(catalog: Catalog) -> None:
    """A compaction has put its files and died."""
    deleted(catalog)
    Compactor(catalog, "compactor-1")


PASTS = {
    each.__name__: each
    for each in (
        plain,
        keyed,
        keyed_and_compacted,
        deleted,
        removed,
        compacted,
        of_two_generations,
        emptied,
        removed_after_compaction,
        racing,
        removed_in_a_race,
        never_committed,
    )
}


def made(past: Callable[[Catalog], None]) -> Store:
    """A store with a past, of one's own."""
    return copy_of(_origin(past))


@cache
def _origin(past: Callable[[Catalog], None]) -> Store:
    store = MemoryStore()
    past(Catalog(store))
    return store


def errors(store: Store) -> list[str]:
    return [str(finding) for finding in verify(Catalog(store), deep=True) if finding.severity.value != "info"]


def say(store: Store, name: str, **changes: Any) -> None:
    """Make a file say something else of itself."""
    table = pq.read_table(pa.BufferReader(store.get(name)))
    said = json.loads(table.schema.metadata[SAYS])
    put_file(
        store, name, table.replace_schema_metadata({**table.schema.metadata, SAYS: json.dumps({**said, **changes}).encode()})
    )


def put_file(store: Store, name: str, table: pa.Table) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    store.delete(name)
    store.put(name, sink.getvalue().to_pybytes())


def replace(store: Store, name: str, data: bytes) -> None:
    store.delete(name)
    store.put(name, data)
