"""Processes that commit: run as ``python -m tests.s3.committing``, with a plan on standard input, which may hold credentials.

It imports everything once and forks: starting a dozen interpreters takes longer than what they are started for. Each line that they
print is a JSON document: ``{"writer": W, "began": N}`` before, and ``"done"`` after, commit number N of W, ``"failed"`` with the error's
code; at the end of each process what its requests were.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bucketcatalog import Catalog, limits
from bucketcatalog.errors import ClosedWriter, CommitUnknown, OutcomeUnknown, StoreUnreachable
from bucketcatalog.limits import DEFAULT_LIMITS, Limits
from bucketcatalog.store.s3.store import S3Store
from bucketcatalog.write.writer import Writer

from ..kit.world import obj

DATABASE = "db"
ROWS = 2
"""So many objects a commit, so that half a transaction would be seen."""


@dataclass(frozen=True)
class Plan:
    """What one process does: a thread a writer, each with so many commits, or until the file ``stop`` is there.

    With ``looks`` each commit looks and asks for the time first, as one does half a minute after the last. ``commit_delay`` is in
    microseconds.
    """

    url: str
    options: dict[str, Any]
    commits: dict[str, int]
    stop: str = ""
    looks: bool = False
    commit_delay: int = DEFAULT_LIMITS.commit_delay
    go: str = ""


def names_of(writer: str, number: int) -> list[str]:
    """The objects of a commit."""
    return [f"{writer}/{number:05}/{row}" for row in range(ROWS)]


@dataclass
class Running:
    """Processes under way: what they have printed so far, by kind of line and writer."""

    process: subprocess.Popen[str]
    began: dict[str, list[int]] = field(default_factory=dict)
    done: dict[str, list[int]] = field(default_factory=dict)
    failed: list[tuple[str, str]] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)

    def read(self) -> None:
        """Take every line, until the last process has ended."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            told = json.loads(line)
            match told:
                case {"writer": writer, "began": number}:
                    self.began.setdefault(writer, []).append(number)
                case {"writer": writer, "done": number}:
                    self.done.setdefault(writer, []).append(number)
                case {"writer": writer, "failed": code}:
                    self.failed.append((writer, code))
                case {"requests": requests}:
                    self.requests.update(requests)
                case {"crashed": trace}:
                    raise AssertionError(trace)

    def wait(self, until: Callable[[], bool], seconds: float) -> None:
        """Wait until something is so; ``AssertionError`` where it takes too long."""
        deadline = time.monotonic() + seconds
        while not until():
            assert time.monotonic() < deadline, f"{self.done}, failed: {self.failed}"
            assert self.process.poll() is None, "all have ended"
            time.sleep(0.02)


@contextmanager
def running(plans: list[Plan]) -> Iterator[Running]:
    """The processes of the plans, whose lines are read meanwhile; at the end of the block all have ended by themselves."""
    command = [sys.executable, "-m", __name__]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    found = Running(process)
    errors: list[BaseException] = []

    def read() -> None:
        try:
            found.read()
        except BaseException as error:
            errors.append(error)

    reading = threading.Thread(target=read)
    reading.start()
    try:
        assert process.stdin is not None
        with process.stdin:
            process.stdin.write(json.dumps([asdict(plan) for plan in plans]))
        yield found
        code = process.wait(120)
    finally:
        process.kill()
        process.wait()
        reading.join()
        assert process.stdout is not None
        process.stdout.close()
    assert not errors, errors
    assert code == 0


def say(**told: Any) -> None:
    os.write(1, (json.dumps(told) + "\n").encode())  # one write, which other processes' lines do not mix with


class Client:
    """One writer with a catalog of its own, opened again when it has to be; it counts its requests by method and status."""

    def __init__(self, plan: Plan, writer: str) -> None:
        self.plan = plan
        self.id = writer
        self.requests: Counter[str] = Counter()
        store = S3Store(plan.url, plan.options)
        events = store._calls._client().meta.events
        events.register("before-send.s3", self._sends)
        events.register("after-call.s3", self._is_answered)
        self.catalog = Catalog(store)

    def _sends(self, request: Any, **_: Any) -> None:
        self.requests[request.method] += 1

    def _is_answered(self, http_response: Any, **_: Any) -> None:
        self.requests[str(http_response.status_code)] += 1

    def open(self) -> Writer:
        return self.catalog.writer(self.id, database=DATABASE, limits=Limits(commit_delay=self.plan.commit_delay))

    def work(self) -> None:
        writer: Writer | None = None
        for number in range(self.plan.commits[self.id]):
            if self.plan.stop and Path(self.plan.stop).exists():
                return
            say(writer=self.id, began=number)
            try:
                writer = writer or self.open()
                with writer.transaction() as tx:
                    tx.put("objects", [obj(name) for name in names_of(self.id, number)])
                say(writer=self.id, done=number)
            except (StoreUnreachable, OutcomeUnknown, CommitUnknown, ClosedWriter) as error:
                say(writer=self.id, failed=error.code)
                if isinstance(error, CommitUnknown):
                    writer = None


def run(plan: Plan) -> None:
    """Work as one process."""
    if plan.looks:
        limits.LOOK_WITHIN, limits.LEARNT_TIME_LASTS = 0, -1
    clients = [Client(plan, writer) for writer in plan.commits]
    deadline = time.monotonic() + 60
    while plan.go and not Path(plan.go).exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    threads = [threading.Thread(target=guarded, args=(client.work,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say(requests=sum((client.requests for client in clients), Counter()))


def guarded(work: Callable[[], None]) -> None:
    try:
        work()
    except BaseException:
        say(crashed=traceback.format_exc())


def main() -> None:
    """Fork a process for each plan, and wait for all of them."""
    children = []
    for given in json.load(sys.stdin):
        child = os.fork()
        if not child:
            guarded(lambda given=given: run(Plan(**given)))
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
