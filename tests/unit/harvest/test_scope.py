"""What include and exclude let through, against ``fnmatch``, and which directories are entered at all."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketcatalog.errors import InvalidOption
from bucketcatalog.harvest.scope import Scope

NAMES = st.text(alphabet="ab/.-[]!^*?\\\n é{}()|+$", max_size=8)
GLOBS = st.text(alphabet="ab/.*?-é\\{}()|+$ \n", max_size=6)


@given(NAMES, st.lists(GLOBS, max_size=3), st.lists(GLOBS, max_size=3))
def test_globs_hold_for_the_names_that_fnmatch_says(name: str, include: list[str], exclude: list[str]) -> None:
    wanted = (not include or any(fnmatchcase(name, g) for g in include)) and not any(fnmatchcase(name, g) for g in exclude)
    assert Scope(tuple(include), tuple(exclude)).holds(name) is wanted


@given(NAMES, NAMES, st.lists(GLOBS, max_size=3), st.lists(GLOBS, max_size=3))
def test_a_directory_that_holds_something_in_scope_is_entered(
    above: str, below: str, include: list[str], exclude: list[str]
) -> None:
    scope = Scope(tuple(include), tuple(exclude))
    assert scope.enters(above + "/") or not scope.holds(f"{above}/{below}")


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("*.py", ["a.py", "d/a.py", "new\nline.py"], ["a.pyc", "A.PY"]),
        ("lib/*", ["lib/x", "lib/a/b"], ["lib", "lib2/x", "usr/lib/x"]),
        ("[ab]?", ["ax", "bé"], ["cx", "a"]),
        ("[!ab]x", ["cx", "^x"], ["ax", "bx"]),
        ("[a-c]", ["b"], ["d", "-"]),
        ("[]]", ["]"], ["["]),
        ("[", ["["], ["x"]),
        ("a[b", ["a[b"], ["ab"]),
        ("[^a]", ["^", "a"], ["b"]),
        ("[\\]", ["\\"], ["]"]),
    ],
)
def test_globs_match_as_in_fnmatch(glob: str, yes: list[str], no: list[str]) -> None:
    scope = Scope(include=(glob,))
    for name in (*yes, *no):
        assert fnmatchcase(name, glob) is (name in yes)
        assert scope.holds(name) is (name in yes)


def test_an_excluded_directory_is_not_even_entered() -> None:
    assert not Scope(exclude=("cache/*",)).enters("cache/")
    assert not Scope(exclude=("*/cache/*",)).enters("a/cache/")
    assert Scope(exclude=("cache/*.tmp",)).enters("cache/")
    assert Scope(include=("lib/*",)).enters("lib/python/")
    assert not Scope(include=("lib/*",)).enters("share/")
    assert Scope(include=("a/b/c*",)).enters("a/")


@pytest.mark.parametrize("glob", ["[z-a]", "\ud800"])
def test_a_glob_that_cannot_be_matched_is_an_error(glob: str) -> None:
    with pytest.raises(InvalidOption, match="cannot be matched"):
        Scope(include=(glob,))
