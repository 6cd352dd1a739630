"""What a tag alone keeps of a past cut, while that is put again: for whom a collection may come in between."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import BucketCatalogError, CatalogWarning, CommitUnknown, DataCollected
from ..format.records import TagEntry
from ..log.entries import tags_of
from ..log.view import LogView
from ..model.arrays import Mask
from ..model.cuts import Cut
from ..model.facts import Facts
from ..model.names import is_maintainer
from ..model.times import shown_time
from ..query.database import Database
from ..wording import either, how_to_drop
from ..write.writer import Writer


def lasting_tag(view: LogView, cut: Cut) -> TagEntry | None:
    """The maintainers' tag that has named exactly this cut for the longest time, if one does; how long others' hold nobody can tell."""
    given = (tag.latest for tag in tags_of(view).values() if is_maintainer(tag.latest.stamp.writer))
    named = (entry for entry in given if entry.cut == cut and not entry.dropped)
    return min(named, key=lambda tag: tag.stamp, default=None)


def kept_by(tag: TagEntry, known: Facts, at: pa.Array, *, with_purged: bool = False) -> Mask:
    """Of which of the versions at these positions, all live at the tag's cut, the tag keeps the data for certain.

    Of those that ended after the tag was given and are not purged: no boundary reaches such an end from before the tag could be seen.
    """
    lasting = known.end_times() >= tag.stamp.commit_time
    if not with_purged:
        lasting &= known.numbers("_purged") == 0
    kept: Mask = np.asarray(pc.fill_null(pa.array(lasting).take(at), False))
    return kept


@dataclass
class Hold:
    """The restore's own tag of a cut that another ``tag`` names: given when it is first needed, and dropped at the end of a ``with``.

    A tag that was given before a version ended keeps the version's data from every collection that has looked since. It can be dropped at
    any moment, and what it kept be deleted at once. So a restore gives its cut a tag of its own and looks again: whoever looked before that
    saw the first tag, and whoever looks afterwards sees the second one, or what was put.

    It stays where the outcome of the commit is not known, or where the process dies; ``is_there`` where one has left it.
    """

    database: Database
    writer: Writer
    tag: TagEntry | None
    table: str
    is_there: bool = False
    is_sure: bool = False

    def __enter__(self) -> Hold:
        state = tags_of(self.database.view()).get(self.name) if self.tag is not None else None
        self.is_there = state is not None and not state.latest.dropped
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        is_settled = error is None or (isinstance(error, BucketCatalogError) and not isinstance(error, CommitUnknown))
        if not self.is_there or not is_settled:
            return
        try:
            self.writer.drop_tag(self.name)
        except BucketCatalogError as failed:
            text = f"The tag {self.name!r} of the restore is still there: {failed.message} Drop it: {how_to_drop(self.name)}."
            warnings.warn(text, CatalogWarning, stacklevel=2)

    @property
    def name(self) -> str:
        """The same for each attempt of one maintainer, so that the next one takes back what a broken one has left."""
        cut = self.tag.cut if self.tag is not None else None
        of = f"{self.writer.id} {self.table} {cut}"
        return f"restore-{hashlib.sha256(of.encode()).hexdigest()[:12]}"

    def take(self) -> None:
        """Keep the cut's data from now on; ``DataCollected`` where the first tag is gone by then, and the data may be too."""
        if self.tag is None or self.is_sure:
            return
        self.is_there = True  # or may be, from now on
        self.writer.tag(self.name, version=str(self.tag.cut), replace=True)
        self.is_sure = True
        now = tags_of(self.database.view())[self.tag.name].latest
        if now != self.tag:
            raise DataCollected(
                f"The tag {self.tag.name!r}, which kept data of rows of {self.table!r}, was "
                f"{'dropped' if now.dropped else 'moved'} by {now.stamp[1]!r} at {shown_time(now.stamp.commit_time)}.",
                next_step=f"Restore again: rows whose data may be gone are then refused, or left out with {skip_collected()}.",
            )


def skip_collected() -> str:
    """How one says that rows whose data may be gone are to be left out."""
    return either("skip_collected=True", "--skip-collected")
