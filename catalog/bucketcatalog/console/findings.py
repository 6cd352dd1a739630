"""Findings, whoever's they are: a line each as they are found, a sum of them at the end, and an error where there is one among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Any, Protocol, TypeVar

from ..errors import CorruptionError
from .output import finish, number, to_json, visible, write

_WORDS = {"error": "error", "warning": "warning", "info": "remark"}
"""What findings of each severity are called, the worst first."""


class Finding(Protocol):
    """One thing that is wrong or worth knowing about a file; as text it is one line."""

    @property
    def severity(self) -> Enum: ...

    @property
    def code(self) -> str: ...

    @property
    def file(self) -> str: ...

    @property
    def message(self) -> str: ...

    @property
    def remedy(self) -> str: ...


Of = TypeVar("Of", bound=Finding)


def finding_facts(finding: Finding) -> dict[str, Any]:
    """A finding for programs."""
    return {
        "severity": finding.severity.value,
        **{name: getattr(finding, name) for name in ("code", "file", "message", "remedy")},
    }


def print_findings(
    findings: Iterable[Of],
    *,
    what: str,
    as_json: bool,
    facts: Callable[[Of], dict[str, Any]] = finding_facts,
    then: Sequence[Of] = (),
) -> None:
    """Say what is found as it is found, and ``then`` what does not count; ``CorruptionError`` at the end if an error is among it."""
    counts = Counter[str]()

    def counted() -> Iterator[Of]:
        for finding in findings:
            counts[finding.severity.value] += 1
            yield finding
        yield from then

    for finding in counted():
        write(to_json(facts(finding)) if as_json else visible(str(finding)))
    if not as_json:
        found = [number(counts[severity], word) for severity, word in _WORDS.items() if counts[severity]]
        write(f"{', '.join(found)}." if found else "Nothing is wrong.")
    finish()
    if counts["error"]:
        raise CorruptionError(
            f"{number(counts['error'], 'error')} in {visible(what)}.", next_step="Do what stands at the end of each line."
        )
