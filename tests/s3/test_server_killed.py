"""The server is killed in the middle of many processes' commits, and comes back: nothing that was acknowledged is lost, nothing is torn."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import Catalog
from bucketcatalog.store.s3.store import S3Store
from minio.clients import client
from minio.process import Server

from ..kit.world import names
from .committing import DATABASE, ROWS, Plan, Running, names_of, running

pytestmark = pytest.mark.long

URL = "s3://lake/inventory"
AWAY = 3.0
"""Seconds for which the server is gone."""


@pytest.fixture
def own() -> Iterator[Server]:
    """A server that the test may kill, with an empty bucket."""
    with Server() as running:
        root = client(running.storage_options)
        root.create_bucket(Bucket="lake")
        root.close()
        yield running
        running.kill()


def kill_in_the_middle(own: Server, plans: list[Plan], stop: Path) -> tuple[Running, dict[str, int]]:
    """Let all commit, kill the server, start it again, let all commit again; returns how far each was when the server was killed."""
    writers = [writer for plan in plans for writer in plan.commits]
    with running(plans) as found:
        try:
            found.wait(lambda: all(len(found.done.get(writer, ())) >= 3 for writer in writers), 60)
            own.kill()
            killed = {writer: found.done[writer][-1] for writer in writers}
            time.sleep(AWAY)
            own.start()
            found.wait(lambda: all(found.done[writer][-1] > killed[writer] + 2 for writer in writers), 60)
        finally:
            stop.touch()
    return found, killed


def check(own: Server, found: Running) -> None:
    """Every acknowledged commit is there, any other wholly or not at all; every timeline is one without gaps."""
    store = S3Store(URL, own.storage_options)
    snapshot = Catalog(store).snapshot(database=DATABASE)
    there = names(snapshot)
    assert len(set(there)) == len(there)
    acknowledged = {name for writer, numbers in found.done.items() for number in numbers for name in names_of(writer, number)}
    assert acknowledged <= set(there)
    begun = {writer: set(numbers) for writer, numbers in found.began.items()}
    unsure = {(name.split("/")[0], int(name.split("/")[1])) for name in set(there) - acknowledged}
    assert all(number in begun[writer] for writer, number in unsure)
    assert all(set(names_of(writer, number)) <= set(there) for writer, number in unsure)
    transactions = 0
    for writer in found.done:
        timeline = [info.name for info in store.list(f"{writer}/{DATABASE}/transactions/")]
        assert [int(name.split("/")[-2]) for name in timeline] == [*range(len(timeline))]
        transactions += len(timeline)
    assert transactions * ROWS == len(there)
    assert snapshot.scan("forks").to_arrow().num_rows == 0


def test_writers_outlast_a_server_that_is_killed_and_comes_back(own: Server, tmp_path: Path) -> None:
    """Also where the store gives up much earlier than a commit does, and where a look and a question for the time come before the put.

    Of those there are sixteen, so that some of them are about to look when the server goes.
    """
    stop = tmp_path / "stop"
    impatient = {**own.storage_options, "retry_timeout": 0.3, "read_timeout": 2}
    plans = [
        *(Plan(URL, own.storage_options, {f"patient-{number}": 100_000}, str(stop)) for number in range(4)),
        *(
            Plan(URL, impatient, {f"impatient-{number}-{thread}": 100_000 for thread in range(4)}, str(stop), looks=True)
            for number in range(4)
        ),
    ]
    found, killed = kill_in_the_middle(own, plans, stop)
    assert found.failed == []
    assert all(len(found.done[writer]) > killed[writer] for writer in killed)
    assert all(numbers == [*range(len(numbers))] for numbers in found.done.values())
    check(own, found)


def test_writers_that_give_up_earlier_go_on_when_they_are_opened_again(own: Server, tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    options: dict[str, Any] = {**own.storage_options, "retry_timeout": 0.3, "read_timeout": 2}
    plans = [
        Plan(URL, options, {f"w{number}": 100_000}, str(stop), looks=bool(number % 2), commit_delay=500_000)
        for number in range(8)
    ]
    found, _ = kill_in_the_middle(own, plans, stop)
    assert {code for _, code in found.failed} <= {"STORE_UNREACHABLE", "COMMIT_UNKNOWN"}
    assert {writer for writer, _ in found.failed} == set(found.done)
    check(own, found)
