"""Placement: which node a name lies on, whose nodes are, and how they move without losing anything."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections import Counter
from functools import partial
from typing import Any

import pytest

from bucketcatalog import CatalogWarning, CommitUnknown, InvalidName, InvalidOption
from bucketcatalog.errors import OutcomeUnknown
from bucketcatalog.systems.manta import placement
from bucketcatalog.systems.manta.errors import NotPlacedHere
from bucketcatalog.systems.manta.operations import Manta
from bucketcatalog.systems.manta.placement import MOST_NODES, node_of_bucket, node_of_object

from ....kit.manta.nodes import Gated, after_a_second, listed, node_of, operations
from ....kit.world import BUCKET, ID_1, ID_2, MINUTE, OTHER, OWNER, World, bucket, names, obj, rows, stored

COUNTS = [1, 2, 3, 5, 7, 16, 100, 1000, 65_537, MOST_NODES - 1, MOST_NODES]
HOSTILE = ["a", "A", "2024/\u00e9 \U0001f600", "a:b", ":", "%", "a b\n", "x" * 1024, "\u00e9", "e\u0301"]
BUCKET_NODES = [0, 1, 1, 3, 8, 543, 285_052]
OBJECT_NODES = [0, 0, 0, 1, 4, 260, 136_826]
Row = dict[str, Any]


def by_definition(text: str, nodes: int) -> int:
    """The node as the guide has it: of all hashes, divided into ranges of one length, the range that this one lies in."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()) * nodes // 2**256


def of_name(name: str, nodes: int) -> int:
    return by_definition(f"{OWNER}:{BUCKET}:{hashlib.md5(name.encode()).hexdigest()}", nodes)


def on(node: int, nodes: int) -> str:
    """A name that lies on a node."""
    return next(name for name in map(str, itertools.count()) if of_name(name, nodes) == node)


def create(node: Manta, name: str, id_: str = ID_1) -> Row:
    return node.createobject(**obj(name, id=id_))


def misplaced(world: World) -> list[tuple[str, str]]:
    """The names of objects that lie where another's node is, with who committed them, as the guide defines that."""
    snapshot = world.snapshot()
    placed = {row["node"]: row for row in rows(snapshot, "manta.placement")}
    found = []
    for row in rows(snapshot, "manta_object_writer"):
        of = placed[of_name(row["name"], len(placed))]
        is_owners = row["writer"] == of["writer"] and of["given_to"] is None
        if not is_owners and row["revision"] > dict(of["before"] or ()).get(row["writer"], -1):
            found.append((row["name"], row["writer"]))
    return sorted(found)


@pytest.fixture
def other(world: World) -> Manta:
    return node_of(world, "node-2")


def refusals(node: Manta, name: str, bucket_id: str = BUCKET) -> None:
    """Whatever would change an object is refused, and what reads it is not."""
    key = {"owner": OWNER, "bucket_id": bucket_id, "name": name}
    for change in (
        partial(node.createobject, **key, id=ID_2),
        partial(node.createobject, **key, id=ID_2, conditions={"if-none-match": "*"}),
        partial(node.updateobject, **key, content_type="t", headers={}),
        partial(node.deleteobject, **key),
    ):
        with pytest.raises(NotPlacedHere):
            change()
    assert node.getobject(**key)["id"] == ID_1 and name in listed(node)


class TestNames:
    @pytest.mark.parametrize("nodes", COUNTS)
    def test_nodes_are_what_the_definition_says(self, nodes: int) -> None:
        for name in [*HOSTILE, *map(str, range(300))]:
            assert node_of_object(OWNER, BUCKET, name, nodes) == of_name(name, nodes)
            assert node_of_bucket(OWNER, name, nodes) == by_definition(f"{OWNER}:{name}", nodes)

    def test_nodes_are_the_same_for_ever(self) -> None:
        counts = [1, 2, 3, 7, 16, 1000, 524_288]
        assert [node_of_bucket(OWNER, "photos", nodes) for nodes in counts] == BUCKET_NODES
        assert [node_of_object(OWNER, BUCKET, "2024/\u00e9 \U0001f600", nodes) for nodes in counts] == OBJECT_NODES

    @pytest.mark.parametrize("nodes", [3, 16, 100])
    def test_names_are_spread_evenly(self, nodes: int) -> None:
        given = [f"2024/{number:06}.jpg" for number in range(200 * nodes)]
        for found in (
            Counter(node_of_object(OWNER, BUCKET, name, nodes) for name in given),
            Counter(node_of_bucket(OWNER, name, nodes) for name in given),
        ):
            assert sorted(found) == list(range(nodes)) and 130 < min(found.values()) <= max(found.values()) < 270

    def test_the_names_of_a_node_stay_together_when_each_is_divided_in_two(self) -> None:
        for name in map(str, range(500)):
            assert node_of_object(OWNER, BUCKET, name, 14) // 2 == node_of_object(OWNER, BUCKET, name, 7)

    def test_owner_bucket_and_name_all_count(self) -> None:
        given = [(OWNER, BUCKET, "a"), (OTHER, BUCKET, "a"), (OWNER, ID_1, "a"), (OWNER, BUCKET, "b")]
        assert len({node_of_object(*key, MOST_NODES) for key in given}) == 4
        assert len({node_of_bucket(*key, MOST_NODES) for key in [(OWNER, "a"), (OTHER, "a"), (OWNER, "b")]}) == 3


class TestPlacing:
    def test_without_rows_any_writer_commits_anything(self, node: Manta, other: Manta) -> None:
        assert node.placement.rows() == []
        for by, name in ((node, "a"), (other, "b")):
            create(by, name)
            by.createbucket(**bucket(f"bucket-{name}"))
        assert listed(node) == ["a", "b"]

    def test_nodes_are_given_to_writers_in_turn_and_all_nodes_see_it(self, node: Manta, other: Manta) -> None:
        placed = node.placement.place(5, ["node-1", "node-2"])
        assert [(row["node"], row["nodes"], row["writer"]) for row in placed] == [
            (number, 5, f"node-{1 + number % 2}") for number in range(5)
        ]
        found = other.placement.rows()
        assert found == node.placement.rows() == [row | {"given_to": None, "until": None} for row in placed]

    @pytest.mark.parametrize("nodes", [2, 3, 7])
    def test_each_name_is_changed_by_its_owner_alone(self, node: Manta, other: Manta, nodes: int) -> None:
        by = {"node-1": node, "node-2": other}
        node.placement.place(nodes, [*by])
        for name in [on(number, nodes) for number in range(nodes)]:
            mine = f"node-{1 + of_name(name, nodes) % 2}"
            create(by[mine], name)
            refusals(by["node-2" if mine == "node-1" else "node-1"], name)

    def test_each_bucket_is_changed_by_its_owner_alone(self, node: Manta, other: Manta) -> None:
        by = [node, other]
        node.placement.place(2, ["node-1", "node-2"])
        for name in (f"bucket-{number}" for number in range(8)):
            mine = by_definition(f"{OWNER}:{name}", 2)
            with pytest.raises(NotPlacedHere, match=f"belongs to 'node-{1 + mine}'"):
                by[1 - mine].createbucket(**bucket(name))
            created = by[mine].createbucket(**bucket(name))
            with pytest.raises(NotPlacedHere):
                by[1 - mine].deletebucket(**bucket(name))
            assert by[1 - mine].getbucket(**bucket(name)) == created and by[mine].deletebucket(**bucket(name)) == 1

    def test_a_listing_is_of_all_nodes_in_one_order(self, node: Manta, other: Manta) -> None:
        node.placement.place(3, ["node-1", "node-2"])
        given = [f"{number:02}" for number in range(40)]
        for name in given:
            create(other if of_name(name, 3) == 1 else node, name)
        assert listed(node) == listed(other) == given

    @pytest.mark.parametrize("nodes", [0, -1, MOST_NODES + 1, 1.5, "2", None])
    def test_a_number_that_nodes_cannot_have_is_refused(self, world: World, node: Manta, nodes: Any) -> None:
        with pytest.raises(InvalidOption):
            node.placement.place(nodes, ["node-1"])
        assert node.placement.rows() == []

    @pytest.mark.parametrize("writers", [[], 1, None, ["no name/"], ["node-1", ""]], ids=str)
    def test_writers_that_nobody_can_be_are_refused(self, node: Manta, writers: Any) -> None:
        with pytest.raises((InvalidOption, InvalidName)):
            node.placement.place(2, writers)
        assert node.placement.rows() == []

    def test_what_is_placed_is_not_placed_again(self, node: Manta, other: Manta) -> None:
        node.placement.place(2, ["node-1"])
        for by in (node, other):
            with pytest.raises(InvalidOption, match="placed already"):
                by.placement.place(3, ["node-2"])
        assert [row["writer"] for row in other.placement.rows()] == ["node-1"] * 2

    def test_what_was_committed_before_is_nowhere_misplaced(self, world: World, node: Manta, other: Manta) -> None:
        given = [f"{number:02}" for number in range(24)]
        for name in given:
            create(other if int(name) % 2 else node, name)
        world.commit(world.writer("stranger"), ("put", "objects", obj("strange")))
        assert sorted(names(world.snapshot())) == [*given, "strange"]
        node.placement.place(3, ["node-1", "node-2", "node-3"])
        assert misplaced(world) == []
        world.commit(world.writer("stranger"), ("put", "objects", obj("stranger")))
        assert misplaced(world) == [("stranger", "stranger")]


class TestMoving:
    @pytest.fixture
    def placed(self, node: Manta) -> list[str]:
        """A name on each of two nodes, both the first writer's."""
        node.placement.place(2, ["node-1"])
        found = [on(number, 2) for number in range(2)]
        for name in found:
            create(node, name)
        return found

    def test_in_between_nobody_commits_there_and_everybody_reads(self, node: Manta, other: Manta, placed: list[str]) -> None:
        given = node.placement.give(0, "node-2")
        assert (given["writer"], given["given_to"]) == ("node-1", "node-2")
        assert node.placement.rows() == other.placement.rows() and node.placement.rows()[0] == given
        for by in (node, other):
            refusals(by, placed[0])
        with pytest.raises(NotPlacedHere, match="on its way from 'node-1' to 'node-2'"):
            create(node, placed[0])
        assert create(node, placed[1], ID_2)["id"] == ID_2

    def test_after_it_was_taken_its_new_owner_commits_there_alone(
        self, world: World, node: Manta, other: Manta, placed: list[str]
    ) -> None:
        node.placement.give(0, "node-2")
        taken = other.placement.take(0)
        assert (taken["writer"], taken["given_to"], taken["until"]) == ("node-2", None, None)
        refusals(node, placed[0])
        refusals(other, placed[1])
        assert after_a_second(world, other.createobject, **obj(placed[0], id=ID_2))["id"] == ID_2
        assert misplaced(world) == [] and [row["writer"] for row in node.placement.rows()] == ["node-2", "node-1"]

    def test_it_is_given_up_to_a_cut_with_everything_of_its_owner_and_taken_from_one_with_that(
        self, world: World, node: Manta, other: Manta, placed: list[str]
    ) -> None:
        given = node.placement.give(0, "node-2")
        assert names(world.snapshot(version=given["until"])) == sorted(placed)
        (last,) = [row["revision"] for row in operations(world) if row["operation"] == "givenode"]
        assert given["before"] == {"node-1": last - 1}
        create(node, placed[1], ID_2)
        taken = other.placement.take(0)
        then = world.snapshot(version=taken["taken_from"])
        assert rows(then, "manta.placement")[0]["given_to"] == "node-2" and taken["before"] == {"node-1": last - 1}

    def test_it_may_be_taken_back(self, world: World, node: Manta, other: Manta, placed: list[str]) -> None:
        before = node.placement.rows()[0]
        node.placement.give(0, "node-2")
        back = node.placement.take(0)
        assert (back["writer"], back["given_to"], back["before"]) == ("node-1", None, before["before"])
        assert after_a_second(world, node.createobject, **obj(placed[0], id=ID_2))["id"] == ID_2 and misplaced(world) == []
        with pytest.raises(NotPlacedHere, match="belongs to 'node-1'"):
            other.placement.take(0)

    def test_it_goes_round_and_comes_back(self, world: World, node: Manta, other: Manta, placed: list[str]) -> None:
        third = node_of(world, "node-3")
        ring = [node, other, third, node]
        for number, (old, new) in enumerate(itertools.pairwise(ring)):
            name = f"node-{[2, 3, 1][number]}"
            old.placement.give(0, name)
            new.placement.take(0)
            after_a_second(world, new.createobject, **obj(placed[0], id=ID_2))
            with pytest.raises(NotPlacedHere):
                create(old, placed[0])
        assert misplaced(world) == [] and node.placement.rows()[0]["before"] == other.placement.rows()[0]["before"]
        assert {*node.placement.rows()[0]["before"]} == {"node-2", "node-3"}

    @pytest.mark.parametrize("node_number", [2, -1, "0", None, 0.5])
    def test_a_node_that_is_not_there_is_neither_given_nor_taken(self, node: Manta, placed: list[str], node_number: Any) -> None:
        for move in (partial(node.placement.give, node_number, "node-2"), partial(node.placement.take, node_number)):
            with pytest.raises(InvalidOption, match="no node"):
                move()

    def test_where_nothing_is_placed_nothing_is_given_or_taken(self, world: World, node: Manta) -> None:
        before = stored(world)
        for move in (partial(node.placement.give, 0, "node-2"), partial(node.placement.take, 0)):
            with pytest.raises(InvalidOption, match="There are 0"):
                move()
        assert stored(world) == before

    def test_it_is_given_by_its_owner_alone_and_once(self, node: Manta, other: Manta, placed: list[str]) -> None:
        with pytest.raises(NotPlacedHere, match="belongs to 'node-1', not to 'node-2'"):
            other.placement.give(0, "node-2")
        node.placement.give(0, "node-3")
        before = node.placement.rows()
        for by in (node, other):
            with pytest.raises(NotPlacedHere, match="on its way"):
                by.placement.give(0, "node-2")
        assert node.placement.rows() == before

    def test_it_is_given_to_nobody_who_cannot_be(self, node: Manta, placed: list[str]) -> None:
        before = node.placement.rows()
        with pytest.raises(InvalidName):
            node.placement.give(0, "no name/")
        assert node.placement.rows() == before

    def test_it_is_taken_by_nobody_that_it_was_not_given_to(
        self, world: World, node: Manta, other: Manta, placed: list[str]
    ) -> None:
        with pytest.raises(NotPlacedHere, match="belongs to 'node-1'") as caught:
            other.placement.take(0)
        assert "the node that commits as 'node-1'" in caught.value.next_step
        for change in (partial(node.placement.take, 0), partial(node.placement.give, 0, "node-1")):
            with pytest.raises(InvalidOption, match="'node-1' has node 0 already"):
                change()
        node.placement.give(0, "node-3")
        with pytest.raises(NotPlacedHere, match="to 'node-3'"):
            other.placement.take(0)
        node_of(world, "node-3").placement.take(0)
        with pytest.raises(NotPlacedHere, match="belongs to 'node-3'"):
            node.placement.take(0)


class TestRacing:
    @pytest.mark.parametrize("before", range(4))
    def test_what_a_node_commits_before_it_gives_is_given_and_nothing_comes_after_it(self, before: int) -> None:
        gated = Gated()
        node = gated.node
        node.placement.place(1, ["node-1"])
        calls = [partial(create, node, name) for name in "abc"]
        calls.insert(before, partial(node.placement.give, 0, "node-2"))
        found = gated.behind(partial(create, node, "first"), *calls)
        given = found.pop(before)
        assert [type(result) for result in found] == [dict] * before + [NotPlacedHere] * (3 - before)
        committed = sorted(["first", *"abc"[:before]])
        assert names(gated.world.snapshot()) == names(gated.world.snapshot(version=given["until"])) == committed
        (last,) = [row["revision"] for row in operations(gated.world) if row["operation"] == "givenode"]
        assert given["before"] == {"node-1": last - 1}
        taker = node_of(gated.world, "node-2")
        taker.placement.take(0)
        assert misplaced(gated.world) == [] and listed(taker) == committed

    def test_a_commit_that_is_under_way_when_its_node_is_given_is_given_with_it(self) -> None:
        gated = Gated()
        gated.node.placement.place(1, ["node-1"])
        (given,) = gated.behind(partial(create, gated.node, "a"), partial(gated.node.placement.give, 0, "node-2"))
        assert names(gated.world.snapshot(version=given["until"])) == ["a"] and misplaced(gated.world) == []

    def test_a_commit_that_comes_while_its_node_is_given_is_refused(self) -> None:
        gated = Gated()
        gated.node.placement.place(1, ["node-1"])
        create(gated.node, "a")
        refused = gated.behind(partial(gated.node.placement.give, 0, "node-2"), *(partial(create, gated.node, n) for n in "bc"))
        assert [type(result) for result in refused] == [NotPlacedHere] * 2 and names(gated.world.snapshot()) == ["a"]

    def test_a_node_that_has_not_heard_of_the_placement_loses_nothing(self, world: World, node: Manta, other: Manta) -> None:
        create(other, "early")
        node.placement.place(1, ["node-1"])
        late = after_a_second(world, other.createobject, **obj("late", id=ID_2))  # it has looked less than 30 seconds ago
        assert node.getobject(**obj("late")) == late and listed(node) == ["early", "late"]
        assert misplaced(world) == [("late", "node-2")]
        again = after_a_second(world, node.createobject, **obj("late", id=ID_1))
        assert other.getobject(**obj("late")) == again and misplaced(world) == []

    def test_it_hears_of_it_half_a_minute_later(
        self, world: World, node: Manta, other: Manta, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        create(other, "early")
        node.placement.place(1, ["node-1"])
        later = time.monotonic() + 31
        monkeypatch.setattr(placement, "monotonic", lambda: later)
        with pytest.raises(NotPlacedHere, match="belongs to 'node-1'"):
            create(other, "late")

    def test_a_stale_process_of_the_old_owner_loses_nothing(self, world: World, other: Manta) -> None:
        old = node_of(world)
        old.placement.place(1, ["node-1"])
        create(old, "a")
        with node_of(world) as operator:  # another process of the same writer, which nobody should start
            operator.placement.give(0, "node-2")
        after_a_second(world, other.placement.take, node=0)
        after_a_second(world, other.createobject, **obj("b", id=ID_1))
        late = after_a_second(world, old.createobject, **obj("late", id=ID_2))
        with pytest.warns(CatalogWarning, match="forked"):
            assert names(world.snapshot()) == ["a", "b", "late"]
        with pytest.warns(CatalogWarning, match="forked"):
            assert misplaced(world) == [("late", "node-1")]
        assert node_of(world, "node-3").getobject(**obj("late")) == late

    @pytest.mark.parametrize("first", ["node-1", "node-2"])
    def test_of_two_that_take_at_once_the_later_has_it_and_nothing_is_lost(self, world: World, first: str) -> None:
        nodes = {name: node_of(world, name, fresh=3600) for name in ("node-1", "node-2")}
        nodes["node-1"].placement.place(1, ["node-1"])
        create(nodes["node-1"], "a")
        after_a_second(world, nodes["node-1"].placement.give, node=0, to="node-2")
        for by in nodes.values():
            assert by.placement.rows()[0]["given_to"] == "node-2"
        one, two = nodes.pop(first), nodes.popitem()[1]
        last = "node-2" if first == "node-1" else "node-1"
        taken = after_a_second(world, one.placement.take, node=0)
        between = after_a_second(world, one.createobject, **obj("between", id=ID_1))
        assert taken["writer"] == first and after_a_second(world, two.placement.take, node=0)["writer"] == last
        after_a_second(world, two.createobject, **obj("after", id=ID_1))

        snapshot = world.snapshot()
        assert [row["writer"] for row in rows(snapshot, "manta.placement")] == [last]
        assert [(row["table"], row["writer"]) for row in rows(snapshot, "conflicts")] == [("manta.placement", last)]
        assert names(snapshot) == ["a", "after", "between"]
        assert misplaced(world) == [("between", first)]
        assert node_of(world, "node-3").getobject(**obj("between")) == between
        with pytest.raises(NotPlacedHere):
            create(node_of(world, first), "between")

    def test_two_that_place_at_once_leave_one_placement(self, world: World) -> None:
        node, behind = node_of(world), node_of(world, "node-2", fresh=3600)
        assert behind.placement.rows() == []
        node.placement.place(3, ["node-1"])
        after_a_second(world, behind.placement.place, nodes=3, writers=["node-2"])
        found = node_of(world, "node-3").placement.rows()
        assert [row["writer"] for row in found] == ["node-2"] * 3 == [row["writer"] for row in behind.placement.rows()]
        assert {row["table"] for row in rows(world.snapshot(), "conflicts")} == {"manta.placement"}


def test_a_node_whose_giving_has_no_known_outcome_looks_before_it_commits_there_again() -> None:
    gated = Gated()
    node, world = gated.node, gated.world
    node.placement.place(1, ["node-1"])
    create(node, "a")

    def lose() -> None:
        world.clock.tick(20 * MINUTE)
        raise OutcomeUnknown("The answer was lost.", next_step="Put the same bytes again.")

    gated.gate.after = lose
    with pytest.raises(CommitUnknown):
        node.placement.give(0, "node-2")
    gated.gate.after = lambda: None
    with pytest.raises(NotPlacedHere, match="on its way"):
        create(node, "b")


def test_a_node_without_a_row_is_nobodys(world: World, node: Manta) -> None:
    node.placement.place(2, ["node-1"])
    with world.writer("node-2") as writer:
        world.commit(writer, ("delete", "manta.placement", {"node": 0}))
    other = node_of(world, "node-1")
    by_node = {node_of_object(OWNER, BUCKET, f"n{number}", 2): f"n{number}" for number in range(20)}
    assert create(other, by_node[1])["name"] == by_node[1]
    with pytest.raises(NotPlacedHere, match="Node 0 of 2 has no row"):
        create(other, by_node[0])


@pytest.mark.parametrize("number", [[], True, 0.0, "0", None])
def test_what_is_no_number_of_a_node_is_refused(node: Manta, number: Any) -> None:
    node.placement.place(2, ["node-1"])
    with pytest.raises(InvalidOption, match="no node"):
        node.placement.give(number, "node-2")
