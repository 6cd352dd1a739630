"""What is read of a catalog: a cut of a database, and what lies between two of them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .. import clock
from ..log.ancestry import version_view
from ..log.versions import Version, telling_to_begin_anew
from ..model.cuts import Cut
from ..model.names import names_given
from ..model.public import public
from ..model.times import Moment, Time, refuse_reversed_times, span_of
from ..query.database import require
from ..query.snapshot import Snapshot
from ..where.given import Condition
from .opened import Opened

if TYPE_CHECKING:
    from ..query.changes import Changes
    from ..query.difference import Diff
    from ..query.info import Information
    from ..query.looked_up import LookedUp


@public("changes", "data", "diff", "info", "snapshot")
class Reading(Opened):
    """What whoever reads asks of a catalog."""

    def snapshot(
        self,
        *,
        database: str | None = None,
        timestamp: Time | None = None,
        version: Version | None = None,
        strict: bool = False,
        ignore_corruption: bool = False,
    ) -> Snapshot:
        """The database now, at a time, or at a version. ``strict`` makes an open fork an error instead of a warning.

        With ``ignore_corruption`` damaged and missing files are no errors: the rest is read; the snapshot's ``missing`` says what is not.
        """
        name = self.resolve_database(database, ignore_corruption=ignore_corruption)
        snapshot = self.database(name).snapshot(timestamp, version, strict=strict, ignore_corruption=ignore_corruption)
        if not snapshot.cut.heads:
            require(self.url, self.databases(ignore_corruption=ignore_corruption), name)
        return snapshot

    def data(
        self,
        table: str,
        *,
        database: str | None = None,
        writer: str | None = None,
        clock: Callable[[], int] = clock.now_us,
    ) -> Any:
        """The data table of that name: rows in Parquet files, to append, remove, delete and scan; see the guide to data tables.

        ``writer`` is who commits, by default this machine's; ``database`` the one to write to, by default ``default``, or to read, by
        default the only one there is.
        """
        return self.registry.opens("data")(self, table, database=database, writer=writer, clock=clock)

    def info(self, *, database: str | None = None, progress: Callable[[int], None] | None = None) -> Information:
        """What a database is, how large, how old, and what needs doing; ``progress`` is told how many rows were counted so far."""
        from ..query.info import describe

        return describe(self.snapshot(database=database), self.url, progress or (lambda _: None))

    def changes(
        self,
        *,
        database: str | None = None,
        table: str = "objects",
        start: Time | Version | None = None,
        end: Time | Version | None = None,
        columns: Sequence[str] | None = None,
        where: Condition | None = None,
        bucket: str | None = None,
        owner: str | uuid.UUID | None = None,
        prefix: str | None = None,
        pre_images: bool | Sequence[str] = False,
        ignore_set_aside: bool = False,
        ignore_corruption: bool = False,
    ) -> Changes | LookedUp:
        """Every event of a table after the time or version ``start`` (without one: from the beginning) up to ``end`` (without one: now).

        ``where`` has conditions on columns of its key, as a scan takes them, and ``bucket``, ``owner`` and ``prefix`` are as of a scan:
        blocks of other keys are not read. ``pre_images`` adds what each event ended or replaced, ``_before``, with all columns of its row
        or the ones that are named: what was deleted can be summed. ``columns`` may ask for ``bucket``, ``_operation``, ``_metadata`` too.

        A text that may be either is a time where it looks like one, as on the command line. ``InvalidOption`` where the end is the earlier
        of the two, ``HistoryPruned`` where events after the start may have been deleted, ``SetAsideError`` where events of a file are
        missing that was set aside, unless that is to be ignored. With ``ignore_corruption`` what cannot be read is left out, and a warning
        tells so.
        """
        from ..query.changes import changes_between
        from ..query.named import Place as Named

        span = span_of(start, end)
        refuse_reversed_times(*span)
        with telling_to_begin_anew():
            since, later = self._between(database, *span, ignore_corruption=ignore_corruption)
            found = changes_between(
                since,
                later,
                table,
                where=where,
                place=Named(bucket, owner, prefix),
                pre_images=pre_images,
                ignore_set_aside=ignore_set_aside,
            )
        return found if columns is None else found.only(names_given(columns, "columns", "columns=['name']"))

    def diff(
        self,
        *,
        database: str | None = None,
        table: str = "objects",
        start: Time | Version | None = None,
        end: Time | Version | None = None,
        columns: Sequence[str] | None = None,
        where: Condition | None = None,
        bucket: str | None = None,
        owner: str | uuid.UUID | None = None,
        prefix: str | None = None,
        pre_images: bool | Sequence[str] = False,
        ignore_corruption: bool = False,
    ) -> Diff | LookedUp:
        """The net difference of a table between ``start`` (without one: nothing) and ``end`` (without one: now), as of ``changes``.

        With ``pre_images`` also the earlier row, in ``_before``. With ``ignore_corruption`` keys of which either lacks rows are left out,
        with a warning.
        """
        from ..query.changes import changed_table
        from ..query.difference import Diff
        from ..query.named import Place as Named

        since, later = self._between(database, *span_of(start, end), ignore_corruption=ignore_corruption)
        place = Named(bucket, owner, prefix)
        found = Diff.between(since, later, changed_table(later, table), where, place=place, pre_images=pre_images)
        return found if columns is None else found.only(names_given(columns, "columns", "columns=['name']"))

    def _between(self, database: str | None, start: Moment, end: Moment, *, ignore_corruption: bool) -> tuple[Snapshot, Snapshot]:
        """The snapshots that are compared, both with the definitions of the later one; without a start the empty one.

        What is committed meanwhile must not look as if the start lay after the end, so a start that is a time is read first.
        """
        first = None
        if start.timestamp is not None:
            database = self.resolve_database(database, ignore_corruption=ignore_corruption)
            first = self.snapshot(database=database, ignore_corruption=ignore_corruption, **start.asked)
        later = self.snapshot(database=database, ignore_corruption=ignore_corruption, **end.asked)
        if first is None and start.given:
            first = self.snapshot(database=later.database, ignore_corruption=ignore_corruption, **start.asked)
        view = replace(version_view(later.files, Cut()), horizon=later.view.horizon) if first is None else first.view
        return Snapshot(later.files, view, later.definitions), later
