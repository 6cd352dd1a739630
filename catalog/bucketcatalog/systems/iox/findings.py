"""Findings: what rebuilding and verifying data tables say, about one file each, with a code that is stable across releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from ...wording import either


class Severity(Enum):
    """How bad a finding is: rows are lost or wrong, something ought to be looked at, or it is only worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Sort:
    """What all findings of one code have in common: how bad they are, and what is to be done."""

    severity: Severity
    remedy: str


_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
_RESTORE = "Put it back from a copy of the store: nothing else has what it held"


def sorts() -> Mapping[str, Sort]:
    """The sorts of findings by their codes, in the words of whoever reads."""
    remove = either("cat.data(TABLE).remove([FILE])", "bucketcatalog iox remove")
    adopt = either("systems.iox.rebuild.rebuild(catalog, adopt=True, dry_run=False)", "bucketcatalog iox rebuild --adopt")
    collect = either("catalog.orphans(dry_run=False)", "bucketcatalog gc --orphans")
    append = either("cat.data(TABLE).append(FILE, key=KEY)", "bucketcatalog iox add")
    or_remove = Sort(_ERROR, f"{_RESTORE}. Or go on without its rows: {remove}.")
    return {
        # what a file is
        "UNREADABLE": or_remove,
        "CLAIMS_ANOTHER_PATH": Sort(
            _ERROR, "Move it to where it says that it lies, if nothing else is there, and run this again."
        ),
        "NO_ROW_GROUPS": Sort(_WARNING, f"It has no rows, and nobody needs it: {collect} deletes it."),
        "CHUNK_TAKEN": Sort(
            _ERROR, "One of the two is a copy, or was forged: append the rows of this one where they are missing."
        ),
        "KEY_CONFLICT": Sort(_ERROR, f"Append its rows with the table's key: {append}."),
        "NOT_A_COMPACTOR": Sort(
            _ERROR, "Only compactors and maintainers make files out of others' files: look who has written it."
        ),
        "MARKER_UNREADABLE": Sort(_WARNING, f"{_RESTORE}; else delete the same rows again, once the table is whole."),
        # what cannot be known, or need not be
        "PERHAPS_UNCOMMITTED": Sort(_WARNING, f"Look whether its rows are there twice, and remove it then: {remove}."),
        "PERHAPS_NOT_DELETED": Sort(_WARNING, "Look whether these rows were to go; where they were not, append them again."),
        "PERHAPS_REMOVED": Sort(_WARNING, f"It is not taken in: where they were to go, remove them again, {remove}."),
        "SEVERAL_ATTEMPTS": Sort(_WARNING, f"Compare the two; where they are the same rows, remove one: {remove}."),
        "UNDER_WAY": Sort(_INFO, "Run this again once it is old enough: its writer may be about to commit."),
        "UNDONE_COMPACTION": Sort(_INFO, f"Its rows are in the files that it was made of: {collect} deletes it."),
        "REMOVED": Sort(_INFO, "Nothing, unless somebody restored it later: no marker says that."),
        "REPLACED": Sort(_INFO, "Nothing: its rows are in a file that compaction has made."),
        # what is not as the catalog says
        "SCHEMA_MISSING": Sort(_ERROR, f"{adopt} puts back what its columns are."),
        "MISSING": or_remove,
        "WRONG_SIZE": or_remove,
        "SAYS_OTHERWISE": or_remove,
        "WRONG_STATISTICS": Sort(_ERROR, "Reads with conditions may leave its rows out: append them anew, and remove the file."),
        "MARKER_MISSING": Sort(_WARNING, f"{_RESTORE}. Reads are right; a rebuild would know nothing of this deletion."),
        "MARKER_SAYS_OTHERWISE": Sort(_WARNING, f"{_RESTORE}. Reads are right; a rebuild would believe the file."),
        "UNNAMED": Sort(_INFO, f"{adopt} takes it in; {collect} deletes it."),
    }


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about one ``file``, by its name in the store: ``code`` is a key of ``sorts``."""

    code: str
    file: str
    message: str

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return sorts()[self.code].severity

    @property
    def remedy(self) -> str:
        """What is to be done."""
        return sorts()[self.code].remedy

    def __str__(self) -> str:
        return f"{self.severity.value} {self.code} {self.file}: {self.message} {self.remedy}"
