"""Every sentence of the page on security is shown by a test: ``security.txt`` says by which.

It has each sentence of docs/guide/security.md in a line of its own, a table's row and an item of a list by its sentences too, without links
and bold type. Below it stand, indented, the tests that show it, as pytest names them without parameters; or, of advice and definitions that
nothing can show, ``reason:`` and why. So whoever changes the page has to say which test shows what it says now. Blocks of code are run by
``test_blocks.py``.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from ..kit.blocks import ROOT
from .guide import GUIDE

SHOWN = Path(__file__).with_name("security.txt")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_PARTS = re.compile(r"\n\s*\n|\n(?=- |\|)|(?<=\|)\n|\n(?=#)")
_HEAD = re.compile(r"^\|[^\n]*\|\n(?=\|[-|: ]+\|$)", re.MULTILINE)
_NEXT = re.compile(r"(?<=\.) (?=[A-Z`])")


@dataclass(frozen=True)
class Test:
    """A test as pytest names it: ``tests/unit/log/test_trust.py::TestTags::test_...``."""

    __test__ = False
    node: str

    def is_there(self) -> bool:
        file, _, name = self.node.partition("::")
        return name in names_in(ROOT / file)


@dataclass(frozen=True)
class Reason:
    """Why no test shows a sentence."""

    text: str


@cache
def names_in(file: Path) -> frozenset[str]:
    """The tests that a file has, those of classes behind the class's name; none where it is not there."""
    if not file.is_file():
        return frozenset()
    found = set[str]()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            found |= {f"{node.name}::{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
    return frozenset(name for name in found if name.rpartition("::")[2].startswith("test_"))


def sentences(page: str) -> list[str]:
    """What a page says, but for its headings, heads of tables and blocks of code."""
    text = _LINK.sub(r"\1", _FENCED.sub("\n", page)).replace("**", "")
    found = list[str]()
    for part in _PARTS.split(_HEAD.sub("", text)):
        said = " ".join(part.removeprefix("- ").split())
        if said and not said.startswith(("#", "|-")):
            found += [said] if said.startswith("|") else _NEXT.split(said)
    return found


def shown(text: str) -> list[tuple[str, list[Test | Reason]]]:
    """The sentences of ``security.txt``, each with what stands below it."""
    found: list[tuple[str, list[Test | Reason]]] = []
    for line in text.splitlines():
        if line.startswith("  "):
            said = line.strip()
            found[-1][1].append(Reason(said.removeprefix("reason: ")) if said.startswith("reason: ") else Test(said))
        elif line:
            found.append((line, []))
    return found


def left_over(some: Iterable[str], others: Iterable[str]) -> list[str]:
    """What is among some more often than among others."""
    return list((Counter(some) - Counter(others)).elements())


PAGE = sentences((GUIDE / "security.md").read_text())
ENTRIES = shown(SHOWN.read_text())


def test_every_sentence_has_the_test_that_shows_it_and_no_other_has() -> None:
    said = [sentence for sentence, _ in ENTRIES]
    assert left_over(PAGE, said) == [], f"say in {SHOWN.name} which test shows these"
    assert left_over(said, PAGE) == [], f"the page does not say these: take them out of {SHOWN.name}"
    assert said == PAGE, f"{SHOWN.name} is in the order of the page"


def test_every_test_that_is_named_exists() -> None:
    named = [each for _, shows in ENTRIES for each in shows if isinstance(each, Test)]
    assert [each.node for each in named if not each.is_there()] == []
    assert len(named) > len(ENTRIES)


def test_a_sentence_has_tests_or_one_reason_and_few_have_a_reason() -> None:
    for sentence, shows in ENTRIES:
        reasons = [each for each in shows if isinstance(each, Reason)]
        assert shows and len(set(shows)) == len(shows), sentence
        assert not reasons or (len(shows) == 1 and len(reasons[0].text) > 10), sentence
    assert sum(isinstance(shows[0], Reason) for _, shows in ENTRIES) <= len(ENTRIES) // 8


def test_sentences_are_found_wherever_they_stand() -> None:
    page = """# Title

One sentence,
over [two](x.md#y) lines. `Two` in **bold**: to be
shown by

```python
not_this = "A sentence. Another."
```

| head | of it |
|---|---|
| a row. It is | one sentence |
| `another` | row |

- an item;
- one of two sentences,
  over lines. Second;
"""
    assert sentences(page) == [
        "One sentence, over two lines.",
        "`Two` in bold: to be shown by",
        "| a row. It is | one sentence |",
        "| `another` | row |",
        "an item;",
        "one of two sentences, over lines.",
        "Second;",
    ]


def test_a_sentence_that_was_changed_added_or_taken_away_is_noticed() -> None:
    assert left_over(["a", "b", "b"], ["b", "a"]) == ["b"] and left_over(["a"], ["a", "b"]) == []
    assert shown("a.\n  tests/x.py::test_a\n  tests/y.py::test_b\n\nb.\n  reason: advice") == [
        ("a.", [Test("tests/x.py::test_a"), Test("tests/y.py::test_b")]),
        ("b.", [Reason("advice")]),
    ]


@pytest.mark.parametrize(
    ("node", "is_there"),
    [
        ("tests/docs/test_security.py::test_every_test_that_is_named_exists", True),
        ("tests/unit/log/test_trust.py::TestTags::test_a_maintainer_takes_a_name_that_somebody_else_gave", True),
        ("tests/unit/log/test_trust.py::test_a_maintainer_takes_a_name_that_somebody_else_gave", False),
        ("tests/docs/test_security.py::sentences", False),
        ("tests/docs/test_security.py", False),
        ("tests/docs/test_nothing.py::test_every_test_that_is_named_exists", False),
    ],
)
def test_a_test_that_is_not_there_is_noticed(node: str, is_there: bool) -> None:
    assert Test(node).is_there() == is_there
