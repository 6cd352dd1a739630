"""What every store promises, as tests that each backend runs by subclassing ``StoreContract``."""

from __future__ import annotations

import pickle
import random
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pytest

from bucketcatalog.errors import InvalidName, ObjectNotFound, TruncatedObject
from bucketcatalog.store import ObjectInfo, Store

AT_ONCE_US = 20_000_000
"""Within how many microseconds two times are of one moment, on a busy machine too; a clock that is wrong is so by minutes."""

HOSTILE_NAMES = [
    "a!",
    "a-b",
    "a/a",
    "a/b",
    "a/b-c",
    "a/d/e",
    "a/d-/e",
    "a/d0/e",
    "a/é",
    "a/\U0001f600",
    "a/\uffff",
    "a0",
    "a.b/c",
    "A/b",
    ".hidden/.x",
    ".nfs0123/.nfs0123456789abcdef00000001x",
    "...",
    "b c/100%/?#&=",
    "b c/*[x]{y}",
    "back\\slash",
    "new\nline",
    "tab\t",
    "~",
    "z/" + "x" * 200,
]
ESCAPING_NAMES = [
    "",
    "/",
    "/etc/passwd",
    "..",
    "../x",
    "a/../../x",
    "a/..",
    ".",
    "a/./b",
    "a//b",
    "a/",
    "a\0b",
    "\ud800",
    "a/.put-x",
    "a/.nfs0123456789abcdef00000001",
]
TEN_BYTES = b"0123456789"


def names_of(found: object) -> list[str]:
    return [info.name for info in found]  # type: ignore[attr-defined]


def byte_order(names: list[str]) -> list[str]:
    return sorted(names, key=str.encode)


class StoreContract:
    """Subclasses give the fixture ``store``, and ``writer`` where it cannot be written to: another store of the same objects.

    ``ahead_us`` is how far the store's clock is ahead of this machine's.
    """

    ahead_us = 0

    @pytest.fixture
    def writer(self, store: Store) -> Store:
        return store

    @pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 3, b"\r\n\0"])
    def test_bytes_put_come_back_whole(self, store: Store, writer: Store, data: bytes) -> None:
        writer.put("a/b/c", data)
        assert store.get("a/b/c") == data
        assert type(store.get("a/b/c")) is bytes

    def test_twenty_megabytes_come_back_whole_and_in_parts(self, store: Store, writer: Store) -> None:
        data = random.Random(1).randbytes(20 << 20)
        writer.put("big", data)
        assert store.get("big") == data
        assert store.get_range("big", 7 << 20, 3 << 20) == data[7 << 20 : 10 << 20]
        assert store.head("big").size == len(data)

    @pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 5 << 20])
    def test_get_with_a_bound_gives_all_or_exactly_so_many_of_the_first(self, store: Store, writer: Store, size: int) -> None:
        data = random.Random(size).randbytes(size)
        writer.put("a/b", data)
        for most in (0, 1, 10, 11, size, size + 1, 1 << 30):
            assert store.get("a/b", most=most) == data[:most], most
        assert type(store.get("a/b", most=3)) is bytes
        with pytest.raises(ValueError, match="-1"):
            store.get("a/b", most=-1)

    def test_a_bounded_get_takes_no_more_into_memory(self, store: Store, writer: Store) -> None:
        writer.put("big", bytes(64 << 20))
        store.get("big", most=10)  # opens connections and whatever else a first request needs
        tracemalloc.start()
        try:
            assert store.get("big", most=1 << 20) == bytes(1 << 20)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 8 << 20

    def test_put_of_the_same_bytes_again_changes_nothing(self, store: Store, writer: Store) -> None:
        for _ in range(3):
            writer.put("a/b", b"same")
        assert store.get("a/b") == b"same"
        assert names_of(store.list("")) == ["a/b"]

    @pytest.mark.parametrize("name", ["missing", "a/missing", "a/b/below-an-object", "a", "missing/deep/er"])
    def test_what_is_no_object_is_not_found(self, store: Store, writer: Store, name: str) -> None:
        writer.put("a/b", b"x")
        for read in (
            store.get,
            lambda name: store.get(name, most=1),
            store.head,
            lambda name: store.get_range(name, 0, 1),
            lambda name: store.get_range(name, -1, 1),
        ):
            with pytest.raises(ObjectNotFound, match=name) as caught:
                read(name)
            assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)

    @pytest.mark.parametrize(
        ("offset", "length"),
        [(0, 10), (0, 1), (0, 0), (9, 1), (10, 0), (3, 4), (-3, 3), (-3, 2), (-3, 9), (-10, 10), (-99, 99), (-1, 0)],
    )
    def test_range_gives_exactly_its_bytes(self, store: Store, writer: Store, offset: int, length: int) -> None:
        writer.put("a/b", TEN_BYTES)
        start = offset if offset >= 0 else max(0, 10 + offset)
        assert store.get_range("a/b", offset, length) == TEN_BYTES[start : start + length]

    @pytest.mark.parametrize(("offset", "length"), [(0, 11), (9, 2), (10, 1), (11, 0), (11, 1), (1 << 40, 1), (0, 1 << 40)])
    def test_range_behind_the_end_is_truncated(self, store: Store, writer: Store, offset: int, length: int) -> None:
        writer.put("a/b", TEN_BYTES)
        with pytest.raises(TruncatedObject, match="a/b"):
            store.get_range("a/b", offset, length)

    def test_ranges_of_an_empty_object(self, store: Store, writer: Store) -> None:
        writer.put("a", b"")
        assert store.get_range("a", 0, 0) == b""
        assert store.get_range("a", -8, 8) == b""
        with pytest.raises(TruncatedObject):
            store.get_range("a", 0, 1)

    def test_negative_length_is_refused(self, store: Store, writer: Store) -> None:
        writer.put("a", TEN_BYTES)
        with pytest.raises(ValueError, match="-1"):
            store.get_range("a", 2, -1)

    def test_hostile_names_come_back_and_are_listed_in_byte_order(self, store: Store, writer: Store) -> None:
        for name in reversed(HOSTILE_NAMES):
            writer.put(name, name.encode())
        assert names_of(store.list("")) == byte_order(HOSTILE_NAMES)
        assert {name: store.get(name) for name in HOSTILE_NAMES} == {name: name.encode() for name in HOSTILE_NAMES}
        assert all(store.head(name) == info for name, info in zip(byte_order(HOSTILE_NAMES), store.list(""), strict=True))

    @pytest.mark.parametrize("prefix", ["", "a/", "a/d/", "b c/", "nothing/", "z/"])
    def test_listing_after_any_name_gives_what_follows(self, store: Store, writer: Store, prefix: str) -> None:
        for name in HOSTILE_NAMES:
            writer.put(name, b"x")
        below = byte_order([name for name in HOSTILE_NAMES if name.startswith(prefix)])
        between = ["a", "a/", "a/d", "a/d/", "a/d/0", "a/d/f", "a/nothing/x", "a0/", "b", "\U0010ffff", "!"]
        for after in [*HOSTILE_NAMES, *between]:
            rest = [name for name in below if name.encode() > after.encode()]
            assert names_of(store.list(prefix, after=after)) == rest, after
            for limit in (0, 1, 2, 5):
                assert names_of(store.list(prefix, after=after, limit=limit)) == rest[:limit], (after, limit)

    @pytest.mark.parametrize("seed", range(5))
    def test_random_trees_are_listed_as_the_model_says(self, store: Store, writer: Store, seed: int) -> None:
        chance = random.Random(seed)
        names = {"/".join("".join(chance.choices("a-0.é~!", k=2)) for _ in range(chance.randint(1, 4))) for _ in range(60)}
        names = {
            name for name in names if ".." not in name.split("/") and not any(other.startswith(name + "/") for other in names)
        }
        for name in names:
            writer.put(name, b"x")
        ordered = byte_order([*names])
        assert names_of(store.list("")) == ordered
        for after in chance.sample(ordered, 10):
            assert names_of(store.list("", after=after, limit=7)) == ordered[ordered.index(after) + 1 :][:7]
        prefixes = {name[: name.index("/")] for name in names if "/" in name}
        assert store.list_prefixes("") == byte_order([*prefixes])
        for prefix in prefixes:
            assert names_of(store.list(prefix + "/")) == [name for name in ordered if name.startswith(prefix + "/")]

    def test_pages_of_a_long_listing_join_without_gap(self, store: Store, writer: Store) -> None:
        names = [f"t/{number:04}/{'ab'[number % 2]}" for number in range(700)]
        for name in names:
            writer.put(name, b"")
        assert names_of(store.list("t/")) == names
        assert names_of(store.list("t/0650/")) == names[650:651]
        pages, after = [], ""
        while page := names_of(store.list("t/", after=after, limit=97)):
            pages += page
            after = page[-1]
        assert pages == names

    def test_nothing_below_a_prefix_is_an_empty_listing(self, store: Store, writer: Store) -> None:
        assert names_of(store.list("")) == []
        assert store.list_prefixes("") == []
        writer.put("a/b", b"x")
        assert names_of(store.list("b/")) == names_of(store.list("a/b/")) == []
        assert store.list_prefixes("b/") == store.list_prefixes("a/") == store.list_prefixes("a/b/") == []

    def test_prefixes_are_the_next_parts_in_byte_order(self, store: Store, writer: Store) -> None:
        for name in ["w/b/x", "w/a-b/x", "w/a/x/y", "w/a/z", "w/a0/x", "w/file", "v/x", "w/é/x"]:
            writer.put(name, b"x")
        assert store.list_prefixes("") == ["v", "w"]
        assert store.list_prefixes("w/") == ["a", "a-b", "a0", "b", "é"]
        assert store.list_prefixes("w/a/") == ["x"]
        assert store.list_prefixes("w/", begin="a") == ["a", "a-b", "a0"] and store.list_prefixes("", begin="w") == ["w"]
        assert (
            store.list_prefixes("w/", begin="f")
            == store.list_prefixes("w/", begin="a/")
            == store.list_prefixes("x/", begin="a")
            == []
        )

    def test_listing_and_head_tell_size_and_time(self, store: Store, writer: Store) -> None:
        before = time.time_ns() // 1000 + self.ahead_us
        writer.put("a/b", TEN_BYTES)
        (info,) = store.list("a/")
        assert info == store.head("a/b") == ObjectInfo("a/b", 10, info.modified_us)
        assert abs(info.modified_us - before) < AT_ONCE_US

    def test_time_of_the_store_is_that_of_its_clock(self, store: Store, writer: Store) -> None:
        for _ in range(2):
            assert abs(writer.now_us("a/") - time.time_ns() // 1000 - self.ahead_us) <= AT_ONCE_US
            writer.put("a/b", b"x")
            assert abs(writer.now_us() - time.time_ns() // 1000 - self.ahead_us) <= AT_ONCE_US
            if not self.ahead_us:
                assert abs(store.now_us() - time.time_ns() // 1000) < AT_ONCE_US

    def test_asking_for_the_time_leaves_nothing(self, store: Store, writer: Store) -> None:
        writer.now_us("a/b/")
        assert names_of(store.list("")) == []
        assert store.list_prefixes("") == store.list_prefixes("a/") == []
        assert [*writer.unfinished_puts()] == []

    def test_deleted_object_is_gone_and_its_neighbours_stay(self, store: Store, writer: Store) -> None:
        for name in ["a/b/c", "a/b-d", "a/e"]:
            writer.put(name, b"x")
        assert names_of(store.list("a/")) == ["a/b-d", "a/b/c", "a/e"]
        writer.delete("a/b/c")
        with pytest.raises(ObjectNotFound):
            store.get("a/b/c")
        assert names_of(store.list("")) == ["a/b-d", "a/e"]
        assert store.list_prefixes("a/") == []

    @pytest.mark.parametrize("name", ["missing", "a", "a/missing", "a/b/below-an-object", "missing/deep"])
    def test_delete_of_what_is_not_there_changes_nothing(self, store: Store, writer: Store, name: str) -> None:
        writer.put("a/b", b"x")
        writer.delete(name)
        writer.delete(name)
        assert names_of(store.list("")) == ["a/b"]

    def test_name_can_be_put_again_after_the_last_delete(self, store: Store, writer: Store) -> None:
        for _ in range(3):
            writer.put("t/0001/x", b"x")
            assert store.get("t/0001/x") == b"x"
            writer.delete("t/0001/x")
            assert names_of(store.list("")) == []

    @pytest.mark.parametrize("name", ESCAPING_NAMES)
    def test_names_that_leave_the_root_or_are_ambiguous_are_refused(self, store: Store, writer: Store, name: str) -> None:
        calls = [
            store.get,
            store.head,
            writer.delete,
            lambda name: store.get_range(name, 0, 1),
            lambda name: writer.put(name, b"x"),
        ]
        if name:
            calls += [lambda name: store.list(name + "/"), lambda name: store.list_prefixes(name + "/")]
        for call in calls:
            with pytest.raises(InvalidName):
                call(name)
        assert names_of(store.list("")) == []

    def test_prefix_without_its_slash_is_refused(self, store: Store) -> None:
        for call in (store.list, store.list_prefixes):
            with pytest.raises(InvalidName, match="End the prefix with '/'"):
                call("a")

    def test_pickled_copy_reaches_the_same_objects(self, store: Store, writer: Store) -> None:
        writer.put("a/b", TEN_BYTES)
        copy = pickle.loads(pickle.dumps(store))
        assert copy.url == store.url
        assert copy.get("a/b") == TEN_BYTES
        writer.put("a/c", b"later")
        assert names_of(copy.list("")) == ["a/b", "a/c"]

    def test_other_instances_see_every_put_and_delete_at_once(self, store: Store, writer: Store) -> None:
        reader = pickle.loads(pickle.dumps(store))
        for number in range(5):
            writer.put(f"t/{number}/x", b"x" * number)
            assert names_of(reader.list("t/")) == [f"t/{known}/x" for known in range(number + 1)]
            assert reader.list_prefixes("t/") == [str(known) for known in range(number + 1)]
            assert reader.head(f"t/{number}/x").size == number
        writer.delete("t/4/x")
        assert reader.list_prefixes("t/") == ["0", "1", "2", "3"]

    def test_readers_never_see_a_part_of_an_object(self, store: Store, writer: Store) -> None:
        content = {f"t/{number:03}/x": random.Random(number).randbytes(300_000) for number in range(40)}
        done = threading.Event()

        def read() -> int:
            seen = 0
            while not done.is_set() or not seen:
                for info in store.list("t/"):
                    assert info.size == len(content[info.name])
                    assert store.get(info.name) == content[info.name]
                    assert store.get_range(info.name, -1000, 1000) == content[info.name][-1000:]
                    seen += 1
            return seen

        with ThreadPoolExecutor(4) as pool:
            readers = [pool.submit(read) for _ in range(2)]
            try:
                for _ in range(2):  # the second time over what is there, as a retry is
                    list(pool.map(lambda item: writer.put(*item), content.items()))
            finally:
                done.set()
            assert all(reader.result() for reader in readers)
        assert names_of(store.list("")) == [*content]

    def test_puts_survive_deletes_beside_them(self, store: Store, writer: Store) -> None:
        def churn(number: int) -> None:
            for turn in range(60):
                writer.put(f"deep/er/{number}", b"%d" % turn)
                writer.delete(f"deep/er/{number}")
            writer.put(f"deep/er/{number}", b"last")

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(churn, range(4)))
        assert names_of(store.list("")) == [f"deep/er/{number}" for number in range(4)]
