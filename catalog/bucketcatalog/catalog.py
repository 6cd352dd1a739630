"""The catalog: the way in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .log.ancestry import between, version_view
from .log.entries import without_voided
from .log.versions import Version, without_naming_tags
from .maintaining import Maintained
from .model.cuts import Cut
from .opening import DEFAULT_DATABASE
from .query.changes import Changes, Diff, changed_table, refuse_reversed
from .query.info import Information, describe
from .query.snapshot import Snapshot

__all__ = ["DEFAULT_DATABASE", "Catalog"]


class Catalog(Maintained):
    """A catalog in an object store, given by a path, any fsspec URL, or a ``Store``.

    Opening one reads nothing and creates nothing.
    """

    def info(self, *, database: str | None = None, progress: Callable[[int], None] | None = None) -> Information:
        """What a database is, how large, how old, and what needs doing; ``progress`` is told how many rows were counted so far."""
        return describe(self.snapshot(database=database), self.url, progress or (lambda _: None))

    def changes(
        self,
        *,
        database: str | None = None,
        table: str = "objects",
        start: Version | None = None,
        end: Version | None = None,
    ) -> Changes:
        """Every event of a table after the cut ``start`` (without one: from the beginning) up to ``end`` (without one: now).

        ``InvalidOption`` where the end is the earlier of the two, ``HistoryPruned`` where events after the start may have been deleted.
        """
        with without_naming_tags():  # a tag keeps a state, and no events
            later = self.snapshot(database=database, version=end)
            since = self._from(later, start).view
            transactions = without_voided(between(later.files, since, later.cut), later.view.voids)
        found = Changes(self.store, changed_table(later, table), list(transactions))
        refuse_reversed(found, since.cut, later.cut)
        return found

    def diff(
        self, *, database: str | None = None, table: str = "objects", start: Version | None = None, end: Version | None = None
    ) -> Diff:
        """The net difference of a table between the cuts ``start`` (without one: nothing) and ``end`` (without one: now)."""
        later = self.snapshot(database=database, version=end)
        return Diff(self._from(later, start), later, changed_table(later, table))

    def _from(self, later: Snapshot, start: Version | None) -> Snapshot:
        """The snapshot that a comparison with ``later`` starts from, read with its definitions; without a version the empty one."""
        if start is None:
            view = replace(version_view(later.files, Cut()), horizon=later.view.horizon)
        else:
            view = self.snapshot(database=later.database, version=start).view
        return Snapshot(later.files, view, later.definitions)
