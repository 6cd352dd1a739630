"""Data tables: appends of small files, plans of selective reads, and compaction, against deltalake and pyiceberg with the same rows.

Appends are measured after few and after many commits and beside the durable PUTs of the same file and transaction in one loop, in turns.
The peers are measured in a loop of their own right after, for they do not sync. A plan ends with the files and the row groups to read: ours
opens no file for these, the peers those that they have found. So of the tables to plan with only these files are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from bucketcatalog.clock import uuid7
from bucketcatalog.model.cuts import Head
from bucketcatalog.model.paths import transaction
from bucketcatalog.store import LocalStore
from bucketcatalog.systems.iox.names import file_path
from bucketcatalog.systems.iox.table import DataTable

from . import iox_data, iox_peers
from .fresh import run_fresh
from .iox_rows import FOUND, GROUPS, looked_for, measurements
from .measuring import Timed, fastest, in_turns, seconds
from .results import Comparison, Goal, Group, Measure, Sample
from .world import World

ROWS = 100
"""What an append adds."""
ROWS_OF_SMALL = 1_000
"""What a file has that is compacted."""
WARM_FILES = 50
PUT, OURS = "put", "ours"
FASTER: Comparison = "other / ours"
DELTA = ("write_deltalake, table held open", "write_deltalake by path")
ICEBERG = "Table.append, table held open"


def run(world: World) -> Group:
    """The group."""
    ours, sizes = _appends(world)
    peers = _peers_appends(world)
    planned = _plans(world)
    settings = {
        "rows": "host (text), time, number, usage, load; in the order of their numbers",
        "append": f"{ROWS} rows, writer and table held open; every file and commit durable: file and directories synced",
        "bytes of an append": sizes,
        "put": "LocalStore.put, durable alike, of the bytes of the file, and then of those of the transaction",
        "peers' appends": "all defaults, SQL catalog in SQLite for pyiceberg; files are not synced",
        "peers' appends, each way": {
            f"after {depth:,}": {way: sample.document() for way, sample in ways.items()} for depth, ways in peers.items()
        },
        "plan": f"numbers between two, which {FOUND} of the files have; opened in a process that has planned with a table of "
        f"{WARM_FILES} files; {GROUPS} row groups a file; checkpointed, 10,000 files a manifest",
        "plans, each way, the first time": {way: one["seconds"] for way, one in planned.first.items()},
        "compaction": "all defaults, a process that has the libraries loaded, each on a copy; ours is synced, the peer's is not",
    }
    return Group([*append_measures(ours, peers), *planned.measures(), _compactions(world)], settings)


class Putter:
    """Puts the same file and the same transaction again and again, under names of their shapes."""

    def __init__(self, path: Path, data: tuple[bytes, bytes]) -> None:
        self._store = LocalStore(path)
        self._file, self._transaction = data
        self._count = 0

    def put(self) -> None:
        """Two durable PUTs."""
        self._count += 1
        id_ = uuid7(1_700_000_000_000_000 + self._count)
        self._store.put(file_path(iox_data.WRITER, "default", "default", iox_data.TABLE, str(id_)), self._file)
        self._store.put(transaction(iox_data.WRITER, "default", Head(self._count, id_.bytes)), self._transaction)


def _appends(world: World) -> tuple[dict[int | str, Sample], dict[str, int]]:
    """PUT and each depth in turns; a new table every round keeps the lowest depth low."""
    scale = world.scale
    low, *deep = scale.data_depths
    found: dict[int | str, list[float]] = {PUT: [], **{depth: [] for depth in scale.data_depths}}
    with ExitStack() as stack:
        place = world.empty("appends")
        held = {depth: stack.enter_context(iox_data.appended(place / str(depth), depth, ROWS)) for depth in deep}
        last = place / str(deep[-1])
        data = iox_data.last_file(last).read_bytes(), iox_data.last_transaction(last).read_bytes()
        putter = Putter(world.empty("puts"), data)
        for _ in range(low):
            putter.put()
        for _ in range(scale.peer_rounds):
            with iox_data.appended(world.empty("appends-low"), low, ROWS) as lowest:
                subjects: dict[str, Timed] = {PUT: putter.put}
                subjects |= {str(depth): partial(_append, table) for depth, table in {low: lowest, **held}.items()}
                turns = in_turns(subjects, scale.commits_a_round)
            for name in found:
                found[name] += turns[str(name)].values
    return {name: Sample(tuple(values)) for name, values in found.items()}, {"file": len(data[0]), "transaction": len(data[1])}


def _append(table: DataTable) -> float:
    rows = measurements(7, ROWS)
    return seconds(lambda: _committed(table.append(rows)))


def _committed(committed: Any) -> None:
    assert committed is not None


def _peers_appends(world: World) -> dict[int, dict[str, Sample]]:
    """By depth the peers' ways in turns, whose tables grow from one depth to the next."""
    appenders: dict[str, Any] = {
        way: iox_peers.DeltaAppender(world.empty("delta-appends"), ROWS, by_path=way != DELTA[0]) for way in DELTA
    }
    appenders[ICEBERG] = iox_peers.IcebergAppender(world.empty("iceberg-appends"), ROWS)
    found = {}
    for depth in world.scale.data_peer_depths:
        for appender in appenders.values():
            while appender.files < depth:
                appender.append()
        found[depth] = in_turns({way: each.append for way, each in appenders.items()}, world.scale.commits_a_round)
    return found


def append_measures(ours: Mapping[int | str, Sample], peers: Mapping[int, Mapping[str, Sample]]) -> Iterator[Measure]:
    """The measures of appends, from the samples by depth."""
    depths = [depth for depth in ours if isinstance(depth, int)]
    name = f"append of a file of {ROWS} rows"
    for depth in depths:
        goal = Goal("ours / other", "at most", 1.2)
        yield Measure(f"{name} after {depth:,} commits", ours[depth], ours[PUT], "durable PUTs of file and transaction", goal)
    flat = Goal("ours / other", "at most", 1.1)
    after = f"after {depths[0]:,}"
    yield Measure(f"{name} after {depths[-1]:,} commits against {after}", ours[depths[-1]], ours[depths[0]], after, flat)
    for depth, (of_peers, ways) in zip(depths, peers.items(), strict=True):
        best = fastest({way: ways[way] for way in DELTA})
        for peer, way in (("deltalake", best), ("pyiceberg", ICEBERG)):
            shown = f"{name} after {depth:,} commits, and the peer's after {of_peers:,}"
            yield Measure(shown, ours[depth], ways[way], f"{peer}, {way}", compares=FASTER)


class Plans:
    """What plans came to: samples by way, and what each found the first time."""

    def __init__(self, files: int, first: Mapping[str, Mapping[str, Any]], samples: Mapping[str, Sample]) -> None:
        self.files, self.first, self.samples = files, first, samples

    def measures(self) -> Iterator[Measure]:
        """Times against each peer's fastest way, and what is read by these plans."""
        name = f"plan of a selective read of {self.files:,} files"
        ways = [way for way in self.samples if way != OURS]
        for way in ways:
            yield Measure(name, self.samples[OURS], self.samples[way], way, Goal(FASTER, "at least", 3))
        for way in self.first:
            if way not in self.samples:
                yield Measure(name, self.samples[OURS], Sample.one(self.first[way]["seconds"], "s"), way, compares=FASTER)
        for way in ways:
            for what in ("files", "row groups"):
                mine, theirs = (Sample.one(float(self.first[each][what]), what) for each in (OURS, way))
                yield Measure(f"{name}: {what} to read", mine, theirs, way, Goal("ours / other", "at most", 1))


def _plans(world: World) -> Plans:
    """Every way once, then ours and each peer's fastest in turns, each time in a fresh process."""
    files = world.scale.data_files
    ours = {"module": "iox_data", **_filled(world, iox_data.fill, files)}
    delta, iceberg = (_filled(world, fill, files) for fill in (iox_peers.fill_delta, iox_peers.fill_iceberg))
    asked = {OURS: ours}
    for way in iox_peers.PLANS:
        asked[way] = {"module": "iox_peers", "way": way, **(delta if way.startswith("deltalake") else iceberg)}
    first = {name: run_fresh(function="plan", **arguments) for name, arguments in asked.items()}
    if any(one["files"] < FOUND for one in first.values()):
        raise ValueError(f"of {looked_for(files)} the plans have found {first}")
    best = [_fastest_of(first, peer) for peer in ("deltalake", "pyiceberg")]
    subjects = {name: partial(_planned, asked[name]) for name in (OURS, *best)}
    return Plans(files, first, in_turns(subjects, world.scale.rounds))


def _filled(world: World, fill: Any, files: int) -> dict[str, Any]:
    """Arguments for ``plan``: a table of so many files, and a small one."""
    path, small = world.empty("planned"), world.empty("planned-small")
    for place, count in ((path, files), (small, WARM_FILES)):
        place.mkdir()
        fill(place, count)
    return {"path": str(path), "files": files, "small": str(small), "small_files": WARM_FILES}


def _fastest_of(first: Mapping[str, Mapping[str, Any]], peer: str) -> str:
    return min((way for way in first if way.startswith(peer)), key=lambda way: float(first[way]["seconds"]))


def _planned(arguments: Mapping[str, Any]) -> float:
    return float(run_fresh(function="plan", **arguments)["seconds"])


def _compactions(world: World) -> Measure:
    """Ours and the peer's in turns, each on a copy of a table of small files."""
    files = world.scale.data_small_files
    rows = files * ROWS_OF_SMALL
    places = {OURS: world.empty("small-files"), "deltalake": world.empty("small-files")}
    iox_data.build(str(places[OURS]), files, ROWS_OF_SMALL)
    iox_peers.build(places["deltalake"], files, ROWS_OF_SMALL)
    compacts = {OURS: iox_data.compact, "deltalake": iox_peers.compact}

    def once(side: str) -> float:
        path, found = world.copy(places[side]), list[tuple[int, int]]()
        took = seconds(lambda: found.append(compacts[side](path)))
        if found != [(1, rows)]:
            raise ValueError(f"{side} has made {found[0][0]} files of {found[0][1]} of {rows} rows")
        return took

    subjects = {side: partial(once, side) for side in places}
    in_turns(subjects, 1)
    samples = in_turns(subjects, world.scale.rounds)
    name = f"compaction of {files:,} files of {ROWS_OF_SMALL:,} rows"
    goal = Goal("ours / other", "at most", 1)
    return Measure(name, samples[OURS], samples["deltalake"], "deltalake's optimize.compact", goal)
