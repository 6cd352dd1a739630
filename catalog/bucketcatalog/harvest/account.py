"""What a harvest comes to: counts of what was seen and of what changed, step by step, and of several parts together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace

from ..model.arrays import exact_sum
from ..model.tables import Table
from .commit import Failed
from .compare import Step
from .mapping import OBJECTS


@dataclass(frozen=True, slots=True)
class Counts:
    """How many entries and versions were seen, and what became of them; see ``Harvested``."""

    entries: int = 0
    created: int = 0
    overwritten: int = 0
    updated: int = 0
    deleted: int = 0
    unchanged: int = 0
    versions: int = 0
    version_changes: int = 0
    bytes: int = 0

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
            overwritten=self.overwritten + put - step.created,
            updated=self.updated + step.updated,
            deleted=self.deleted + len(step.gone),
            unchanged=self.unchanged + step.unchanged,
            bytes=self.bytes + (0 if step.put is None else exact_sum(step.put.column("content_length"))),
        )

    @classmethod
    def sum(cls, parts: Iterable[Counts]) -> Counts:
        """Several parts of a source together."""
        every = list(parts)
        return cls(**{one.name: sum(getattr(part, one.name) for part in every) for one in fields(cls)})


@dataclass(frozen=True, slots=True)
class Harvested:
    """What a harvest did, or has done so far. ``bytes`` is the content length of what was created and overwritten, in sum.

    ``updated`` counts objects of which the version stayed and something else changed, such as tags or the storage class. ``versions``
    counts the rows of ``object_versions`` that were seen, ``version_changes`` those that were put, updated or deleted.
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
    overwritten: int = 0
    updated: int = 0
    deleted: int = 0
    unchanged: int = 0
    versions: int = 0
    version_changes: int = 0
    bytes: int = 0
    errors: int = 0
    failed: tuple[Failed, ...] = ()
    transactions: tuple[str, ...] = ()
    seconds: float = 0.0

    def __str__(self) -> str:
        """How far it is, or what has become of it, for people."""
        done = ("created", "overwritten", "updated", "deleted")
        counts = [f"{count:,} {name}" for name in done if (count := getattr(self, name))]
        failed = f"; {self.errors:,} could not be catalogued" if self.errors else ""
        return f"{self.entries:,} seen: {', '.join(counts) or 'nothing changed'}{failed}"

    @property
    def changes(self) -> int:
        """How many objects were created, overwritten, updated and deleted."""
        return self.created + self.overwritten + self.updated + self.deleted

    def with_counts(self, counts: Counts) -> Harvested:
        """The same with other counts."""
        return replace(self, **{one.name: getattr(counts, one.name) for one in fields(counts)})


Progress = Callable[[Harvested], None]
