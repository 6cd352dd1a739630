"""The engine as the histories use it: with ``onlooker``, which reads, the only module here that knows its interface.

Everything comes back in the model's words: keys are tuples, times are microseconds, versions are their names, and rows are dicts of the
columns that the histories use.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa

from bucketcatalog import Catalog
from bucketcatalog.errors import CommitUnknown, DataCollected, ForeignBranch, OutcomeUnknown, ParentEnded, StoreUnavailable
from bucketcatalog.maintain import restore as restoring
from bucketcatalog.store.base import Store
from bucketcatalog.store.faults import SimulatedCrash
from bucketcatalog.write.writer import Writer

from ..reference.model import Key, Op
from ..reference.timelines import Application, Draft
from .columns import DATABASE, KEYS, TIME, TIMES
from .onlooker import snapshot_of
from .steps import Fault
from .stores import Published, View

Told = tuple[int, str, int]
"""What a writer tells of its commit: revision, uuid and commit time."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a commit or a checkpoint: the transactions put meanwhile, what the writer told, and what ended it early.

    ``refused``: the store did, or the engine since data may be gone or a parent has ended; nothing was changed, and the process goes
    on. ``stopped``: it met a foreign branch of its own timeline. ``lost``: it crashed, or cannot tell what became of what it put; either
    way it has to be opened anew.
    """

    published: list[Published]
    told: Told | None = None
    refused: bool = False
    stopped: bool = False
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Addressed:
    """A draft as the engine is given it: with ``id`` it names the live version by that, and the engine has to look it up.

    With ``derived`` it is a bucket without its id, which the engine has to derive. ``data_of`` is the key and version of another row whose
    data it names.
    """

    draft: Draft
    id: str | None = None
    derived: bool = False
    data_of: tuple[Key, str] | None = None


class NeedsRepair(Exception):
    """The writer cannot be opened, because its timeline is forked in a way that only ``repair`` joins."""


def transact(writer: Writer, addressed: list[Addressed], application: Application | None = None) -> Told | None:
    """One transaction, neighbouring events of one kind in one call; None where it was an application's older version."""
    app_id, app_version = application or (None, None)
    with writer.transaction(operation="test", app_id=app_id, app_version=app_version) as tx:
        for _, alike in groupby(addressed, key=_kind):
            _add(tx, list(alike))
    if tx.committed is None:
        assert application is not None, "only an application's older version commits nothing"
        return None
    return tx.committed.revision, tx.committed.uuid, tx.committed.commit_time


class EngineProcess:
    """One process: a catalog of its own on its own view of the store, and a writer that it holds open."""

    def __init__(self, store: Store, writer: str, *, now: Callable[[], int], clock: Callable[[], int]) -> None:
        self.view = View(store, now)
        self._catalog = Catalog(self.view)
        try:
            self._writer = self._catalog.writer(writer, database=DATABASE, clock=clock)
        except ForeignBranch as error:
            raise NeedsRepair from error

    def commit(self, addressed: list[Addressed], fault: Fault, application: Application | None = None) -> Outcome:
        """One transaction, neighbouring events of one kind in one call; the fault strikes what names its events, not those in segments."""

        return self._attempt(lambda: transact(self._writer, addressed, application), fault, of_segments=False)

    def checkpoint(self, *, everyone: bool, fault: Fault, after: int) -> Outcome:
        """A checkpoint of the writer's own timeline or of everyone's; the fault strikes after so many PUTs."""

        def checkpoint() -> None:
            self._writer.checkpoint(scope="all" if everyone else "own")

        return self._attempt(checkpoint, fault, after=after)

    def restore(self, table: str, version: str, *, fault: Fault, after: int) -> Outcome:
        """Make a table what it was, but for rows whose data may be gone; the fault strikes after so many PUTs."""

        def restore() -> Told | None:
            database = self._catalog.database(DATABASE)
            done = restoring.restore(database, self._writer, table, None, version, skip_collected=True)
            assert done.committed is None or done.put + done.updated + done.deleted > 0
            return None

        return self._attempt(restore, fault, after=after)

    def _attempt(self, action: Callable[[], Told | None], fault: Fault, *, after: int = 0, of_segments: bool = True) -> Outcome:
        refused = stopped = lost = False
        told = None
        self.view.arm(fault, after=after, of_segments=of_segments)
        try:
            told = action()
        except (StoreUnavailable, DataCollected, ParentEnded):
            refused = True
        except ForeignBranch:
            stopped = True
        except (SimulatedCrash, CommitUnknown, OutcomeUnknown):
            lost = True
        finally:
            published = self.view.disarm()
        return Outcome(published, told, refused=refused, stopped=stopped, lost=lost)

    def read(self, *, timestamp: int | None = None, version: str | None = None) -> str:
        """Take a snapshot; whatever is committed from now on comes after it. Returns its version."""
        return str(snapshot_of(self._catalog, timestamp, version).version)

    def close(self) -> None:
        """End in good order."""
        self._writer.close()


def _kind(addressed: Addressed) -> tuple[Any, ...]:
    """What neighbouring events must have in common to be given to the engine in one call."""
    draft = addressed.draft
    return draft.op, draft.table, draft.expect, draft.moved, draft.version is None, addressed.id is None, addressed.data_of


def _add(tx: Any, alike: list[Addressed]) -> None:
    """Give events of one kind to a transaction: one as a dict, two as an Arrow table, more as a list."""
    first = alike[0].draft
    rows = [_given(it) for it in alike]
    expect = {} if first.expect is None else {"expect": first.expect}
    if first.op is Op.PUT and alike[0].data_of is not None:
        key, version = alike[0].data_of
        tx.put(first.table, _several(rows), data_of={**dict(zip(KEYS[first.table], key, strict=True)), "_version": version})
    elif first.op is Op.PUT:
        tx.put(first.table, _several(rows), **expect)
    elif first.op is Op.UPDATE:
        tx.update(first.table, _several(rows))
    elif first.op is Op.PURGE:
        tx.purge(first.table, _several(rows))
    else:
        tx.delete(first.table, _several(rows), **expect, **({"moved": True} if first.moved else {}))


def _given(addressed: Addressed) -> dict[str, Any]:
    draft = addressed.draft
    named = {} if draft.version is None else {"_version": draft.version}
    key = dict(zip(KEYS[draft.table], draft.key, strict=True))
    given = {**key, **(draft.row or {}), **(named if addressed.id is None else {"id": addressed.id})}
    if addressed.derived:
        del given["id"]
    return given


def _several(rows: list[dict[str, Any]]) -> Any:
    if len(rows) == 1:
        return rows[0]
    if len(rows) > 2:
        return rows
    columns = {name: [row.get(name) for row in rows] for row in rows for name in row}
    return pa.table({name: pa.array(values, TIME if name in TIMES else None) for name, values in columns.items()})


@contextmanager
def quiet() -> Iterator[None]:
    """Forks are what these histories are about, so the warnings about them are not errors here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
