"""Operations cost the requests that the guide says. Each row of its table that states numbers is measured here."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from bucketcatalog.store.faults import Counting
from bucketcatalog.store.memory import MemoryStore

from ..kit.world import DAY, HOUR, Clock, World, bucket, obj
from .guide import GUIDE, table_rows

WRITERS, COMMITS = 3, 4


class Measured(World):
    """A catalog of some writers, and a store that counts."""

    def __init__(self) -> None:
        clock = Clock()
        self.counting = Counting(MemoryStore(clock=clock))
        super().__init__(self.counting)
        self.clock = clock
        self.open = [self.writer(f"node-{number}") for number in range(WRITERS)]
        for writer in self.open:
            for number in range(COMMITS):
                self.commit(writer, ("put", "objects", obj(f"{writer.id}/{number}")))

    def cost(self, call: Callable[[], object]) -> dict[str, int]:
        """Requests by the columns of the guide."""
        self.counting.reset()
        call()
        made = dict(self.counting.requests)
        listed = made.pop("list", 0) + made.pop("list_prefixes", 0)
        return {"LIST": listed, "GET": made.pop("get", 0), "range": made.pop("get_range", 0), "PUT": made.pop("put", 0)} | made


@pytest.fixture
def world() -> Measured:
    return Measured()


def documented(operation: str) -> list[str]:
    (row,) = [row[1:] for row in table_rows(GUIDE / "limits.md", "## What operations cost") if row[0] == operation]
    return row


def test_a_commit_is_one_put(world: Measured) -> None:
    assert documented("commit") == ["0", "0", "", "1"]
    for _ in range(3):
        cost = world.cost(lambda: world.commit(world.open[0], ("put", "objects", obj("x"))))
        assert cost == {"LIST": 0, "GET": 0, "range": 0, "PUT": 1}


def test_a_commit_of_more_than_a_transaction_carries_is_a_put_more(world: Measured) -> None:
    operation = "commit of more than 16,384 events, or of more than 8 MiB of them in memory"
    assert documented(operation) == ["0", "0", "", "1 for each 64 MiB of a large table and 1"]
    rows = pa.Table.from_pylist([obj(f"{number:05}") for number in range(16_385)])
    for count, puts in ((16_384, 1), (16_385, 2)):
        cost = world.cost(lambda count=count: world.commit(world.open[0], ("put", "objects", rows.slice(0, count))))  # type: ignore[misc]
        assert cost == {"LIST": 0, "GET": 0, "range": 0, "PUT": puts}


def test_a_commit_that_looks_something_up_costs_a_snapshot(world: Measured) -> None:
    assert world.cost(lambda: world.commit(world.open[0], ("put", "buckets", bucket("b"))))["LIST"] == 1 + 2 * WRITERS


def test_opening_a_writer(world: Measured) -> None:
    assert documented("open a writer")[:2] == [
        "4 + 2 a compactor + 1 a maintainer",
        "0 to 2 + 1 a compactor or maintainer",
    ]
    assert world.cost(lambda: world.writer("new")) == {"LIST": 4, "GET": 0, "range": 0, "PUT": 0}
    assert world.cost(lambda: world.writer("node-0")) == {"LIST": 4, "GET": 1, "range": 0, "PUT": 0}
    world.open[0].checkpoint()
    assert world.cost(lambda: world.writer("node-0")) == {"LIST": 4, "GET": 2, "range": 0, "PUT": 0}
    world.writer("compactor-1").checkpoint(scope="all")
    assert world.cost(lambda: world.writer("node-0")) == {"LIST": 6, "GET": 3, "range": 0, "PUT": 0}


def test_taking_a_snapshot(world: Measured) -> None:
    assert documented("snapshot of a named database")[:2] == ["1 + 2 W", "C + T"]
    transactions = WRITERS * COMMITS
    cost = world.cost(lambda: world.catalog().snapshot(database="default"))
    assert cost == {"LIST": 1 + 2 * WRITERS, "GET": transactions, "range": 0, "PUT": 0}

    world.open[0].checkpoint()
    cost = world.cost(lambda: world.catalog().snapshot(database="default"))
    assert cost == {"LIST": 1 + 2 * WRITERS, "GET": 1 + transactions - COMMITS, "range": 0, "PUT": 0}

    assert documented("the same without naming the database, of which there is one")[:2] == ["3 + 3 W", "C + T"]
    assert world.cost(lambda: world.catalog().snapshot())["LIST"] == 3 + 3 * WRITERS


def test_following(world: Measured) -> None:
    assert documented("snapshot again, in the same process")[:2] == ["1 + W", "new transactions"]
    catalog = world.catalog()
    catalog.snapshot(database="default")
    world.commit(world.open[0], ("put", "objects", obj("x")))
    assert world.cost(lambda: catalog.snapshot(database="default")) == {"LIST": 1 + WRITERS, "GET": 1, "range": 0, "PUT": 0}


def test_looking_up(world: Measured) -> None:
    assert documented("look-up, for the first time")[2] == "1 a [level](../spec/checkpoints.md) + 1"
    again = "look-up again: in a block that was not read yet, in one that was; of a key that is not there"
    assert documented(again)[2] == "1, 0; 0, once in two hundred times 1"
    with world.writer("compactor-1") as compactor:
        assert world.cost(lambda: compactor.checkpoint(scope="all"))["PUT"] == int(
            documented("checkpoint of every writer")[3].partition(",")[0]
        )
    snapshot = world.catalog().snapshot(database="default")
    key = obj("node-1/2")
    assert world.cost(lambda: snapshot.get("objects", **key))["range"] == 2
    for known in (key, obj("node-1/1"), obj("node-1/2x")):
        assert world.cost(lambda known=known: snapshot.get("objects", **known)) == {"LIST": 0, "GET": 0, "range": 0, "PUT": 0}  # type: ignore[misc]
    snapshot = world.catalog().snapshot(database="default")
    assert world.cost(lambda: snapshot.get("objects", **obj("node-1/2x")))["range"] == 1  # index and filters
    assert world.cost(lambda: snapshot.get("objects", **key)) == {"LIST": 0, "GET": 0, "range": 1, "PUT": 0}


def test_a_checkpoint_of_one_writer(world: Measured) -> None:
    cost = world.cost(world.open[0].checkpoint)
    assert str(cost["LIST"]) == documented("checkpoint of one writer")[0].partition(",")[0]
    assert str(cost["PUT"]) == documented("checkpoint of one writer")[3].partition(",")[0]


def test_snapshots_of_the_past(world: Measured) -> None:
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    version = world.snapshot().version
    moment = world.clock.now
    for options in ({"version": version}, {"timestamp": f"@{moment}"}):
        cost = world.cost(lambda options=options: world.catalog().snapshot(database="default", **options))
        assert cost["LIST"] <= 1 + 2 * (WRITERS + 1)


def test_giving_and_moving_a_pin(world: Measured) -> None:
    operation = "give, move or drop a pin, with a writer held open"
    assert documented(operation)[0] == "1 + W, or as a snapshot for the first time; at a version, as a snapshot at that beside"
    follower = world.writer("follower")
    first = world.cost(lambda: follower.pin("p"))
    assert first == {"LIST": 1 + 2 * WRITERS, "GET": WRITERS * COMMITS, "range": 0, "PUT": 1}
    writers = WRITERS + 1
    met_first = world.cost(lambda: follower.pin("p"))
    assert met_first["PUT"] == 0 and met_first["LIST"] <= 1 + 2 * writers, "its own timeline is new to it"
    for number in range(2):
        world.commit(world.open[0], ("put", "objects", obj(f"new {number}")))
        assert world.cost(lambda: follower.pin("p")) == {"LIST": 1 + writers, "GET": 1, "range": 0, "PUT": 1}
        assert world.cost(lambda: follower.pin("p"))["PUT"] == 0
    version = world.snapshot().version
    at_version = world.cost(lambda: follower.pin("p", version=version))
    past = world.cost(lambda: world.catalog().snapshot(database="default", version=version))["LIST"]
    assert at_version["PUT"] == 0 and at_version["LIST"] <= 1 + writers + past
    assert world.cost(lambda: follower.unpin("p")) == {"LIST": 1 + writers, "GET": 0, "range": 0, "PUT": 1}


def test_giving_and_reading_a_tag(world: Measured) -> None:
    assert documented("give or drop a tag, with a writer held open")[0] == "1 + W, or as a snapshot for the first time"
    maintainer = world.writer("maintainer-1")
    first = world.cost(lambda: maintainer.tag("x"))
    assert first == {"LIST": 1 + 2 * WRITERS, "GET": WRITERS * COMMITS, "range": 0, "PUT": 1}
    assert world.cost(lambda: maintainer.tag("x"))["PUT"] == 0
    maintainer.drop_tag("x")
    dropped = world.cost(lambda: maintainer.tag("x"))
    assert (dropped["LIST"], dropped["PUT"]) == (1 + WRITERS + 1, 1)

    operation = "the same in a database with a maintainer, who may have pruned; also snapshot at a tag"
    assert documented(operation)[0] == "those of a snapshot now and of the past"
    now = world.cost(lambda: world.catalog().snapshot(database="default"))["LIST"]
    for version in (world.snapshot(version="x").version, "x"):
        past = world.cost(lambda version=version: world.catalog().snapshot(database="default", version=version))["LIST"]
        assert past <= now + 1 + 2 * (WRITERS + 1)


def test_reading_a_tag_whose_transactions_were_pruned(world: Measured, monkeypatch: pytest.MonkeyPatch) -> None:
    operation = "snapshot at a tag whose transactions were pruned"
    assert documented(operation)[:3] == ["1 and 1 a maintainer more", "1 more for each tag that is not older, and a HEAD", "0"]
    monkeypatch.setattr("bucketcatalog.clock.now_us", world.clock)
    with world.writer("maintainer-1") as maintainer:
        maintainer.tag("x")
    for _ in range(3):
        world.clock.tick(3 * DAY)
        for writer in world.open:
            world.commit(writer, ("put", "objects", obj("later")), ("put", "buckets", bucket("later")))
        world.clock.tick(HOUR)
        with world.writer("compactor-1") as compactor:
            compactor.checkpoint(scope="all")
        world.catalog().prune("36h", dry_run=False, writer="maintainer-1", clock=world.clock)
    there = [info.name.rpartition("/")[2] for info in world.counting.list("node-0/default/transactions/")]
    assert there and not [name for name in there if name.startswith("0" * 20)]
    now = world.cost(lambda: world.catalog().snapshot(database="default"))
    cost = world.cost(lambda: world.catalog().snapshot(database="default", version="x"))
    writers, maintainers = WRITERS + 2, 1
    assert (cost["range"], cost["head"]) == (0, 1)
    assert cost["LIST"] <= now["LIST"] + 1 + 2 * writers + 1 + maintainers
    assert cost["GET"] <= now["GET"] + 2
    catalog = world.catalog()
    catalog.snapshot(database="default", version="x")
    assert world.cost(lambda: catalog.snapshot(database="default", version="x"))["range"] == 0
