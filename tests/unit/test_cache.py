"""What is kept for a while: the latest, up to so many bytes."""

from __future__ import annotations

import pickle

from bucketcatalog.cache import LruCache


def test_what_was_used_longest_ago_goes_first() -> None:
    kept: LruCache[str, bytes] = LruCache(10, len)
    kept.put("a", b"aaaa")
    kept.put("b", b"bbbb")
    assert kept.get("a") == b"aaaa"
    kept.put("c", b"cccc")
    assert (kept.get("a"), kept.get("b"), kept.get("c")) == (b"aaaa", None, b"cccc")


def test_a_value_in_the_place_of_another_counts_alone() -> None:
    kept: LruCache[str, bytes] = LruCache(10, len)
    for _ in range(5):
        kept.put("a", b"aaaa")
    kept.put("b", b"bbbbbb")
    assert (kept.get("a"), kept.get("b")) == (b"aaaa", b"bbbbbb")


def test_the_last_one_is_kept_however_large_it_is() -> None:
    kept: LruCache[str, bytes] = LruCache(10, len)
    kept.put("a", b"aaaa")
    kept.put("b", b"b" * 100)
    assert (kept.get("a"), kept.get("b")) == (None, b"b" * 100)
    kept.put("c", b"cc")
    assert (kept.get("b"), kept.get("c")) == (None, b"cc")


def test_who_asks_whether_something_is_kept_does_not_use_it() -> None:
    kept: LruCache[str, bytes] = LruCache(10, len)
    kept.put("a", b"aaaa")
    kept.put("b", b"bbbb")
    assert ("a" in kept, "c" in kept) == (True, False)
    kept.put("c", b"cccc")
    assert ("a" in kept, "b" in kept, "c" in kept) == (False, True, True)


def test_a_pickle_is_empty_and_keeps_as_much() -> None:
    kept: LruCache[str, bytes] = LruCache(10, len)
    kept.put("a", b"aaaa")
    again = pickle.loads(pickle.dumps(kept))
    assert again.get("a") is None
    for key in "bcd":
        again.put(key, b"aaaa")
    assert [again.get(key) for key in "bcd"] == [None, b"aaaa", b"aaaa"]
