"""Reading the log's files: what lies where, each file checked against the name it lies under.

Files are immutable, so what was read once is kept (up to a bound); listings are never kept. That something was read does not say that it is
there: whoever copies or deletes by what is there asks the store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, Self, TypeVar

from .. import limits
from ..cache import LruCache
from ..clock import uuid7_time
from ..errors import UNREADABLE, BucketCatalogError, CorruptionError, MissingObject, ObjectNotFound
from ..format.checkpoints import Checkpoint, decode_checkpoint
from ..format.losses import STRICT, OnDamage
from ..format.records import Boundary, SetAside
from ..format.runs import SegmentReference
from ..format.transactions import Transaction, decode_transaction
from ..model import paths
from ..model.cuts import Head, Ref
from ..model.names import COMPACTOR_PREFIX, MAINTAINER_PREFIX, is_name
from ..model.paths import LogFile
from ..parallel import in_order
from ..store.base import Store
from .aside import stand_in
from .segments import read_index
from .trust import as_counted, checkpoint_as_counted, counts, is_trusted

_KEPT_BYTES = 64 << 20
_FEW = 4
Item = TypeVar("Item")
Result = TypeVar("Result")


class LogFiles:
    """The log of one database in a store. ``on_damage`` says what becomes of what cannot be read.

    ``asides`` is what is known of transactions that were set aside: one that is gives what stands in for it, whatever its file holds.
    """

    on_damage: OnDamage = STRICT
    asides: Mapping[Ref, SetAside] = {}

    def __init__(self, store: Store, database: str) -> None:
        self.store = store
        self.database = database
        self._only_trusted = False
        self._kept: LruCache[str, Transaction | Checkpoint] = LruCache(_KEPT_BYTES, lambda file: file.size)

    def __reduce__(self) -> tuple[Any, ...]:
        return made_again, (LogFiles, (self.store, self.database), dict(self.asides), self._only_trusted)

    def aware(self, asides: Mapping[Ref, SetAside]) -> Self:
        """The same log where this, and nothing else, is known of what was set aside."""
        return self if asides == self.asides else self._changed(asides=asides)

    def is_aside(self, writer: str, head: Head) -> bool:
        """Whether the transaction counts as one without events."""
        entry = self.asides.get(Ref(writer, head)) if self.asides else None
        return entry is not None and not entry.taken_in

    def of_trusted(self) -> Self:
        """The same log with the checkpoints of compactors and maintainers alone, for who merges for everybody, or deletes.

        What a plain writer's checkpoint says of its own past nobody can compare with what it said then, once its transactions are gone.
        """
        return self._changed(_only_trusted=True)

    def _changed(self, **changes: Any) -> Self:
        """The same log, and what was read of it, but for what is changed."""
        twin = object.__new__(type(self))
        vars(twin).update(vars(self), **changes)
        return twin

    def time_for(self, writer: str) -> int:
        """The store's time in microseconds for one who writes as ``writer``; a ``StoreError`` where it cannot be learnt."""
        return self.store.now_us(paths.transactions_prefix(writer, self.database))

    def writers(self) -> list[str]:
        """Everything that could be a writer's prefix, one request."""
        return [name for name in self.store.list_prefixes("") if is_name(name)]

    def trusted(self) -> list[str]:
        """Those of them that can speak for others, two requests; no other's prefix is looked into, whatever is in the way there."""
        found = (self.store.list_prefixes("", begin=role) for role in (COMPACTOR_PREFIX, MAINTAINER_PREFIX))
        return [name for names in found for name in names if is_name(name)]

    @property
    def is_of_trusted(self) -> bool:
        """Whether it is for who merges for everybody, or deletes."""
        return self._only_trusted

    def heeds(self, boundary: Boundary) -> bool:
        """Whether what the boundary says of the history counts; where none does nothing is known to have been pruned."""
        return True

    def timeline(self, writer: str, from_revision: int = 0) -> Iterator[LogFile]:
        """The files on the writer's timeline from a revision on, in order of revision."""
        prefix = paths.transactions_prefix(writer, self.database)
        after = paths.revision_start(writer, self.database, from_revision) if from_revision > 0 else ""
        for info in self.store.list(prefix, after=after):
            file = paths.parse_log_file(prefix, info.name)
            if file is not None:
                yield file

    def transactions(self, writer: str, from_revision: int = 0) -> Iterator[Head]:
        """The transactions on the writer's timeline from a revision on."""
        for file in self.timeline(writer, from_revision):
            if file.is_transaction:
                yield file.head

    def at_revision(self, writer: str, revision: int) -> list[Head]:
        """The transactions at one revision of the writer's timeline."""
        return [file.head for file in self._at(writer, revision) if file.is_transaction]

    def is_there(self, writer: str, head: Head) -> bool:
        """Whether the transaction lies in the store now."""
        return self._is_stored(paths.transaction(writer, self.database, head))

    def may_be_named(self, writer: str, head: Head) -> bool:
        """Whether a plain writer's checkpoint counts that names the transaction as read: it is there."""
        return self.is_there(writer, head)

    def is_marked(self, writer: str, head: Head) -> bool:
        """Whether a marker leads to the checkpoint now: ``repair`` takes it from those that are damaged."""
        return self._is_stored(paths.newest_marker(writer, self.database, head))

    def marked_at(self, writer: str, head: Head) -> int:
        """The store's time in microseconds at which the checkpoint's marker was put; ``ObjectNotFound`` where it has none."""
        return self.store.head(paths.newest_marker(writer, self.database, head)).modified_us

    def _is_stored(self, name: str) -> bool:
        try:
            self.store.head(name)
        except ObjectNotFound:
            return False
        return True

    def checkpoints_at(self, writer: str, revision: int) -> list[Head]:
        """The checkpoints at one revision of the writer's timeline, whether or not they have markers."""
        return [file.head for file in self._at(writer, revision) if not file.is_transaction]

    def _at(self, writer: str, revision: int) -> Iterator[LogFile]:
        prefix = paths.transactions_prefix(writer, self.database)
        below = self.store.list(paths.revision_prefix(writer, self.database, revision))
        return (file for info in below if (file := paths.parse_log_file(prefix, info.name)) is not None)

    def checkpoints(self, writer: str) -> Iterator[Head]:
        """The writer's checkpoints, those at the largest revision first; a short request for the first few, which are mostly enough."""
        if self._only_trusted and not is_trusted(writer):
            return
        prefix = paths.newest_prefix(writer, self.database)
        first = list(self.store.list(prefix, limit=_FEW))
        rest = self.store.list(prefix, after=first[-1].name) if len(first) == _FEW else ()
        for info in chain(first, rest):
            file = paths.parse_newest_marker(prefix, info.name)
            if file is not None:
                yield file.head

    @property
    def concurrency(self) -> int:
        """How many files it pays to ask for at once."""
        return self.store.concurrency

    def map(self, ask: Callable[[LogFiles, Item], Result], items: Sequence[Item]) -> list[Result]:
        """What ``ask`` gives for each item, asked at once for as many as pay for the store."""
        return list(in_order(lambda item: ask(self, item), items, threads=self.concurrency))

    def in_turn(self, refs: Sequence[Ref]) -> Iterator[Transaction]:
        """The transactions one after the other, several asked for at once; ``MissingObject`` or ``CorruptionError`` as for one."""
        return in_order(lambda ref: self.transaction(*ref), refs, threads=self.concurrency)

    def fetched(self, refs: Sequence[Ref]) -> list[Transaction]:
        """The same, all of them at a time."""
        return list(self.in_turn(refs))

    def read_ahead(self, refs: Sequence[Ref]) -> None:
        """Read transactions that will be asked for one after the other where that would take long; they are kept for a while.

        What cannot be read is no error before it is asked for.
        """
        with suppress(BucketCatalogError):
            for _ in self.in_turn(refs):
                pass

    def transaction(self, writer: str, head: Head) -> Transaction:
        """The transaction, or ``MissingObject`` or ``CorruptionError`` naming its file; what stands in for one that was set aside."""
        if self.is_aside(writer, head):
            return stand_in(self.asides[Ref(writer, head)], self.database)
        return self.as_stored(writer, head)

    def as_stored(self, writer: str, head: Head) -> Transaction:
        """The transaction as its file tells it, set aside or not; errors as ``transaction``."""
        name = paths.transaction(writer, self.database, head)
        found: Transaction = self._read(name, "a transaction", lambda data: self._checked_transaction(data, name, writer, head))
        return found

    def stored_transaction(self, writer: str, head: Head) -> tuple[Transaction, bytes]:
        """The transaction and its bytes as they lie in the store now, whatever was read before; errors as ``transaction``."""
        name = paths.transaction(writer, self.database, head)
        data = self._get(name, "a transaction")
        if self.is_aside(writer, head):
            return self.transaction(writer, head), data
        return self._checked_transaction(data, name, writer, head), data

    def checkpoint(self, writer: str, head: Head) -> Checkpoint:
        """The checkpoint, or ``MissingObject`` or ``CorruptionError`` naming its file."""
        name = paths.checkpoint(writer, self.database, head)
        found: Checkpoint = self._read(name, "a checkpoint", lambda data: self._checked_checkpoint(data, name, writer, head))
        return found

    def usable_checkpoint(self, writer: str, head: Head) -> Checkpoint | None:
        """The checkpoint, or None where it is to be passed over, as one that ``counts`` for nobody is; errors as ``checkpoint``."""
        found = self.checkpoint(writer, head)
        return found if counts(found) else None

    def newest_of_everybody(self, maker: str, limit: int | None = None) -> Checkpoint | None:
        """The maker's newest checkpoint of others' timelines too, up to a commit time; those that cannot be read are passed over."""
        for head in self.checkpoints(maker):
            if limit is None or head.commit_time <= limit:
                with suppress(*UNREADABLE):
                    found = self.usable_checkpoint(maker, head)
                    if found is not None and set(found.cut.heads) != {maker}:
                        return found
        return None

    def unreadable_segment(self, of: Checkpoint | Transaction) -> BucketCatalogError | None:
        """Why the index of one of its segments cannot be read, or None; one request a segment, several at once."""
        return next((error for error in self.map(_index_error, of.segments) if error is not None), None)

    def refuse(self, transaction: Transaction, why: str, *, next_step: str | None = None) -> Transaction:
        """``CorruptionError`` for a transaction that is not the one that others refer to."""
        name = paths.transaction(transaction.writer, self.database, transaction.head)
        raise CorruptionError(f"{name} {why}", next_step=next_step)

    def keep(self, name: str, value: Transaction | Checkpoint) -> None:
        """Remember a file that was just written or read."""
        self._kept.put(name, value)

    def _read(self, name: str, holds: str, decode: Callable[[bytes], Any]) -> Any:
        known = self._kept.get(name)
        if known is not None:
            return known
        value = decode(self._get(name, holds))
        self.keep(name, value)
        return value

    def _get(self, name: str, holds: str) -> bytes:
        try:
            return self.store.get(name, most=limits.LOG_FILE_BYTES + 1)
        except ObjectNotFound:
            lost = MissingObject(f"{name} is gone. It held {holds}.")
            lost.name = name
            raise lost from None

    def _checked_transaction(self, data: bytes, name: str, writer: str, head: Head) -> Transaction:
        transaction = decode_transaction(data, name)
        self._check_identity(transaction, name, writer, head)
        if transaction.commit_time != uuid7_time(transaction.uuid):
            raise CorruptionError(f"{name} has a commit time that is not its uuid's.")
        return as_counted(transaction, name)

    def _checked_checkpoint(self, data: bytes, name: str, writer: str, head: Head) -> Checkpoint:
        checkpoint = decode_checkpoint(data, name)
        self._check_identity(checkpoint, name, writer, head)
        return checkpoint_as_counted(checkpoint)

    def _check_identity(self, file: Transaction | Checkpoint, name: str, writer: str, head: Head) -> None:
        if (file.writer, file.database, file.revision, file.uuid) != (writer, self.database, head.revision, head.uuid):
            raise CorruptionError(
                f"{name} holds {file.writer}/{file.database} revision {file.revision}: another file lies under this name.",
            )


def made_again(
    kind: Callable[..., LogFiles], place: tuple[Any, ...], asides: Mapping[Ref, SetAside], only_trusted: bool = False
) -> LogFiles:
    """What was pickled."""
    files = kind(*place).aware(asides)
    return files.of_trusted() if only_trusted else files


def _index_error(files: LogFiles, reference: SegmentReference) -> BucketCatalogError | None:
    try:
        read_index(files.store, files.database, reference)
    except UNREADABLE as error:
        return error
    return None


class ChosenFiles(LogFiles):
    """The log with those checkpoints only that ``chosen`` says yes to."""

    def __init__(self, store: Store, database: str, chosen: Callable[[Ref], bool]) -> None:
        super().__init__(store, database)
        self._chosen = chosen

    def checkpoints(self, writer: str) -> Iterator[Head]:
        """The writer's checkpoints that were chosen, those at the largest revision first."""
        return (head for head in super().checkpoints(writer) if self._chosen(Ref(writer, head)))


class FilesWithout(ChosenFiles):
    """The log without the ``broken`` checkpoints: nobody finds them, nor can the horizon have one of them for its own."""

    def __init__(self, store: Store, database: str, broken: Collection[Ref]) -> None:
        super().__init__(store, database, lambda ref: ref not in broken)
        self._broken = broken

    def checkpoint(self, writer: str, head: Head) -> Checkpoint:
        """The checkpoint, or ``CorruptionError`` naming its file, also where only its segments are damaged."""
        found = super().checkpoint(writer, head)
        if (writer, head) in self._broken:
            name = paths.checkpoint(writer, self.database, head)
            raise CorruptionError(
                f"{name} cannot be used, for what it refers to is damaged or gone.",
                next_step="Restore that from a copy of the store.",
            )
        for reference in found.segments:  # what an earlier repair has dropped is not among those that are broken
            read_index(self.store, self.database, reference)
        return found
