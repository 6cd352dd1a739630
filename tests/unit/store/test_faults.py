"""The wrappers that make stores fail: they promise what stores do, and each does to calls just what it says."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

from bucketcatalog.errors import ObjectNotFound, OutcomeUnknown, StoreUnavailable, TruncatedObject
from bucketcatalog.store import MemoryStore, Store
from bucketcatalog.store.faults import Counting, DelayedArrival, Failing, LostResponses, SimulatedCrash, Truncating, Wrapped
from bucketcatalog.store.obstacles import Obstacles, PastObstacles

from ...kit.store_contract import StoreContract, names_of

TEN_BYTES = b"0123456789"


class TestFaultlessWrappers(StoreContract):
    """A wrapper that is told of no fault is as good a store as the one inside."""

    @pytest.fixture(
        params=[
            Wrapped,
            Counting,
            Failing,
            lambda store: LostResponses(store, landed=True, puts=()),
            lambda store: Truncating(store, keep=1.0),
            lambda store: Truncating(store, keep=1.0, listings=True),
            lambda store: PastObstacles(store, Obstacles().add),
        ],
        ids=["Wrapped", "Counting", "Failing", "LostResponses", "Truncating", "Truncating listings", "PastObstacles"],
    )
    def store(self, request: pytest.FixtureRequest) -> Store:
        store: Store = request.param(MemoryStore())
        return store


@pytest.mark.parametrize(
    "wrap",
    [
        Wrapped,
        Counting,
        Failing,
        lambda store: LostResponses(store, landed=True, puts={7}),
        lambda store: DelayedArrival(store, acknowledge=True, picks=None),
        Truncating,
    ],
)
def test_wrapper_pickles_when_the_store_inside_does(wrap: Callable[[Store], Wrapped]) -> None:
    inner = MemoryStore()
    inner.put("a", TEN_BYTES)
    copy = pickle.loads(pickle.dumps(wrap(inner)))
    assert copy.head("a").name == "a"
    copy.put("b", b"x")
    assert copy.url == inner.url
    assert type(copy) is type(wrap(inner))


def test_counting_counts_calls_names_and_bytes() -> None:
    store = Counting(MemoryStore())
    store.put("a/b", TEN_BYTES)
    store.put("a/c", b"x")
    store.get("a/b")
    store.get_range("a/b", 2, 3)
    store.head("a/b")
    assert next(store.list("a/")).name == "a/b"
    assert names_of(store.list("a/")) == ["a/b", "a/c"]
    store.list_prefixes("")
    store.delete("a/c")
    with pytest.raises(ObjectNotFound):
        store.get("a/c")
    assert store.requests == {"put": 2, "get": 2, "get_range": 1, "head": 1, "list": 2, "list_prefixes": 1, "delete": 1}
    assert store.names["get", "a/b"] == store.names["put", "a/c"] == 1
    assert (store.bytes_read, store.bytes_written, store.objects_listed) == (13, 11, 3)
    store.reset()
    assert (store.requests, store.bytes_read, store.bytes_written, store.objects_listed) == ({}, 0, 0, 0)


def three_puts(store: Store) -> None:
    """A little program to crash: what it has put is never more than what it was let to."""
    store.put("a", b"1")
    assert store.get("a") == b"1"
    store.put("b", b"2")
    store.delete("a")


def test_failing_enumerates_every_crash_before_and_after_each_call() -> None:
    counting = Failing(MemoryStore())
    three_puts(counting)
    assert counting.calls == [("put", "a"), ("get", "a"), ("put", "b"), ("delete", "a")]
    left = {}
    for number in range(len(counting.calls)):
        for after in (False, True):
            inner = MemoryStore()
            with pytest.raises(SimulatedCrash, match=f"call {number}"):
                three_puts(Failing(inner, at=number, after=after))
            left[number, after] = names_of(inner.list(""))
    assert left == {
        (0, False): [],
        (0, True): ["a"],
        (1, False): ["a"],
        (1, True): ["a"],
        (2, False): ["a"],
        (2, True): ["a", "b"],
        (3, False): ["a", "b"],
        (3, True): ["b"],
    }


def test_crash_is_survived_by_no_handler_and_no_later_call() -> None:
    inner = MemoryStore()
    store = Failing(inner, at=0)

    def careless() -> None:
        try:
            store.put("a", b"x")
        except Exception:
            inner.put("handled", b"x")

    with pytest.raises(SimulatedCrash):
        careless()
    for call in (lambda: store.put("b", b"x"), lambda: store.list(""), lambda: store.list_prefixes(""), lambda: store.head("a")):
        with pytest.raises(SimulatedCrash, match="after the crash"):
            call()
    assert store.crashed
    assert names_of(inner.list("")) == []


def test_failing_with_an_error_fails_once() -> None:
    store = Failing(MemoryStore(), at=1, error=StoreUnavailable("down"), methods={"put"})
    store.put("a", b"x")
    assert store.get("a") == b"x"
    with pytest.raises(StoreUnavailable, match="down"):
        store.put("b", b"x")
    store.put("b", b"x")
    assert names_of(store.list("")) == ["a", "b"]


@pytest.mark.parametrize("landed", [True, False])
def test_lost_response_leaves_the_put_carried_out_or_not(landed: bool) -> None:
    store = LostResponses(MemoryStore(), landed=landed, puts={1})
    store.put("a", b"x")
    with pytest.raises(OutcomeUnknown, match="put 1, of 'b'"):
        store.put("b", b"x")
    assert names_of(store.list("")) == (["a", "b"] if landed else ["a"])
    store.put("b", b"x")
    assert store.get("b") == b"x"
    assert store.puts == 3


def test_every_response_can_be_lost() -> None:
    store = LostResponses(MemoryStore(), landed=True)
    for name in ("a", "b"):
        with pytest.raises(OutcomeUnknown):
            store.put(name, b"x")
    assert names_of(store.list("")) == ["a", "b"]


def test_delayed_put_arrives_when_delivered_in_the_order_of_the_puts() -> None:
    store = DelayedArrival(MemoryStore(), acknowledge=True)
    for name in ("c", "a", "b"):
        store.put(name, name.encode())
    assert names_of(store.list("")) == []
    with pytest.raises(ObjectNotFound):
        store.get("c")
    assert store.deliver(1) == ["c"]
    assert names_of(store.list("")) == ["c"]
    assert store.deliver() == ["a", "b"]
    assert [store.get(name) for name in "abc"] == [b"a", b"b", b"c"]
    assert store.deliver() == []
    assert store.held == []


def test_delayed_put_can_leave_the_writer_in_doubt_and_spare_other_names() -> None:
    store = DelayedArrival(MemoryStore(), acknowledge=False, picks=lambda name: name.startswith("slow/"))
    store.put("fast/a", b"x")
    with pytest.raises(OutcomeUnknown, match="slow/a"):
        store.put("slow/a", b"x")
    assert names_of(store.list("")) == ["fast/a"]
    store.deliver()
    assert names_of(store.list("")) == ["fast/a", "slow/a"]


def test_truncating_shows_the_beginning_whichever_way_it_is_read() -> None:
    inner = MemoryStore()
    for name in ("cut", "whole"):
        inner.put(name, TEN_BYTES)
    store = Truncating(inner, picks=lambda name: name == "cut")
    assert (store.get("cut"), store.get("whole")) == (b"01234", TEN_BYTES)
    assert [info.size for info in store.list("")] == [5, 10]
    assert (store.head("cut").size, store.head("whole").size) == (5, 10)
    assert store.get_range("cut", 1, 4) == b"1234"
    assert store.get_range("cut", -2, 2) == b"34"
    assert store.get_range("cut", -9, 9) == b"01234"
    assert store.get_range("whole", 5, 5) == b"56789"
    with pytest.raises(TruncatedObject, match="'cut' has 5 bytes, fewer than 6"):
        store.get_range("cut", 5, 1)


def test_truncating_listings_ends_them_early_and_spares_the_objects() -> None:
    inner = MemoryStore()
    for number in range(10):
        inner.put(f"t/{number}", TEN_BYTES)
    store = Truncating(inner, keep=0.3, listings=True)
    assert names_of(store.list("t/")) == ["t/0", "t/1", "t/2"]
    assert store.get("t/9") == TEN_BYTES
    assert store.head("t/9").size == 10
