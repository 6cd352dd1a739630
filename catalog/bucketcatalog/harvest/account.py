"""What a harvest comes to: counts of what was seen and of what changed, step by step, and of several parts together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace

from ..model.tables import Table
from .compare import Step, bytes_in
from .failures import Failed
from .mapping import OBJECTS

_LARGEST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Counts:
    """How many entries and versions were seen, and what became of them; see ``Harvested``."""

    entries: int = 0
    created: int = 0
    created_bytes: int = 0
    overwritten: int = 0
    overwritten_bytes: int = 0
    overwritten_bytes_before: int = 0
    updated: int = 0
    deleted: int = 0
    deleted_bytes: int = 0
    unchanged: int = 0
    unchanged_bytes: int = 0
    versions: int = 0
    version_changes: int = 0
    hashed: int = 0
    hashed_bytes: int = 0
    errors: int = 0

    def with_step(self, table: Table, step: Step) -> Counts:
        """These, and what has to change in a range of names of a table."""
        put = 0 if step.put is None else len(step.put)
        seen = put + step.updated + step.unchanged
        if table is not OBJECTS:
            changes = put + step.updated + len(step.gone)
            return replace(self, versions=self.versions + seen, version_changes=self.version_changes + changes)
        return replace(
            self,
            entries=self.entries + seen,
            created=self.created + step.created,
            created_bytes=self.created_bytes + step.created_bytes,
            overwritten=self.overwritten + put - step.created,
            overwritten_bytes=self.overwritten_bytes + bytes_in(step.put) - step.created_bytes,
            overwritten_bytes_before=self.overwritten_bytes_before + step.replaced_bytes,
            updated=self.updated + step.updated,
            deleted=self.deleted + len(step.gone),
            deleted_bytes=self.deleted_bytes + bytes_in(step.lost),
            unchanged=self.unchanged + step.unchanged,
            unchanged_bytes=self.unchanged_bytes + step.unchanged_bytes,
        )

    def __sub__(self, before: Counts) -> Counts:
        """What has come since."""
        return Counts(**{one.name: getattr(self, one.name) - getattr(before, one.name) for one in fields(self)})

    def metrics(self, started: int, ended: int) -> dict[str, int]:
        """These as the metrics of a transaction, and the time that they are of, in microseconds since the epoch; see ``query.commits``."""
        counted = {one.name: min(getattr(self, one.name), _LARGEST) for one in fields(self)}
        return {"started": started, "ended": ended, **counted}

    @classmethod
    def sum(cls, parts: Iterable[Counts]) -> Counts:
        """Several parts of a source together."""
        every = list(parts)
        return cls(**{one.name: sum(getattr(part, one.name) for part in every) for one in fields(cls)})


@dataclass(frozen=True, slots=True)
class Harvested:
    """What a harvest did, or has done so far.

    Bytes are content lengths in sum: ``bytes`` of what was created and overwritten, ``overwritten_bytes`` of the new versions,
    ``overwritten_bytes_before`` of those that they replace. ``updated`` counts objects of which the version stayed and something else
    changed, such as tags or the owner of a file. ``versions`` counts the rows of ``object_versions`` that were seen, ``version_changes``
    those that were put, updated or deleted. ``hashed`` counts the files of which a checksum was made.
    ``entries`` counts what was seen; ``errors`` what the source has now that cannot be catalogued, of which ``failed`` are the first few;
    ``transactions`` are the versions of what was committed, none in a dry run.
    """

    source: str
    bucket: str
    bucket_id: str
    owner: str
    database: str
    writer: str
    dry_run: bool
    entries: int = 0
    created: int = 0
    created_bytes: int = 0
    overwritten: int = 0
    overwritten_bytes: int = 0
    overwritten_bytes_before: int = 0
    updated: int = 0
    deleted: int = 0
    deleted_bytes: int = 0
    unchanged: int = 0
    unchanged_bytes: int = 0
    versions: int = 0
    version_changes: int = 0
    bytes: int = 0
    hashed: int = 0
    hashed_bytes: int = 0
    errors: int = 0
    failed: tuple[Failed, ...] = ()
    transactions: tuple[str, ...] = ()
    seconds: float = 0.0

    def __str__(self) -> str:
        """How far it is, or what has become of it, for people."""
        done = ("created", "overwritten", "updated", "deleted")
        counts = [f"{count:,} {name}" for name in done if (count := getattr(self, name))]
        failed = f"; {self.errors:,} could not be catalogued" if self.errors else ""
        read = f"; {self.hashed:,} read" if self.hashed else ""
        return f"{self.entries:,} seen: {', '.join(counts) or 'nothing changed'}{read}{failed}"

    @property
    def changes(self) -> int:
        """How many objects were created, overwritten, updated and deleted."""
        return self.created + self.overwritten + self.updated + self.deleted

    def with_counts(self, counts: Counts) -> Harvested:
        """The same with other counts."""
        changed = counts.created_bytes + counts.overwritten_bytes
        return replace(self, bytes=changed, **{one.name: getattr(counts, one.name) for one in fields(counts)})


Progress = Callable[[Harvested], None]
