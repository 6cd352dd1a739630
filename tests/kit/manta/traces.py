"""The strategy that invents traces: few owners, buckets and names, so that most operations meet what others have left.

Names are hostile: of several bytes a character, above U+FFFF and right below it, where the orders of UTF-8 and UTF-16 part, and of what SQL
and its patterns mean something by.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import strategies as st

from .steps import OWNERS, Checkpoint, OfBucket, OfObject, Pause, Step, Tag, Tags, Trace, When

ALPHABET = (
    "a", "b", "/", "/", "_", "%", "'", '"', "\\", "$", " ", "\n", "\x01", "\x7f", "0", "A", "\u00e9", "e\u0301", "\u2028", "\ud7ff",
    "\ue000", "\ufffd", "\uffff", "\U00010000", "\U0001f600", "\U0010ffff",
)  # fmt: skip
NAMES = (
    "a", "a/", "a/b", "a/c", "a0", "a_b", "axb", "a%b", "%", "_", "'", "''", '"', "\\", "\\\\", "a\\b", "\\'; --", "/", "//", "//a",
    "\ue000", "\uffff", "\U0001f600", "\U0001f600/", "\ufffd/a", "\U0010ffff", "\U0010ffff/a", "\u00e9", "e\u0301", "x" * 1024,
    "\U0001f600" * 256,
)  # fmt: skip
BELOW = ("\ue000", "\uffff", "\ufffd/a")
ABOVE = ("\U00010000", "\U0001f600", "\U0001f600/", "\U0010ffff")
"""In bytes behind those, in UTF-16 before."""
BUCKETS = ("abc", "abd", "ab.c", "ab-c", "172.25.1234.1", "a" * 63)
WRONG_BUCKETS = (
    "",
    "ab",
    "a" * 64,
    "Abc",
    "a_b",
    "-ab",
    "ab-",
    "ab..c",
    ".ab",
    "1.2.3.4",
    "999.999.999.999",
    "abc\n",
    "\u0661bc",
)
WRONG_NAMES = ("", "a\0b", "x" * 1025, "\u00e9" * 512 + "x", "\ud800")
WRONG_LIMITS = (0, -1, 1025)
WRONG_MD5S = ("!", "abc", "a===", "rL0Y20zC+Fzt72VPzMSk2A", "rL0Y20zC-Fzt72VPzMSk2A==", "rL0Y20zC+Fzt72VPzMSk2A==\n")
WRONG_OWNERS = ("nobody", "")
WRONG_VALUES: tuple[dict[str, Any], ...] = (
    {"id": "aaaaaaaa"}, {"creator": "nobody"}, {"roles": ["nobody"]}, {"content_length": 1 << 63}, {"properties": "{"},
)  # fmt: skip
DELIMITERS = (None, "/", "/", "/", "_", "%", "a", "\\", "\u00e9", "\ud7ff", "\U0001f600", "\U0010ffff")
IDS = tuple(f"aaaaaaaa-0000-4000-8000-{number:012x}" for number in range(6))
"""Few, so that several objects have one id, and an object the id that it had before."""
ACCOUNTS = ("55555555-5555-4555-8555-555555555555", "ABCDEFAB-6666-4666-8666-666666666666")
PROPERTIES: tuple[Any, ...] = (
    None,
    None,
    {},
    {"a": 1},
    {"b": [1.5, None, True], "a": {"\u00e9": "\U0001f600"}},
    [],
    '{"of": "text"}',
    7,
    False,
)
SHARKS: tuple[Any, ...] = (
    None, [], ["dc:1.stor"], ["dc:1.stor", "dc:1.stor"], ["dc:2.stor", {"datacenter": "\u00e9 b", "manta_storage_id": "a:b"}],
)  # fmt: skip
HEADERS: tuple[dict[str, str] | None, ...] = (
    None, {}, {"m-a": "1"}, {"m-b": "", "m-a": "x=>y,\"'\\"}, {"": "\U0001f600", "%": "\n"}, {'a"b': "NULL"},
)  # fmt: skip
_SECOND = 1_000_000
_TAGS: tuple[tuple[Tag, ...], ...] = (
    ("right",), ("right",), ("quoted",), ("weak",), ("wrong",), ("*",), ("wrong", "right"), ("wrong", "*"), ("wrong", "wrong"), (),
)  # fmt: skip
_FIELDS = ("if-match", "if-none-match", "if-unmodified-since", "if-modified-since")


@st.composite
def traces(draw: st.DrawFn, *, steps: int) -> Trace:
    """A trace of so many steps; a failing one is told with as few as it takes, and pauses for the rest."""
    random = Random(draw(st.integers(0, (1 << 64) - 1)))
    buckets, names = tuple(random.sample(BUCKETS, 2)), drawn_names(random)
    taken = draw(st.lists(st.integers(0, 99), min_size=steps, max_size=steps))
    zero_byte_tombstones, nodes = draw(st.booleans()), draw(st.sampled_from((1, 2)))
    return Trace(
        zero_byte_tombstones=zero_byte_tombstones,
        nodes=nodes,
        questions=random.randrange(1 << 32),
        names=names,
        steps=[step if number else Pause() for number in taken for step in [step_of(random, buckets, names)]],
    )


def drawn_names(random: Random) -> tuple[str, ...]:
    """The names of a trace's objects: some of those that have been thought of, two that UTF-16 has in another order, some of chance."""
    parted = random.choice(BELOW), random.choice(ABOVE)
    return tuple(dict.fromkeys([*random.sample(NAMES, 3), *parted, *(text(random, 1, 4) for _ in range(2))]))


def text(random: Random, least: int, most: int) -> str:
    return "".join(random.choices(ALPHABET, k=random.randint(least, most)))


def step_of(random: Random, buckets: tuple[str, ...], names: tuple[str, ...]) -> Step:
    """What is asked, in the shares that keep several buckets full of objects."""
    kinds: dict[Callable[[], Step], int] = {
        lambda: _create_object(random, names): 42,
        lambda: _of_object(random, names, "deleteobject", {}): 12,
        lambda: _update_object(random, names): 12,
        lambda: _of_object(random, names, "getobject", {}): 8,
        lambda: OfObject("listobjects", _bucket(random), object_page(random, names, wrong=True)): 8,
        lambda: _of_bucket(random, buckets): 14,
        Checkpoint: 1,
    }
    (kind,) = random.choices([*kinds], [*kinds.values()])
    return kind()


def _of_bucket(random: Random, buckets: tuple[str, ...]) -> Step:
    (operation,) = random.choices(("createbucket", "getbucket", "deletebucket", "listbuckets"), (8, 2, 5, 3))
    owner = random.choice((0, 0, 1))
    if operation == "listbuckets":
        return OfBucket(operation, owner, bucket_page(random, wrong=True))
    if operation == "createbucket" and random.random() < 0.1:
        return OfBucket(operation, owner, {"name": random.choice(WRONG_BUCKETS)})
    more = {"only_empty": random.random() < 0.6} if operation == "deletebucket" else {}
    return OfBucket(operation, owner, {"name": random.choice(buckets), **more, **_owner(random, owner)})


def _owner(random: Random, owner: int) -> dict[str, Any]:
    """Mostly nothing; else an owner in place of the one that the step is about: the same in capitals, or none that there can be."""
    chance = random.random()
    return {"owner": random.choice(WRONG_OWNERS)} if chance < 0.02 else {"owner": OWNERS[owner].upper()} if chance < 0.1 else {}


def _create_object(random: Random, names: tuple[str, ...]) -> Step:
    content = random.randbytes(2)
    arguments = {
        "id": random.choice(IDS),
        "content_length": random.choice((0, 0, 1, 7, (1 << 63) - 1, None)),
        "content_md5": random.choice((None, base64.b64encode(hashlib.md5(content).digest()).decode())),
        "content_type": random.choice((None, "", "text/plain", "\U0001f600'")),
        "headers": random.choice(HEADERS),
        "sharks": random.choice(SHARKS),
        "properties": random.choice(PROPERTIES),
        "creator": random.choice((None, *ACCOUNTS)),
        "roles": random.choice((None, [], [ACCOUNTS[0]], [*ACCOUNTS, ACCOUNTS[1]])),
    }
    kept = {name: value for name, value in arguments.items() if name == "id" or random.random() < 0.7}
    if random.random() < 0.04:
        return OfObject("createobject", _bucket(random), {**kept, "name": random.choice(names), **random.choice(WRONG_VALUES)})
    if random.random() < 0.04:
        wrong = {"name": random.choice(names), "content_md5": random.choice(WRONG_MD5S)}
        return OfObject("createobject", _bucket(random), {**kept, **wrong})
    return _of_object(random, names, "createobject", kept)


def _update_object(random: Random, names: tuple[str, ...]) -> Step:
    described = {"content_type": random.choice((None, "a/b")), "headers": random.choice(HEADERS)}
    return _of_object(random, names, "updateobject", {**described, "properties": random.choice(PROPERTIES)})


def _of_object(random: Random, names: tuple[str, ...], operation: str, arguments: dict[str, Any]) -> Step:
    if random.random() < 0.03:
        return OfObject(operation, _bucket(random), {"name": random.choice(WRONG_NAMES), **arguments})
    conditions = _conditions(random) if random.random() < 0.4 else ()
    owner = {"owner": random.choice(OWNERS).upper()} if random.random() < 0.03 else {}
    return OfObject(operation, _bucket(random), {"name": _name(random, names), **arguments, **owner}, conditions)


def _name(random: Random, names: tuple[str, ...]) -> str:
    """Mostly one of three, in any order of theirs, so that most have been written before."""
    return random.choice(random.choice((names, names[1::2], names[1::2])))


def _bucket(random: Random) -> int:
    return random.choice((0, 0, 0, 0, 1, 1, 1, 2, 3))


def _conditions(random: Random) -> tuple[tuple[str, Tags | When], ...]:
    found: list[tuple[str, Tags | When]] = []
    for field in random.sample(_FIELDS, random.choice((1, 1, 1, 2, 3, 4))):
        spelled = random.choice((field, field.title()))
        if field.endswith("since"):
            later = random.choice((0, 0, -1, 1, -2 * _SECOND, 2 * _SECOND, 3600 * _SECOND))
            found.append((spelled, When(later, random.choice(("datetime", "iso", "http")))))
        else:
            tags = random.choice(_TAGS)
            found.append((spelled, Tags(tags, as_text=bool(tags) and random.random() < 0.5)))
    return tuple(found)


def object_page(random: Random, names: tuple[str, ...], *, wrong: bool = False) -> dict[str, Any]:
    """A page of objects; prefix and marker are mostly cut from names that there are."""
    return {**_page(random, names, wrong), "delimiter": random.choice(DELIMITERS)}


def bucket_page(random: Random, *, wrong: bool = False) -> dict[str, Any]:
    """A page of buckets."""
    return _page(random, BUCKETS, wrong)


def _page(random: Random, names: tuple[str, ...], wrong: bool) -> dict[str, Any]:
    limits = WRONG_LIMITS if wrong and random.random() < 0.15 else (1, 1, 2, 3, 5, 1024)
    return {
        "prefix": random.choice(("", _cut(random, names))),
        "marker": random.choice((None, "", _cut(random, names), random.choice(names), text(random, 1, 2))),
        "limit": random.choice(limits),
    }


def _cut(random: Random, names: tuple[str, ...]) -> str:
    name = random.choice(names)
    return name[: random.randint(1, min(3, len(name)))]
