"""Operations of threads share transactions: which do, which never, and what becomes of the others when one of them fails."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from bucketcatalog import Catalog, ClosedWriter, CommitUnknown, InvalidRows, StoreUnavailable
from bucketcatalog.errors import AccessDenied, OutcomeUnknown
from bucketcatalog.store.wrappers import Wrapped
from bucketcatalog.systems.manta.errors import (
    BucketAlreadyExists,
    BucketNotEmpty,
    BucketNotFound,
    ObjectNotFound,
    PreconditionFailedError,
)
from bucketcatalog.systems.manta.operations import Manta

from ....kit.manta.nodes import ID_3, ID_4, Gated, events, listed, node_of, operations, tombstones
from ....kit.world import BUCKET, ID_1, ID_2, MINUTE, OWNER, World, bucket, names, obj, rows, version

Call = Callable[[], Any]


class Slow(Wrapped):
    """A store whose puts take their time."""

    def put(self, name: str, data: bytes) -> None:
        time.sleep(0.01)
        self.inner.put(name, data)


def slow() -> tuple[World, Manta]:
    world = World()
    return world, Manta(Catalog(Slow(world.store)), writer="node-1", clock=world.clock)


def create(node: Manta, name: str, id_: str = ID_1, **more: Any) -> Call:
    return partial(node.createobject, **obj(name, id=id_, **more))


@pytest.fixture
def gated() -> Gated:
    return Gated()


class TestSharing:
    def test_operations_of_eight_threads_take_fewer_commits_than_operations(self) -> None:
        world, node = slow()
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(lambda number: create(node, f"{number:02}")(), range(80)))
        assert [row["name"] for row in results] == names(world.snapshot()) == [f"{number:02}" for number in range(80)]
        counts = events(world)
        assert sum(counts) == 80 and len(counts) <= 40 and max(counts) <= 8
        assert results == node.listobjects(owner=OWNER, bucket_id=BUCKET).rows

    def test_what_came_during_a_commit_is_the_next_one(self, gated: Gated) -> None:
        results = gated.behind(create(gated.node, "first"), *(create(gated.node, name) for name in "abcdefg"))
        assert [row["name"] for row in results] == list("abcdefg") and events(gated.world) == [1, 7]

    def test_operations_of_one_thread_share_nothing(self, gated: Gated) -> None:
        for name in "abc":
            create(gated.node, name)()
        assert events(gated.world) == [1, 1, 1]

    def test_all_kinds_of_operations_on_objects_and_new_buckets_share(self, gated: Gated) -> None:
        node, world = gated.node, gated.world
        for name in "ab":
            create(node, name)()
        created, updated, deleted, made, got = gated.behind(
            create(node, "first"),
            create(node, "c", ID_2),
            partial(node.updateobject, **obj("a", content_type="new", headers={})),
            partial(node.deleteobject, **obj("b")),
            partial(node.createbucket, **bucket("photos")),
            create(node, "d", ID_3, conditions={"if-none-match": "*"}),
        )
        assert events(world) == [1, 1, 1, 5] and [row["operation"] for row in operations(world)][2:] == [
            "createobject",
            "operations",
        ]
        assert node.getobject(**obj("c")) == created and node.getobject(**obj("d")) == got
        assert node.getobject(**obj("a")) == updated and updated["content_type"] == "new"
        assert [row["id"] for row in deleted] == [ID_1] and tombstones(world, "name") == [("b",)]
        assert node.getbucket(**bucket("photos")) == made

    def test_each_is_told_the_version_that_it_has_begun(self, gated: Gated) -> None:
        gated.behind(create(gated.node, "first"), *(create(gated.node, name) for name in "abc"))
        before = [version(obj(name), gated.world.snapshot()) for name in "abc"]
        for name in "abc":
            gated.node.createobject(**obj(name, id=ID_2), conditions={"if-match": ID_1})
        assert len({*before}) == 3 and rows(gated.world.snapshot(), "conflicts") == []

    def test_a_transaction_carries_at_most_32_of_them(self, gated: Gated) -> None:
        gated.behind(create(gated.node, "first"), *(create(gated.node, f"{number:02}") for number in range(40)))
        assert events(gated.world) == [1, 32, 8]

    def test_what_is_asked_waits_for_no_commit(self, gated: Gated) -> None:
        create(gated.node, "a")()
        found: list[Any] = []

        def ask() -> None:
            found.append((listed(gated.node), gated.node.getobject(**obj("a"))["id"]))

        gated.gate.before = ask
        create(gated.node, "b")()
        assert found == [(["a"], ID_1)]


class TestOneKey:
    def test_two_on_one_object_never_share_and_keep_their_order(self, gated: Gated) -> None:
        ids = [ID_1, ID_2, ID_3, ID_4]
        results = gated.behind(create(gated.node, "first"), *(create(gated.node, "a", id_) for id_ in ids))
        assert [row["id"] for row in results] == ids and events(gated.world) == [1, 1, 1, 1, 1]
        assert tombstones(gated.world, "id") == [(ID_1,), (ID_2,), (ID_3,)]

    def test_the_second_sees_what_the_first_has_done(self, gated: Gated) -> None:
        node = gated.node
        created, again, updated, deleted, gone, anew = gated.behind(
            create(node, "first"),
            create(node, "a", ID_1, conditions={"if-none-match": "*"}),
            create(node, "a", ID_2, conditions={"if-none-match": "*"}),
            partial(node.updateobject, **obj("a", content_type="new", headers={}), conditions={"if-match": ID_1}),
            partial(node.deleteobject, **obj("a"), conditions={"if-match": ID_1}),
            partial(node.updateobject, **obj("a", content_type="x", headers={})),
            create(node, "a", ID_3, conditions={"if-none-match": "*"}),
        )
        assert isinstance(again, PreconditionFailedError) and isinstance(gone, ObjectNotFound)
        assert created["content_type"] is None and updated["content_type"] == "new" and deleted[0]["id"] == ID_1
        assert anew["id"] == ID_3 and events(gated.world) == [1, 1, 1, 1, 1]
        assert rows(gated.world.snapshot(), "conflicts") == []

    def test_others_pass_what_waits_for_its_key(self, gated: Gated) -> None:
        calls = [create(gated.node, name, id_) for name, id_ in [("a", ID_1), ("a", ID_2), ("b", ID_1), ("a", ID_3), ("b", ID_2)]]
        gated.behind(create(gated.node, "first"), *calls)
        assert events(gated.world) == [1, 2, 2, 1]
        assert gated.node.getobject(**obj("a"))["id"] == ID_3 and gated.node.getobject(**obj("b"))["id"] == ID_2

    def test_of_two_that_create_one_bucket_the_second_is_told_that_it_exists(self, gated: Gated) -> None:
        call = partial(gated.node.createbucket, **bucket("photos"))
        first, second = gated.behind(create(gated.node, "first"), call, call)
        assert gated.node.getbucket(**bucket("photos")) == first and isinstance(second, BucketAlreadyExists)

    def test_threads_that_create_one_object_without_conditions_lose_none_of_it(self) -> None:
        world, node = slow()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: create(node, "a", content_length=number)(), range(24)))
        lengths = [length for (length,) in tombstones(world, "content_length")]
        last = node.getobject(**obj("a"))["content_length"]
        assert sorted([*lengths, last]) == list(range(24)) and events(world) == [1] * 24

    def test_threads_that_create_one_object_if_there_is_none_create_it_once(self) -> None:
        _, node = slow()

        def one(number: int) -> bool:
            try:
                create(node, "a", content_length=number, conditions={"if-none-match": "*"})()
            except PreconditionFailedError:
                return False
            return node.getobject(**obj("a"))["content_length"] == number

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(one, range(24))) == 1


class TestFailing:
    def test_what_is_refused_fails_alone(self, gated: Gated) -> None:
        node = gated.node
        results = gated.behind(
            create(node, "first"),
            create(node, "a"),
            create(node, "b", conditions={"if-match": "*"}),
            partial(node.deleteobject, **obj("c")),
            create(node, "d"),
        )
        assert [type(result) for result in results] == [dict, PreconditionFailedError, ObjectNotFound, dict]
        assert names(gated.world.snapshot()) == ["a", "d", "first"] and events(gated.world) == [1, 2]

    def test_where_all_are_refused_nothing_is_committed(self, gated: Gated) -> None:
        calls = [create(gated.node, name, conditions={"if-match": "*"}) for name in "abc"]
        results = gated.behind(create(gated.node, "first"), *calls)
        assert {type(result) for result in results} == {PreconditionFailedError} and events(gated.world) == [1]

    @pytest.mark.parametrize(
        "bad", [{"content_length": -1}, {"properties": "{"}, {"roles": ["x"]}, {"headers": {"a": 1}}, {"headers": 7}], ids=str
    )
    def test_one_whose_row_does_not_fit_waits_for_nobody(self, gated: Gated, bad: dict[str, Any]) -> None:
        with pytest.raises(InvalidRows):
            create(gated.node, "b", **bad)()
        assert events(gated.world) == []

    def test_one_whose_row_is_too_large_fails_alone(self, gated: Gated) -> None:
        node, large = gated.node, {"headers": {"a": "x" * (1 << 26)}}
        results = gated.behind(create(node, "first"), create(node, "a"), create(node, "b", **large), create(node, "c"))
        assert [type(result) for result in results] == [dict, InvalidRows, dict]
        assert names(gated.world.snapshot()) == ["a", "c", "first"]
        assert [node.getobject(**obj(name)) for name in "ac"] == [results[0], results[2]]

    def test_what_was_committed_is_told_though_what_came_with_it_fails(self, gated: Gated) -> None:
        node, large = gated.node, {"headers": {"a": "x" * (1 << 26)}}

        def refuse_the_second() -> None:
            gated.gate.before = refuse

        def refuse() -> None:
            raise AccessDenied("No.", next_step="Ask.")

        def let_one_more() -> None:
            gated.gate.after = refuse_the_second

        gated.gate.after = let_one_more
        results = gated.behind(create(node, "first"), create(node, "a"), create(node, "b", **large), create(node, "c"))
        assert [type(result) for result in results] == [dict, InvalidRows, AccessDenied]
        gated.gate.before = gated.gate.after = lambda: None
        assert names(gated.world.snapshot()) == ["a", "first"]

    def test_after_an_interrupt_the_node_goes_on(self, gated: Gated) -> None:
        def interrupt() -> None:
            raise KeyboardInterrupt

        gated.gate.before = interrupt
        with pytest.raises(KeyboardInterrupt):
            create(gated.node, "a")()
        gated.gate.before = lambda: None
        assert create(gated.node, "b")()["name"] == "b"

    @pytest.mark.parametrize("landed", [True, False])
    def test_a_commit_whose_outcome_is_unknown_fails_all_that_shared_it(self, gated: Gated, landed: bool) -> None:
        node, world, gate = gated.node, gated.world, gated.gate

        def lose() -> None:
            world.clock.tick(20 * MINUTE)
            raise OutcomeUnknown("The answer was lost.", next_step="Put the same bytes again.")

        def then_lose() -> None:
            setattr(gate, "after" if landed else "before", lose)

        gate.after = then_lose
        results = gated.behind(create(node, "first"), *(create(node, name) for name in "abc"))
        gate.before = gate.after = lambda: None
        assert [type(result) for result in results] == [CommitUnknown] * 3

        assert create(node, "d")()["name"] == "d"
        found = ["a", "b", "c", "d", "first"] if landed else ["d", "first"]
        assert names(world.snapshot()) == listed(node) == found
        assert rows(world.snapshot(), "forks") == []
        for name in "abc":
            if landed:
                assert node.getobject(**obj(name))["id"] == ID_1
            else:
                with pytest.raises(ObjectNotFound):
                    node.getobject(**obj(name))

    @pytest.mark.parametrize("fresh", [0, 3600])
    def test_after_an_unknown_outcome_conditions_are_about_what_has_come_of_it(self, fresh: float) -> None:
        gated = Gated(fresh=fresh)
        node, world = gated.node, gated.world
        listed(node)
        gated.gate.after = lambda: world.clock.tick(20 * MINUTE) and None
        with pytest.raises(CommitUnknown):
            create(node, "a", ID_1, conditions={"if-none-match": "*"})()
        gated.gate.after = lambda: None
        with pytest.raises(PreconditionFailedError):
            create(node, "a", ID_2, conditions={"if-none-match": "*"})()
        assert create(node, "a", ID_2, conditions={"if-match": ID_1})()["id"] == ID_2

    def test_a_store_that_refuses_fails_all_that_shared_it_and_the_node_goes_on(self, gated: Gated) -> None:
        node = gated.node

        def refuse() -> None:
            raise AccessDenied("Not you.", next_step="Ask.")

        def then_refuse() -> None:
            gated.gate.before = refuse

        gated.gate.after = then_refuse
        results = gated.behind(create(node, "first"), *(create(node, name) for name in "ab"))
        gated.gate.before = gated.gate.after = lambda: None
        assert [type(result) for result in results] == [AccessDenied] * 2
        assert create(node, "c")()["name"] == "c" and names(gated.world.snapshot()) == ["c", "first"]

    def test_a_look_that_fails_fails_what_needed_it_alone(self) -> None:
        gated = Gated()
        node = gated.node
        create(node, "a")()

        class Blind(Wrapped):
            def list_prefixes(self, prefix: str, *, begin: str = "") -> list[str]:
                raise StoreUnavailable("No answer.", next_step="Wait.")

        seeing, gated.gate.inner = gated.gate.inner, Blind(gated.gate.inner)
        results = gated.behind(
            create(node, "first"), create(node, "b"), partial(node.deleteobject, **obj("a")), create(node, "c")
        )
        gated.gate.inner = seeing
        assert [type(result) for result in results] == [dict, StoreUnavailable, dict]
        assert names(gated.world.snapshot()) == ["a", "b", "c", "first"]


class TestDeletingBuckets:
    def test_it_shares_with_nobody_and_nobody_passes_it(self, gated: Gated) -> None:
        node = gated.node
        node.createbucket(**bucket("photos"))
        results = gated.behind(
            create(node, "first"),
            create(node, "a"),
            create(node, "b"),
            partial(node.deletebucket, **bucket("photos")),
            create(node, "c"),
            create(node, "d"),
        )
        assert results[2] == 1
        commits = [(row["operation"], row["events"]) for row in operations(gated.world)]
        assert commits[2:] == [("createobject", 2), ("deletebucket", 1), ("createobject", 2)]

    def test_two_share_nothing(self, gated: Gated) -> None:
        calls = []
        for name in ("photos", "videos"):
            gated.node.createbucket(**bucket(name))
            calls.append(partial(gated.node.deletebucket, **bucket(name)))
        assert gated.behind(create(gated.node, "first"), *calls) == [1, 1]
        assert events(gated.world) == [1, 1, 1, 1, 1]

    def test_an_object_that_came_before_it_keeps_the_bucket(self, gated: Gated) -> None:
        node = gated.node
        id_ = node.createbucket(**bucket("photos"))["id"]
        put = partial(node.createobject, owner=OWNER, bucket_id=id_, name="a", id=ID_1)
        _, refused = gated.behind(create(node, "first"), put, partial(node.deletebucket, **bucket("photos")))
        assert isinstance(refused, BucketNotEmpty) and node.getbucket(**bucket("photos"))["id"] == id_

    def test_an_object_that_was_deleted_before_it_does_not_keep_the_bucket(self, gated: Gated) -> None:
        node = gated.node
        id_ = node.createbucket(**bucket("photos"))["id"]
        node.createobject(owner=OWNER, bucket_id=id_, name="a", id=ID_1)
        end = partial(node.deleteobject, owner=OWNER, bucket_id=id_, name="a")
        _, deleted = gated.behind(create(node, "first"), end, partial(node.deletebucket, **bucket("photos")))
        assert deleted == 1

    def test_creating_and_deleting_one_bucket_go_in_turn(self, gated: Gated) -> None:
        make, end = partial(gated.node.createbucket, **bucket("photos")), partial(gated.node.deletebucket, **bucket("photos"))
        first, one, again, second, exists = gated.behind(create(gated.node, "first"), make, end, end, make, make)
        assert one == 1 and isinstance(again, BucketNotFound) and isinstance(exists, BucketAlreadyExists)
        assert first["id"] != second["id"] and gated.node.getbucket(**bucket("photos")) == second


class TestClosing:
    def test_a_closed_node_commits_nothing_and_answers_still(self, world: World, node: Manta) -> None:
        create(node, "a")()
        node.close()
        with pytest.raises(ClosedWriter):
            create(node, "b")()
        assert node.getobject(**obj("a"))["id"] == ID_1 and names(world.snapshot()) == ["a"]

    def test_a_node_that_is_closed_while_its_writer_is_opened_commits_nothing(self, world: World) -> None:
        node = Manta(world.catalog(), writer="node-1", clock=world.clock)
        opened = node._commits._opened

        def closing() -> Any:
            writer = opened()
            node.close()
            return writer

        node._commits._opened = closing
        with pytest.raises(ClosedWriter):
            create(node, "a")()
        assert names(world.snapshot()) == []
        with pytest.raises(ClosedWriter):
            create(node, "b")()

    def test_a_node_that_was_closed_in_doubt_stays_closed(self, gated: Gated) -> None:
        def lose() -> None:
            gated.world.clock.tick(20 * MINUTE)
            raise OutcomeUnknown("The answer was lost.", next_step="Put the same bytes again.")

        gated.gate.after = lose
        with pytest.raises(CommitUnknown):
            create(gated.node, "a")()
        gated.gate.after = lambda: None
        gated.node.close()
        with pytest.raises(ClosedWriter):
            create(gated.node, "b")()

    def test_a_node_is_closed_by_its_with_block(self, world: World) -> None:
        with node_of(world) as node:
            create(node, "a")()
        with pytest.raises(ClosedWriter):
            create(node, "b")()
        with node_of(world) as node:
            create(node, "b")()
        assert names(world.snapshot()) == ["a", "b"]


def test_one_owner_spelled_in_two_ways_is_one_owner(gated: Gated) -> None:
    node, owner = gated.node, "abcdefab-0000-4000-8000-000000000001"
    buckets = [partial(node.createbucket, owner=each, name="one") for each in (owner, owner.upper())]
    results = gated.behind(create(node, "first"), *buckets)
    assert [type(result) for result in results] == [dict, BucketAlreadyExists]


def test_eight_that_come_again_and_again_share_nearly_all_commits() -> None:
    world, node = slow()
    with ThreadPoolExecutor(8) as pool:
        done = [pool.submit(lambda thread: [create(node, f"{thread}-{n}")() for n in range(10)], thread) for thread in range(8)]
        assert all(len(each.result()) == 10 for each in done)
    assert sum(events(world)) == 80 and len(events(world)) <= 32, "two groups of four, of which one waits while the other is put"
