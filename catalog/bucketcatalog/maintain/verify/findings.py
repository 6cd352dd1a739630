"""Findings: what ``verify`` says, one line each, with a code that is stable across releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from ...errors import BucketCatalogError, MissingObject, UnsupportedFormat, can_be_set_aside, set_aside_command, take_in_command
from ...format.authority import Definitions
from ...format.held import Held


class Severity(Enum):
    """How bad a finding is: an answer is wrong or refused, something ought to be done, or it is only worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Sort:
    """What all findings of one code have in common; ``when_lost`` is what to do where ``repair`` can do nothing."""

    severity: Severity
    remedy: str
    when_lost: str = ""


_RESTORE = "Restore the file from a copy of the store"
_REPAIR = "bucketcatalog repair CATALOG says what can be done without it"
_GONE = f"{_RESTORE}: nothing else brings back what it held. Every command that reads shows the rest with --ignore-corruption."
_UNTRUE = f"Do not trust its rows. {_RESTORE} if that has it right: nothing else brings them back."
_FILE = "FILE"
"""Stands in the texts below for the file that a finding is about."""
_ASIDE = f"{_GONE} Or, where no checkpoint has its rows, go on without them: {set_aside_command(_FILE)}."
_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
_DAMAGE = Sort(_ERROR, f"{_RESTORE}; else {_REPAIR}.", _GONE)
_OF_TRANSACTION = Sort(_ERROR, f"{_RESTORE}; else {_REPAIR}.", _ASIDE)
_WRONG = Sort(_ERROR, f"Look for what is left: {_REPAIR}.", _UNTRUE)
_DIFFERENT = Sort(_ERROR, f"Look for what is left: {_REPAIR.replace('CATALOG', 'CATALOG --deep')}.", _UNTRUE)
SORTS: Mapping[str, Sort] = {
    "DAMAGED_TRANSACTION": _OF_TRANSACTION,
    "MISSING_TRANSACTION": Sort(
        _ERROR,
        f"{_RESTORE}; else {_REPAIR}.",
        f"{_ASIDE[:-1]} where its timeline goes on, else with the name of what refers to it.",
    ),
    "BROKEN_CHAIN": _OF_TRANSACTION,
    "TIME_ORDER": Sort(_ERROR, "Keep a copy of the catalog, and report this: no writer of this package commits so."),
    "DAMAGED_EVENTS": _OF_TRANSACTION,
    "SET_ASIDE": Sort(_INFO, f"Once its file is whole again, take it in: {take_in_command(_FILE)}."),
    "DAMAGED_CHECKPOINT": _DAMAGE,
    "MISSING_CHECKPOINT": _DAMAGE,
    "WRONG_CHECKPOINT": _WRONG,
    "FORGED_CHECKPOINT": Sort(
        _ERROR,
        "Readers pass it over. Find out who can write below its writer's prefix; bucketcatalog repair CATALOG says what to do about it.",
        "Readers pass it over. Find out who can write below its writer's prefix.",
    ),
    "DAMAGED_SEGMENT": _DAMAGE,
    "MISSING_SEGMENT": _DAMAGE,
    "DAMAGED_BLOCK": _DAMAGE,
    "WRONG_BLOCK": _WRONG,
    "DIFFERENT_STATE": _DIFFERENT,
    "UNSUPPORTED_FORMAT": Sort(_ERROR, "Verify it with a newer release of bucketcatalog."),
    "MISFIT_EVENTS": Sort(
        _ERROR,
        "Where the definition is wrong that the table counts by, set that aside: "
        "bucketcatalog repair CATALOG --set-aside WRITER@REVISION --force --yes. "
        f"Else set the file aside, {set_aside_command(_FILE)}, and let its writer write under another id what is to be read.",
    ),
    "MISFIT_ROWS": Sort(
        _ERROR,
        "Where the definition that counts as the first was dated back, go on without the file that has it: "
        "bucketcatalog repair CATALOG --set-aside WRITER@REVISION --force --yes. Else its rows are read past it, with --ignore-corruption.",
    ),
    "UNDEFINED_TABLE": Sort(_ERROR, "Restore the transactions that define it from a copy of the store."),
    "CONTRADICTING_TABLE": Sort(_ERROR, "Give the new definition a name of its own."),
    "NOT_LISTED": Sort(
        _ERROR,
        "Remove a link, or put there what it leads to where it is yours; of a directory that is there, give back the right to read it.",
    ),
    "OPEN_FORK": Sort(_WARNING, "Give each process a writer id of its own, then bucketcatalog repair CATALOG --join WRITER."),
    "FUTURE_TRANSACTION": Sort(
        _WARNING, "Wait until its time has come, or void it: bucketcatalog repair CATALOG --void WRITER@REVISION."
    ),
    "IGNORED_FIELDS": Sort(
        _WARNING,
        "Readers ignore that and take the rest. Find out who can write below its writer's prefix: no release writes so.",
    ),
    "BEHIND_A_SEAL": Sort(
        _WARNING,
        "End the process that writes so, and have it covered: bucketcatalog checkpoint CATALOG --all-writers.",
    ),
    "FUTURE_CHECKPOINT": Sort(_WARNING, "Readers pass it over until its time has come: look after its writer's clock."),
    "UNCLOSED_READS": Sort(
        _WARNING, "Have its writer name all that it has read. Readers complete what they show, so that no answer depends on it."
    ),
    "UNMARKED_CHECKPOINT": Sort(
        _INFO, "Leave it to prune: its marker may be under way, or its maker died. The horizon or a tag may rest on such a file."
    ),
    "UNREADABLE_HISTORY": Sort(
        _INFO, "Restore the file from a copy of the store. Else the history begins where the later checkpoint does."
    ),
    "UNREFERENCED_SEGMENT": Sort(
        _INFO,
        "Leave it to prune: a checkpoint that is being written may be about to name it, and one that is lost may be made again from it.",
    ),
    "LATE_ARRIVAL": Sort(
        _INFO, "Nothing is to be done where the catalog was copied. Else look after the writer's network and clock."
    ),
    "CLOCK_AHEAD": Sort(_INFO, "Nothing is to be done where the catalog was copied. Else set the writer's clock right."),
    "UNKNOWN_FILE": Sort(_INFO, "Nothing is to be done: readers ignore it."),
    "NOT_COMPARED": Sort(_INFO, "Verify it with --deep, while the transactions are there."),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong or worth knowing: the file that it is about, and what that ``held``; ``is_lost`` where no repair helps."""

    code: str
    file: str
    message: str
    held: tuple[Held, ...] = ()
    is_lost: bool = False

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return SORTS[self.code].severity

    @property
    def remedy(self) -> str:
        """What to do about it."""
        sort = SORTS[self.code]
        when_lost = sort.when_lost
        if sort.remedy == _OF_TRANSACTION.remedy and not can_be_set_aside(self.file):
            when_lost = _GONE
        return (when_lost or sort.remedy if self.is_lost else sort.remedy).replace(_FILE, self.file)

    def as_lost(self) -> Finding:
        """The same as ``repair`` lists it, which can do nothing about it."""
        return replace(self, is_lost=True)

    def __str__(self) -> str:
        held = f" It held {'; '.join(map(str, self.held))}." if self.held else ""
        return f"{self.severity.value} {self.code} {self.file}: {self.message}{held} Next: {self.remedy}"


def with_keys(finding: Finding, definitions: Definitions) -> Finding:
    """The same with the keys of what it held shown, where their tables are defined."""

    def shown(held: Held) -> Held:
        name = held.table
        is_known = name is not None and name in definitions and definitions.contradiction(name) is None
        return held.shown_by(definitions[name]) if name is not None and is_known else held

    return replace(finding, held=tuple(map(shown, finding.held)))


def unreadable(error: BucketCatalogError, what: str, file: str, *held: Held) -> Finding:
    """The finding of a file of a kind, such as ``BLOCK``, that could not be read for this reason.

    What it held stands behind the reason, and not in it again.
    """
    named = f"{file} "
    text = f"It {error.message.removeprefix(named)}" if error.message.startswith(named) else error.message
    for each in held:
        text = text.replace(str(each), "its rows")  # in which there are names that may be anything
    if held:
        text = text.partition(" It held ")[0]
    if isinstance(error, UnsupportedFormat):
        return Finding("UNSUPPORTED_FORMAT", file, text, held)
    missing = isinstance(error, MissingObject) and f"MISSING_{what}" in SORTS
    return Finding(f"{'MISSING' if missing else 'DAMAGED'}_{what}", file, text, held)
