"""Every request of a commit, of a checkpoint and of a reader goes wrong in every way once, then for good.

Once: it is made again, exactly one transaction comes of a commit, and the writer goes on. For good: a typed error, at the deadline, and
opening the writer again tells what became of it.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from typing import Any

import pytest

from bucketcatalog import Catalog
from bucketcatalog import limits as protocol
from bucketcatalog.errors import (
    BucketCatalogError,
    ClosedWriter,
    CommitUnknown,
    CorruptionError,
    OutcomeUnknown,
    StoreUnreachable,
)
from bucketcatalog.limits import DEFAULT_LIMITS, Limits
from bucketcatalog.store import Store
from bucketcatalog.store.s3 import uploads
from bucketcatalog.store.s3.options import S3Options
from bucketcatalog.store.s3.store import S3Store
from bucketcatalog.write.writer import Writer
from minio.process import Server

from ..kit.world import names, obj
from .proxy import SLOW_DOWN, Fault, Proxy, Refusal, Request

DATABASE = "db"
LASTING = (StoreUnreachable, OutcomeUnknown, CommitUnknown)
ONCE: list[Fault | Refusal] = [
    Fault.DROP,
    Fault.LOSE,
    Fault.CUT_REQUEST,
    Fault.CUT_ANSWER,
    Fault.LATE,
    Fault.CORRUPT_REQUEST,
    Fault.CORRUPT_ANSWER,
    SLOW_DOWN,
]


@dataclass
class Bench:
    """A bucket behind a proxy, and in it as many catalogs as are asked for."""

    proxy: Proxy
    bucket: str
    direct: dict[str, Any]
    roots: Iterator[int] = field(default_factory=count)

    def place(self) -> str:
        """The url of a catalog that nobody has used."""
        return f"s3://{self.bucket}/{next(self.roots)}"

    def store(self, url: str, **options: Any) -> S3Store:
        """The store there, through the proxy, with little patience; one request at a time, so that they have an order."""
        given = {"endpoint_url": self.proxy.endpoint_url, "read_timeout": 0.3, "retry_timeout": 5, "max_concurrency": 1}
        return S3Store(url, {**self.direct, **given, **options})

    def untroubled(self, url: str) -> S3Store:
        """The store there, past the proxy."""
        return S3Store(url, self.direct)


@pytest.fixture
def bench(server: Server, bucket: str, storage_options: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Every commit is to look first, and to ask for the store's time, as those do that come half a minute after the last."""
    monkeypatch.setattr(protocol, "LOOK_WITHIN", 0)
    monkeypatch.setattr(protocol, "LEARNT_TIME_LASTS", -1)
    with Proxy(server.endpoint_url) as proxy:
        yield Bench(proxy, bucket, storage_options)


def put(writer: Writer, *found: str) -> None:
    with writer.transaction() as tx:
        tx.put("objects", [obj(name) for name in found])


def open_writer(store: Store, name: str = "w", limits: Limits = DEFAULT_LIMITS) -> Writer:
    return Catalog(store).writer(name, database=DATABASE, limits=limits)


@dataclass
class Process:
    """One process under test, in a catalog that it shares with another writer; all that it does is counted."""

    bench: Bench
    name: str = "w"
    limits: Limits = DEFAULT_LIMITS
    objects: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.url = self.bench.place()
        self.direct = self.bench.untroubled(self.url)
        self.store = self.bench.store(self.url)
        self.writer: Writer | None = None
        self.committed: list[str] = []
        self.checkpoints = 0
        put(open_writer(self.direct, "v"), "of another")

    @contextmanager
    def impatient(self) -> Iterator[None]:
        """Meanwhile it gives up soon; what is to succeed has all the time that a busy machine takes."""
        patient = self.limits, self.store._calls.options
        self._wait(Limits(commit_delay=600_000), replace(patient[1], retry_timeout=0.1))
        yield
        self._wait(*patient)

    def _wait(self, limits: Limits, options: S3Options) -> None:
        self.limits, self.store._calls.options = limits, options
        if self.writer is not None and self.writer._timeline is not None:
            self.writer._timeline.limits = limits

    def open(self) -> Writer:
        """The writer, opened again if it has ended."""
        if self.writer is None or self.writer._timeline is None:
            self.writer = open_writer(self.store, self.name, self.limits)
        return self.writer

    def put(self, writer: Writer) -> None:
        """Commit an object of a name that it has not had."""
        self.committed.append(f"{next(self.objects):03}")
        put(writer, self.committed[-1])

    def transactions(self) -> int:
        return len(files(self.direct, ".txn"))

    def check(self, *, checkpoints_too: bool = True) -> None:
        """What a new reader finds: everything that was committed, once."""
        snapshot = Catalog(self.direct).snapshot(database=DATABASE)
        assert names(snapshot) == [*self.committed, "of another"]
        assert snapshot.scan("forks").to_arrow().num_rows == snapshot.scan("conflicts").to_arrow().num_rows == 0
        for writer in self.direct.list_prefixes(""):
            timeline = [
                info.name for info in self.direct.list(f"{writer}/{DATABASE}/transactions/") if info.name.endswith(".txn")
            ]
            assert [int(name.split("/")[-2]) for name in timeline] == [*range(len(timeline))]
        if checkpoints_too:
            markers = [name for name in files(self.direct, "") if "/newest/" in name]
            assert len(files(self.direct, ".ckpt")) == len(markers) == self.checkpoints


@dataclass(frozen=True)
class Step:
    """What goes wrong, after what went well before, how many transactions come of it, and whose they are."""

    act: Callable[[Process], None]
    transactions: int
    before: Callable[[Process], object] = lambda _: None
    in_parts: bool = False
    writer: str = "w"


def first_commit(process: Process) -> None:
    """A writer that nobody has opened before."""
    process.writer = open_writer(process.store, f"w{next(process.objects)}", process.limits)
    process.put(process.writer)


def commit(process: Process) -> None:
    process.put(process.open())


def own_checkpoint(process: Process) -> None:
    assert process.open().checkpoint() is not None
    process.checkpoints += 1


def checkpoint_of_all(process: Process) -> None:
    assert process.open().checkpoint(scope="all") is not None
    process.checkpoints += 1


STEPS = {
    "first commit": Step(first_commit, 1),
    "later commit": Step(commit, 1, Process.open),
    "own checkpoint": Step(own_checkpoint, 0, commit),
    "checkpoint of all": Step(checkpoint_of_all, 1, commit, writer="compactor-1"),
    "commit in parts": Step(commit, 1, Process.open, in_parts=True),
    "checkpoint in parts": Step(own_checkpoint, 0, commit, in_parts=True),
}


def files(store: Store, ending: str) -> list[str]:
    return [info.name for info in store.list("") if info.name.endswith(ending)]


def applies(fault: Fault | Refusal, request: Request) -> bool:
    if fault in (Fault.CUT_REQUEST, Fault.CORRUPT_REQUEST):
        return request.size > 0
    # Nothing but TLS tells that a listing was changed on its way, and only objects that are read whole have a checksum.
    return fault is not Fault.CORRUPT_ANSWER or (request.kind == "get" and "Range" not in request.headers)


def combined() -> list[Any]:
    """Every step with every fault, but one: what is put in parts has no checksum of its own bytes that a changed answer could break."""
    pairs = [(name, fault) for name in STEPS for fault in ONCE if not (STEPS[name].in_parts and fault is Fault.CORRUPT_ANSWER)]
    return [
        pytest.param(name, fault, id=f"{name}-{fault.name if isinstance(fault, Fault) else fault.code}") for name, fault in pairs
    ]


@pytest.mark.parametrize(("name", "fault"), combined())
def test_any_request_that_goes_wrong_once_is_made_up_for(
    bench: Bench, name: str, fault: Fault | Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first request of the step, then the second, until it makes no more."""
    step = STEPS[name]

    def skips(step: Step, request: Request) -> bool:
        """What a checkpoint reads meets one kind of fault, in one of them, since the readers below meet them all, in the same place."""
        is_one = step.act in (own_checkpoint, checkpoint_of_all) and request.kind in ("list", "get", "head")
        return is_one and (step.act is own_checkpoint or fault is not Fault.DROP)

    process = Process(bench, step.writer)
    if step.in_parts:
        monkeypatch.setattr(uploads, "THRESHOLD_BYTES", 0)
    hit: list[str] = []
    while True:
        step.before(process)
        before = process.transactions()
        rule = bench.proxy.inject(fault, lambda request: applies(fault, request) and not skips(step, request), first=len(hit))
        step.act(process)
        bench.proxy.heal()
        assert process.transactions() == before + step.transactions
        if not rule.hits:
            break
        hit += [request.kind for request in rule.hits]
    process.check()
    puts = {"create upload", "put part", "complete upload"} if step.in_parts else {"put"}
    if fault in (Fault.CUT_REQUEST, Fault.CORRUPT_REQUEST):
        puts.discard("create upload")
    if fault is not Fault.CORRUPT_ANSWER:
        assert set(hit) >= puts


def from_first(kind: str) -> Callable[[Request], bool]:
    """Whether a request is of the kind, or comes after one that was."""
    away = threading.Event()

    def from_then_on(request: Request) -> bool:
        if request.kind == kind:
            away.set()
        return away.is_set()

    return from_then_on


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.LOSE], ids=["DROP", "LOSE"])
@pytest.mark.parametrize("name", STEPS)
def test_a_store_that_goes_away_for_good_ends_in_a_typed_error_and_opening_again_resolves_it(
    bench: Bench, name: str, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first request of each kind on."""
    step = STEPS[name]
    monkeypatch.setattr(protocol, "PATIENCE_SECONDS", 0.5)
    process = Process(bench, step.writer)
    if step.in_parts:
        monkeypatch.setattr(uploads, "THRESHOLD_BYTES", 0)
    bench.proxy.take()
    step.before(process)
    step.act(process)
    ends: set[type[BucketCatalogError]] = set()
    for kind in sorted({request.kind for request in bench.proxy.take()}):
        step.before(process)
        before, rows = process.transactions(), [*process.committed]
        bench.proxy.inject(fault, from_first(kind), times=None)
        began = time.monotonic()
        with process.impatient(), pytest.raises(LASTING) as caught:
            step.act(process)
        assert time.monotonic() - began < 10
        bench.proxy.heal()
        ends.add(caught.type)
        landed = process.transactions() - before
        assert landed in (0, step.transactions)
        if isinstance(caught.value, CommitUnknown):
            assert landed == (fault is Fault.LOSE and kind != "create upload" and kind != "put part")
            with pytest.raises(ClosedWriter):
                put(process.writer, "never")
        elif step.act in (commit, first_commit):
            assert not landed
        process.committed = [*rows, *process.committed[len(rows) :][:landed]]
        commit(process)
    assert ends <= set(LASTING) and (CommitUnknown in ends or not step.transactions)
    process.check(checkpoints_too=False)  # one whose marker is not there is not known to anybody


# Readers.


@pytest.fixture
def filled(bench: Bench) -> str:
    """A catalog with a checkpoint, and what came after it."""
    url = bench.place()
    store = bench.untroubled(url)
    first, second = open_writer(store, "w"), open_writer(store, "v")
    put(first, *(f"a{number}" for number in range(100)))
    first.checkpoint()
    put(second, "b")
    put(first, "c")
    return url


def read(store: Store) -> list[str]:
    snapshot = Catalog(store).snapshot()
    assert snapshot.get("objects", **obj("c")) is not None
    return names(snapshot)


ROWS = sorted([*(f"a{number}" for number in range(100)), "b", "c"])
OF_READS = [fault for fault in ONCE if fault not in (Fault.CUT_REQUEST, Fault.CORRUPT_REQUEST, Fault.LATE)]
"""What can go wrong with requests that have no body and change nothing: to arrive late is to be lost."""


@pytest.mark.parametrize("fault", OF_READS, ids=lambda fault: fault.name if isinstance(fault, Fault) else fault.code)
def test_a_reader_is_shown_the_right_rows_whatever_goes_wrong_once(bench: Bench, filled: str, fault: Fault | Refusal) -> None:
    assert read(bench.store(filled)) == ROWS
    requests = bench.proxy.take()
    assert {request.kind for request in requests} >= {"list", "get"} and len(requests) > 8
    for number, request in enumerate(requests):
        if applies(fault, request):
            rule = bench.proxy.inject(fault, first=number)
            assert read(bench.store(filled)) == ROWS
            assert len(rule.hits) == 1
            bench.proxy.heal()


def test_a_reader_stops_at_a_part_of_a_file_that_is_changed_on_its_way(bench: Bench, filled: str) -> None:
    """No store has a checksum of a range: that of the block tells."""
    rule = bench.proxy.inject(Fault.CORRUPT_ANSWER, lambda request: "Range" in request.headers, times=None)
    with pytest.raises(CorruptionError, match=r"\.parquet"):
        read(bench.store(filled))
    assert rule.hits


@pytest.mark.parametrize("fault", [Fault.LOSE, SLOW_DOWN], ids=["LOSE", "SlowDown"])
def test_a_reader_of_a_store_that_goes_away_gets_one_typed_error(bench: Bench, filled: str, fault: Fault | Refusal) -> None:
    """From the first request of each kind on."""
    read(bench.store(filled))
    kinds = [(request.kind, "Range" in request.headers) for request in bench.proxy.take()]
    assert set(kinds) >= {("list", False), ("get", False), ("get", True)}
    for number in sorted(kinds.index(kind) for kind in set(kinds)):
        bench.proxy.inject(fault, first=number, times=None)
        with pytest.raises(StoreUnreachable, match="Next: "):
            read(bench.store(filled, retry_timeout=0.1))
        bench.proxy.heal()
    assert read(bench.store(filled)) == ROWS


# How they come back.


def pauses(requests: list[Request], writer: str) -> list[float]:
    times = [request.at for request in requests if f"/{writer}/" in request.target]
    return [later - earlier for earlier, later in pairwise(times)]


def test_clients_that_were_refused_at_once_do_not_come_back_at_once(bench: Bench) -> None:
    store = bench.store(bench.place())
    writers = [open_writer(store, name) for name in ("w", "v")]
    bench.proxy.take()
    for name in ("w", "v"):
        bench.proxy.inject(SLOW_DOWN, lambda request, name=name: request.kind == "put" and f"/{name}/" in request.target, times=6)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(put, writers, "ab"))
    asked = [request for request in bench.proxy.take() if request.kind == "put"]
    mine, theirs = pauses(asked, "w"), pauses(asked, "v")
    assert len(mine) == len(theirs) == 6
    assert max(abs(one - other) for one, other in zip(mine, theirs, strict=True)) > 0.005
    for each in (mine, theirs):
        assert all(pause < 0.05 * 2**number + 0.5 for number, pause in enumerate(each))


def test_everybody_gets_through_a_storm_and_nobody_adds_to_it(bench: Bench) -> None:
    """For a second the store refuses everything, then every third request."""
    url, chance = bench.place(), random.Random(9)
    writers = [open_writer(bench.store(url, retry_timeout=30), f"w{number}") for number in range(6)]
    bench.proxy.take()
    bench.proxy.inject(SLOW_DOWN, times=None)
    done: list[str] = []

    def work(number: int) -> None:
        for turn in range(3):
            put(writers[number], f"{number}-{turn}")
            done.append(f"{number}-{turn}")

    with ThreadPoolExecutor(6) as pool:
        working = [pool.submit(work, number) for number in range(6)]
        time.sleep(1)
        stormy = bench.proxy.take()
        assert not done
        bench.proxy.heal()
        bench.proxy.inject(SLOW_DOWN, lambda _: chance.random() < 1 / 3, times=None)
        for each in working:
            each.result(60)
    bench.proxy.heal()
    assert len(stormy) < 6 * 20
    assert names(Catalog(bench.untroubled(url)).snapshot()) == sorted(done) and len(done) == 18
    assert len(files(bench.untroubled(url), ".txn")) == 18


@pytest.mark.parametrize("fault", [Fault.HANG, SLOW_DOWN], ids=["HANG", "SlowDown"])
def test_trying_again_ends_at_the_deadline(bench: Bench, fault: Fault | Refusal) -> None:
    url = bench.place()
    store = bench.store(url, retry_timeout=1)
    writer = open_writer(store, limits=Limits(commit_delay=1_000_000))
    bench.proxy.inject(fault, lambda request: request.kind != "head", times=None)
    for call, errors in (
        (lambda: store.get("a"), StoreUnreachable),
        (lambda: [*store.list("a/")], StoreUnreachable),
        (lambda: put(writer, "a"), LASTING),
    ):
        began = time.monotonic()
        with pytest.raises(errors):
            call()
        # Its last attempt begins before the deadline, after a pause that is no longer than what has passed; by default it would be 30 s.
        assert 0.9 < time.monotonic() - began < 25


def test_a_put_that_arrives_when_its_writer_has_given_up_is_found_by_the_next(bench: Bench) -> None:
    url = bench.place()
    writer = open_writer(bench.store(url), limits=Limits(commit_delay=400_000))
    late = bench.proxy.inject(Fault.LATE, lambda request: request.kind == "put", times=None)
    with pytest.raises(CommitUnknown, match="Open the writer again"):
        put(writer, "a")
    assert len({hit.target for hit in late.hits}) == 1
    bench.proxy.heal()
    until = time.monotonic() + 10
    while not files(bench.untroubled(url), ".txn") and time.monotonic() < until:
        time.sleep(0.05)
    second = open_writer(bench.store(url))
    put(second, "b")
    assert names(Catalog(bench.untroubled(url)).snapshot()) == ["a", "b"]
    assert len(files(bench.untroubled(url), ".txn")) == 2


def test_a_reader_and_a_writer_share_a_store_that_stumbles(bench: Bench) -> None:
    """Every fifth request fails, in any way; nobody sees anything but slowness."""
    url, chance = bench.place(), random.Random(10)
    faults = [fault for fault in ONCE if fault not in (Fault.CORRUPT_ANSWER, Fault.LATE)]
    writer = open_writer(bench.store(url, retry_timeout=30))
    put(writer, "")
    for fault in faults:
        bench.proxy.inject(fault, lambda _: chance.random() < 0.2 / len(faults), times=None)
    committed: list[str] = [""]
    finished = threading.Event()

    def follow() -> int:
        catalog, looks = Catalog(bench.store(url, retry_timeout=30)), 0
        while not finished.is_set():
            known = [*committed]
            assert set(known) <= set(names(catalog.snapshot(database=DATABASE)))
            looks += 1
        return looks

    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(follow)
        try:
            for number in range(40):
                put(writer, f"{number:02}")
                committed.append(f"{number:02}")
                if number % 10 == 9:
                    writer.checkpoint()
        finally:
            finished.set()
        assert following.result(60) > 0
    bench.proxy.heal()
    assert names(Catalog(bench.untroubled(url)).snapshot()) == committed
