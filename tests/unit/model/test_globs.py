"""Globs against ``fnmatch``, and the text that stands in whatever one matches."""

from __future__ import annotations

import fnmatch
import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bucketcatalog.model.globs import longest_literal, pattern_of
from bucketcatalog.questions.finding import Glob

PIECES = ["a", "ab", "b/", "*", "?", "[ab]", "[!a]", "[]b]", "[[]", "é", "]", "["]


@pytest.mark.parametrize("seed", range(200))
def test_what_a_glob_matches_has_its_longest_literal(seed: int) -> None:
    chance = random.Random(seed)
    glob = "".join(chance.choices(PIECES, k=chance.randrange(1, 6)))
    texts = ["".join(chance.choices("ab/é[]", k=chance.randrange(6))) for _ in range(400)]
    matched = pc.match_substring_regex(pa.array(texts), pattern_of([glob])).to_pylist()
    assert matched == [fnmatch.fnmatchcase(text, glob) for text in texts]
    assert all(longest_literal(glob) in text for text, is_met in zip(texts, matched, strict=True) if is_met)
    assert Glob("name", glob).of(pa.array(texts)).to_pylist() == matched


@pytest.mark.parametrize(
    ("glob", "literal"), [("picture-00*", "picture-00"), ("*.t?t", ".t"), ("*", ""), ("[abc]d*ef", "ef"), ("x[y", "x")]
)
def test_the_longest_literal_of_a_glob(glob: str, literal: str) -> None:
    assert longest_literal(glob) == literal


def test_a_glob_of_the_last_component_looks_nowhere_else() -> None:
    names = pa.array(["cat/dog", "dog/cat", "cat", None, "x/catalog"])
    assert Glob("name", "cat*", last=True).of(names).to_pylist() == [False, True, True, False, True]
