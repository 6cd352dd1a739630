"""Findings: what ``verify`` says, one line each, with a code that is stable across releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from ...errors import BucketCatalogError, MissingObject, UnsupportedFormat, can_be_set_aside
from ...format.authority import Definitions
from ...format.held import Held
from ...wording import either, how_to_join, how_to_repair, how_to_set_aside, how_to_take_in, how_to_void


class Severity(Enum):
    """How bad a finding is: an answer is wrong or refused, something ought to be done, or it is only worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Sort:
    """What all findings of one code have in common; ``when_lost`` is what to do where ``repair`` can do nothing.

    What ``is_of_transaction`` may be about the file of a maintainer too, which cannot be set aside.
    """

    severity: Severity
    remedy: str
    when_lost: str = ""
    is_of_transaction: bool = False


_RESTORE = "Restore the file from a copy of the store"
_UNTRUE = f"Do not trust its rows. {_RESTORE} if that has it right: nothing else brings them back."
_FILE = "FILE"
"""Stands in the texts below for the file that a finding is about."""
_ERROR = Severity.ERROR


def _gone() -> str:
    """What to do about a file of which nothing stands in for what it held."""
    past = either(
        "Whatever reads shows the rest with ignore_corruption=True.",
        "Every command that reads shows the rest with --ignore-corruption.",
    )
    return f"{_RESTORE}: nothing else brings back what it held. {past}"


def sorts() -> Mapping[str, Sort]:
    """The sorts of findings by their codes, in the words of whoever reads."""
    return {
        **_errors(),
        **{code: Sort(Severity.WARNING, remedy) for code, remedy in _of_warnings().items()},
        **{code: Sort(Severity.INFO, remedy) for code, remedy in _of_what_is_worth_knowing().items()},
    }


def _errors() -> Mapping[str, Sort]:
    """The sorts of what makes an answer wrong, or has it refused."""
    restore = f"{_RESTORE}; else {how_to_repair()} says what can be done without it."
    gone = _gone()
    aside = f"{gone} Or, where no checkpoint has its rows, go on without them: {how_to_set_aside(_FILE)}."
    deep = either("catalog.repair(deep=True)", "bucketcatalog repair CATALOG --deep")
    forged = "Readers pass it over. Find out who can write below its writer's prefix"
    of_transaction = Sort(_ERROR, restore, aside, is_of_transaction=True)
    damage = Sort(_ERROR, restore, gone)
    wrong = Sort(_ERROR, f"Look for what is left: {how_to_repair()} says what can be done without it.", _UNTRUE)
    return {
        "DAMAGED_TRANSACTION": of_transaction,
        "MISSING_TRANSACTION": replace(
            of_transaction, when_lost=f"{aside[:-1]} where its timeline goes on, else with the name of what refers to it."
        ),
        "BROKEN_CHAIN": of_transaction,
        "TIME_ORDER": Sort(_ERROR, "Keep a copy of the catalog, and report this: no writer of this package commits so."),
        "DAMAGED_EVENTS": of_transaction,
        "DAMAGED_CHECKPOINT": damage,
        "MISSING_CHECKPOINT": damage,
        "WRONG_CHECKPOINT": wrong,
        "FORGED_CHECKPOINT": Sort(_ERROR, f"{forged}; {how_to_repair()} says what to do about it.", f"{forged}."),
        "DAMAGED_SEGMENT": damage,
        "MISSING_SEGMENT": damage,
        "DAMAGED_BLOCK": damage,
        "WRONG_BLOCK": wrong,
        "DIFFERENT_STATE": Sort(_ERROR, f"Look for what is left: {deep} says what can be done without it.", _UNTRUE),
        "UNSUPPORTED_FORMAT": Sort(_ERROR, "Verify it with a newer release of bucketcatalog."),
        "MISFIT_EVENTS": Sort(
            _ERROR,
            "Where the definition is wrong that the table counts by, set that aside: "
            f"{how_to_set_aside('WRITER@REVISION', force=True)}. "
            f"Else set the file aside, {how_to_set_aside(_FILE)}, and let its writer write under another id what is to be read.",
        ),
        "MISFIT_ROWS": Sort(
            _ERROR,
            "Where the definition that counts as the first was dated back, go on without the file that has it: "
            f"{how_to_set_aside('WRITER@REVISION', force=True)}. "
            f"Else its rows are read past it, with {either('ignore_corruption=True', '--ignore-corruption')}.",
        ),
        "UNDEFINED_TABLE": Sort(_ERROR, "Restore the transactions that define it from a copy of the store."),
        "CONTRADICTING_TABLE": Sort(_ERROR, "Give the new definition a name of its own."),
        "NOT_LISTED": Sort(
            _ERROR,
            "Remove a link, or put there what it leads to where it is yours; of a directory that is there, give back the right to read it.",
        ),
    }


def _of_warnings() -> Mapping[str, str]:
    """What to do about what ought to be looked after, by the code."""
    have_it_covered = either("compactor.checkpoint(scope='all').", "bucketcatalog checkpoint CATALOG --all-writers.")
    return {
        "OPEN_FORK": f"Give each process a writer id of its own, then {how_to_join('WRITER')}.",
        "FUTURE_TRANSACTION": f"Wait until its time has come, or void it: {how_to_void('WRITER@REVISION')}.",
        "IGNORED_FIELDS": "Readers ignore that and take the rest. Find out who can write below its writer's prefix: no release writes so.",
        "BEHIND_A_SEAL": f"End the process that writes so, and have it covered: {have_it_covered}",
        "FUTURE_CHECKPOINT": "Readers pass it over until its time has come: look after its writer's clock.",
        "UNCLOSED_READS": "Have its writer name all that it has read. Readers complete what they show, so that no answer depends on it.",
    }


def _of_what_is_worth_knowing() -> Mapping[str, str]:
    """What to do about the rest, if anything, by the code."""
    return {
        "SET_ASIDE": f"Once its file is whole again, take it in: {how_to_take_in(_FILE)}.",
        "UNMARKED_CHECKPOINT": "Leave it to prune: its marker may be under way, or its maker died. "
        "The horizon or a tag may rest on such a file.",
        "UNREADABLE_HISTORY": "Restore the file from a copy of the store. Else the history begins where the later checkpoint does.",
        "UNREFERENCED_SEGMENT": "Leave it to prune: a checkpoint that is being written may be about to name it, "
        "and one that is lost may be made again from it.",
        "LATE_ARRIVAL": "Nothing is to be done where the catalog was copied. Else look after the writer's network and clock.",
        "CLOCK_AHEAD": "Nothing is to be done where the catalog was copied. Else set the writer's clock right.",
        "UNKNOWN_FILE": "Nothing is to be done: readers ignore it.",
        "NOT_COMPARED": f"Verify it with {either('deep=True', '--deep')}, while the transactions are there.",
    }


CODES = frozenset(sorts())
"""What a finding can be."""


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
        return sorts()[self.code].severity

    @property
    def remedy(self) -> str:
        """What to do about it."""
        sort = sorts()[self.code]
        when_lost = _gone() if sort.is_of_transaction and not can_be_set_aside(self.file) else sort.when_lost
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
    missing = isinstance(error, MissingObject) and f"MISSING_{what}" in CODES
    return Finding(f"{'MISSING' if missing else 'DAMAGED'}_{what}", file, text, held)
