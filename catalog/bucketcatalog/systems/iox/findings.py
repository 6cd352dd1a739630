"""Findings: what rebuilding and verifying data tables say, about one file each, with a code that is stable across releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


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
_OR_REMOVE = f"{_RESTORE}. Or go on without its rows: bucketcatalog iox remove."
SORTS: Mapping[str, Sort] = {
    # what a file is
    "UNREADABLE": Sort(_ERROR, _OR_REMOVE),
    "CLAIMS_ANOTHER_PATH": Sort(_ERROR, "Move it to where it says that it lies, if nothing else is there, and run this again."),
    "NO_ROW_GROUPS": Sort(_WARNING, "It has no rows, and nobody needs it: bucketcatalog gc --orphans deletes it."),
    "CHUNK_TAKEN": Sort(_ERROR, "One of the two is a copy, or was forged: append the rows of this one where they are missing."),
    "KEY_CONFLICT": Sort(_ERROR, "Append its rows with the table's key: bucketcatalog iox add."),
    "NOT_A_COMPACTOR": Sort(_ERROR, "Only compactors and maintainers make files out of others' files: look who has written it."),
    "MARKER_UNREADABLE": Sort(_WARNING, f"{_RESTORE}; else delete the same rows again, once the table is whole."),
    # what cannot be known, or need not be
    "PERHAPS_UNCOMMITTED": Sort(_WARNING, "Look whether its rows are there twice, and remove it then: bucketcatalog iox remove."),
    "PERHAPS_NOT_DELETED": Sort(_WARNING, "Look whether these rows were to go; where they were not, append them again."),
    "PERHAPS_REMOVED": Sort(_WARNING, "It is not taken in: where they were to go, remove them again, bucketcatalog iox remove."),
    "SEVERAL_ATTEMPTS": Sort(_WARNING, "Compare the two; where they are the same rows, remove one: bucketcatalog iox remove."),
    "UNDER_WAY": Sort(_INFO, "Run this again once it is old enough: its writer may be about to commit."),
    "UNDONE_COMPACTION": Sort(_INFO, "Its rows are in the files that it was made of: bucketcatalog gc --orphans deletes it."),
    "REMOVED": Sort(_INFO, "Nothing, unless somebody restored it later: no marker says that."),
    "REPLACED": Sort(_INFO, "Nothing: its rows are in a file that compaction has made."),
    # what is not as the catalog says
    "SCHEMA_MISSING": Sort(_ERROR, "bucketcatalog iox rebuild --adopt puts back what its columns are."),
    "MISSING": Sort(_ERROR, _OR_REMOVE),
    "WRONG_SIZE": Sort(_ERROR, _OR_REMOVE),
    "SAYS_OTHERWISE": Sort(_ERROR, _OR_REMOVE),
    "WRONG_STATISTICS": Sort(_ERROR, "Reads with conditions may leave its rows out: append them anew, and remove the file."),
    "MARKER_MISSING": Sort(_WARNING, f"{_RESTORE}. Reads are right; a rebuild would know nothing of this deletion."),
    "MARKER_SAYS_OTHERWISE": Sort(_WARNING, f"{_RESTORE}. Reads are right; a rebuild would believe the file."),
    "UNNAMED": Sort(_INFO, "bucketcatalog iox rebuild --adopt takes it in; bucketcatalog gc --orphans deletes it."),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about one ``file``, by its name in the store: ``code`` is a key of ``SORTS``."""

    code: str
    file: str
    message: str

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return SORTS[self.code].severity

    @property
    def remedy(self) -> str:
        """What is to be done."""
        return SORTS[self.code].remedy

    def __str__(self) -> str:
        return f"{self.severity.value} {self.code} {self.file}: {self.message} {self.remedy}"
