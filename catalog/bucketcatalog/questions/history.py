"""``growth``: how many objects and bytes there were at regular times, from the journal, whenever one asks.

The totals at the end are those of ``du``. What each event made of them follows from its own row and the one that it ended or replaced:
taken back from the end, this gives the totals at any earlier time. So rows that were collected meanwhile are in it, and what was pruned is
not.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .. import clock
from ..catalog import Catalog
from ..errors import CatalogWarning, InvalidOption
from ..log.versions import Version
from ..model.arrays import EXACT, exact_sum, one_chunk
from ..model.tables import TIMESTAMP
from ..model.times import Age, Moment, Time, age_micros, datetime_of, parse_time, shown_age, shown_time
from ..query.changes import changes_between
from ..query.events import BEFORE, CHANGE_TYPE
from ..query.snapshot import Snapshot
from .asking import BUCKET, BUCKET_ID, NAME, OBJECTS, OWNER, SIZE, Asked, Owner, Source, asked
from .grouping import BYTES, COUNT, Totals
from .usage import OF_BUCKETS, PREFIX, PrefixesOf, depth_of, usage

TIME = "time"
_COMMITTED = "_commit_timestamp"
_STEP, _GROUP = "step", "group"
_MOST_TIMES, _MOST_CELLS = 10_000, 5_000_000
Numbers = npt.NDArray[np.generic]


def growth(
    source: Source,
    *,
    every: Age = "1d",
    start: Time | None = None,
    end: Time | Version | None = None,
    bucket: str | None = None,
    owner: Owner = None,
    prefix: str | None = None,
    depth: int | None = None,
    database: str | None = None,
    ignore_corruption: bool = False,
) -> pa.Table:
    """Objects and bytes of each bucket, or of each prefix as of ``du``, ``every`` so often from ``start`` on, and at the ``end``.

    Without a start it begins with the first commit, at a whole multiple of ``every`` in UTC; without an end it ends now. Where the history
    was pruned it begins at the horizon, and a warning says so. A time has what was committed up to it.

    Columns: time, owner, bucket, bucket_id, with a prefix that, objects, bytes. Each group has a row for each time.
    """
    step = age_micros(every)
    if not step:
        raise InvalidOption("Every 0s there is no next time.", next_step="Give an age such as 1d.")
    span = _Span.of(source, start, end, step, database, ignore_corruption=ignore_corruption)
    about = asked(span.later, bucket=bucket, owner=owner, prefix=prefix)
    about = replace(about, looks_back=True)
    deep = depth_of(about, depth)
    last, changed = usage(about, deep), _changed(about, span, deep)
    return _Grid.of(about, span.times, last, changed).shown()


@dataclass(frozen=True)
class _Span:
    """The times, in microseconds, and the snapshots of the first and the last of them."""

    times: list[int]
    first: Snapshot
    later: Snapshot

    @classmethod
    def of(
        cls,
        source: Source,
        start: Time | None,
        end: Time | Version | None,
        step: int,
        database: str | None,
        *,
        ignore_corruption: bool,
    ) -> _Span:
        now = clock.now_us()
        moment = Moment.of(end, now)
        as_of = moment.timestamp if moment.version is None else moment.version
        look = asked(source, as_of=as_of, database=database, ignore_corruption=ignore_corruption, now=now)
        newest, name = look.snapshot.cut.newest_commit_time, look.snapshot.database
        stop = look.now if moment.given else newest if isinstance(source, Snapshot) else max(look.now, newest)
        times = list(_times(look.snapshot, None if start is None else parse_time(start, now), stop, step))
        # What is committed meanwhile must not be in the first and not in the last, so that is taken again.
        at_hand = Catalog(source.files.store) if isinstance(source, Snapshot) else source
        first = at_hand.snapshot(database=name, timestamp=datetime_of(times[0]), ignore_corruption=ignore_corruption)
        of = None if isinstance(source, Snapshot) else name
        later = asked(source, as_of=as_of, database=of, ignore_corruption=ignore_corruption, now=now).snapshot
        return cls([*times[:-1], max(times[-1], later.cut.newest_commit_time)], first, later)


def _times(snapshot: Snapshot, start: int | None, stop: int, step: int) -> Iterator[int]:
    """The times from the start, or the first commit, or the horizon, to the end."""
    horizon = snapshot.view.horizon
    begin = start
    if begin is None:
        known = horizon.time if horizon is not None else _first_commit(snapshot, stop)
        begin = known - known % step
    if begin > stop:
        raise InvalidOption(
            f"The start lies after the end: {shown_time(begin)} is later than {shown_time(stop)}.", next_step="Exchange the two."
        )
    if (stop - begin) // step >= _MOST_TIMES:
        raise InvalidOption(
            f"There are more than {_MOST_TIMES:,} times from {shown_time(begin)} to {shown_time(stop)}, every {shown_age(step)}.",
            next_step="Give a longer every, or a later start.",
        )
    every = range(begin, stop, step)
    if horizon is not None and begin < horizon.time:
        warnings.warn(
            f"The history before {shown_time(horizon.time)} was pruned: growth begins there.", CatalogWarning, stacklevel=5
        )
        yield min(horizon.time, stop)
        every = range(horizon.time + 1 + (begin - horizon.time - 1) % step, stop, step)
    yield from every
    yield stop


def _first_commit(snapshot: Snapshot, otherwise: int) -> int:
    first = (next(snapshot.files.transactions(writer), None) for writer in snapshot.cut.heads)
    return min((head.commit_time for head in first if head is not None), default=otherwise)


def _changed(about: Asked, span: _Span, depth: int | None) -> pa.Table:
    """What events have added, by group and by the number of the first time that has them; what they took away is negative."""
    start = Snapshot(span.later.files, span.first.view, span.later.definitions)
    events = changes_between(start, span.later, OBJECTS, place=about.place, pre_images=[SIZE])
    of_prefix = None if depth is None else PrefixesOf(about, depth)
    keys = [*OF_BUCKETS, *([] if of_prefix is None else [pa.field(PREFIX, pa.string())]), pa.field(_STEP, pa.int64())]
    totals, times = Totals(keys), np.array(span.times)
    columns = [CHANGE_TYPE, _COMMITTED, OWNER, BUCKET_ID, *([] if of_prefix is None else [NAME]), SIZE, BEFORE]
    for batch in events.only(columns).to_batches():
        at = np.searchsorted(times, np.asarray(one_chunk(batch[_COMMITTED]).cast(pa.int64())), side="left")
        groups = {OWNER: batch[OWNER], BUCKET_ID: batch[BUCKET_ID], _STEP: pa.array(at.astype(np.int64))}
        if of_prefix is not None:
            groups[PREFIX] = of_prefix(batch[NAME])
        totals.add(groups, _difference(batch))
    return totals.exact()


def _difference(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    """By how many objects and bytes each event changed what there is; one that has nothing before it and is no put changed nothing."""
    was_there, before = batch[BEFORE].is_valid(), pc.fill_null(pc.struct_field(batch[BEFORE], SIZE), 0)
    put = pc.equal(batch[CHANGE_TYPE], "put")
    is_there = pc.or_(put, pc.and_(pc.equal(batch[CHANGE_TYPE], "update"), was_there))
    after = pc.if_else(is_there, pc.fill_null(batch[SIZE], 0), 0)
    return {
        COUNT: pc.subtract(is_there.cast(pa.int64()), was_there.cast(pa.int64())),
        BYTES: pc.subtract(after, before),  # both are sizes, at least 0
    }


@dataclass(frozen=True)
class _Grid:
    """Groups, and for each of them and each time how many objects and bytes there were."""

    times: Sequence[int]
    groups: pa.Table
    objects: Numbers
    bytes: Numbers

    @classmethod
    def of(cls, about: Asked, times: Sequence[int], last: pa.Table, changed: pa.Table) -> _Grid:
        keys = [name for name in last.column_names if name not in (COUNT, BYTES)]
        groups = pa.concat_tables([last.select(keys), changed.select(keys)]).group_by(keys).aggregate([])
        if len(groups) * len(times) > _MOST_CELLS:
            raise InvalidOption(
                f"{len(groups):,} groups at {len(times):,} times are too many to show.",
                next_step="Give a longer every, a smaller depth, or a bucket or a prefix.",
            )
        groups = about.with_names(groups.select(keys))
        order = [name for name in (BUCKET, OWNER, BUCKET_ID, PREFIX) if name in groups.column_names]
        groups = groups.sort_by([(name, "ascending") for name in order])
        numbered = groups.select(keys).append_column(_GROUP, pa.array(np.arange(len(groups))))
        shape = len(groups), len(times)
        ends, steps = last.join(numbered, keys=keys), changed.join(numbered, keys=keys)
        made = [_backwards(shape, ends, steps, name) for name in (COUNT, BYTES)]
        return cls(times, groups, *made)

    def shown(self) -> pa.Table:
        """A row for each time and group, in that order; groups that have no object at any of the times are left out."""
        some = np.flatnonzero((self.objects != 0).any(axis=1))
        groups = self.groups.take(pa.array(some))
        rows = groups.take(pa.array(np.tile(np.arange(len(some)), len(self.times))))
        times = pa.array(np.repeat(np.array(self.times, np.int64), len(some))).cast(TIMESTAMP)
        for name, numbers in ((COUNT, self.objects), (BYTES, self.bytes)):
            values = numbers[some].T.ravel()
            rows = rows.append_column(name, pa.array(values.tolist(), EXACT) if values.dtype == object else pa.array(values))
        return rows.add_column(0, TIME, times)


def _backwards(shape: tuple[int, int], ends: pa.Table, steps: pa.Table, name: str) -> Numbers:
    """For each group and time what there was: what there is at the end without what came later."""
    fits = exact_sum(pc.abs(ends[name])) + exact_sum(pc.abs(steps[name])) < 1 << 62
    end, change = (np.array(each[name].to_pylist() if not fits else each[name].cast(pa.int64())) for each in (ends, steps))
    last = np.zeros(shape[0], dtype=np.int64 if fits else object)
    last[np.asarray(one_chunk(ends[_GROUP]))] = end if fits else [int(value) for value in end]
    after = np.zeros((shape[0], shape[1] + 1), dtype=last.dtype)
    place = np.asarray(one_chunk(steps[_GROUP])), np.asarray(one_chunk(steps[_STEP]))
    np.add.at(after, place, change if fits else np.array([int(value) for value in change], dtype=object))
    later: Numbers = np.cumsum(after[:, ::-1], axis=1)[:, ::-1][:, 1:]
    found: Numbers = last[:, None] - later
    return found
