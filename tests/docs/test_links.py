"""Every relative link of the documentation leads somewhere, headings included, and nothing in it points out of the project."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ..kit.blocks import FILES, ROOT

_LINK = re.compile(r"\[[^\]\n]*\]\((?P<target>[^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ +(?P<text>.*)$", re.MULTILINE)


def anchors(file: Path) -> set[str]:
    """The anchors of a file's headings, as forges make them."""
    text = re.sub(r"^```.*?^```$", "", file.read_text(), flags=re.MULTILINE | re.DOTALL)
    return {re.sub(r"[^\w\- ]", "", m["text"].lower()).replace(" ", "-") for m in _HEADING.finditer(text)}


def links(file: Path) -> list[str]:
    return [m["target"] for m in _LINK.finditer(_CODE.sub("", file.read_text())) if "://" not in m["target"]]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_links_lead_somewhere(file: Path) -> None:
    for link in links(file):
        path, _, anchor = link.partition("#")
        target = (file.parent / path).resolve() if path else file
        assert target.exists(), f"{link} in {file}"
        assert target.is_relative_to(ROOT)
        if anchor:
            assert anchor in anchors(target), f"{link} in {file}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    pending = [ROOT / "README.md"]
    while pending:
        file = pending.pop()
        if file in reached or file.suffix != ".md":
            continue
        reached.add(file)
        for link in links(file):
            target = (file.parent / link.partition("#")[0]).resolve()
            pending += [target / "README.md"] if target.is_dir() and (target / "README.md").exists() else [target]

    assert {str(f.relative_to(ROOT)) for f in FILES if (ROOT / "docs") in f.parents} <= {
        str(f.relative_to(ROOT)) for f in reached if f.is_relative_to(ROOT)
    }


def test_links_are_found() -> None:
    assert links(ROOT / "README.md")
