"""Transactions from one cut back to another, or to where one may stop: what lies between, and what a cut rests on.

They are walked back from the heads, parent by parent, and asked for several at once where that pays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from ..errors import UNREADABLE, BucketCatalogError, MissingObject
from ..format.transactions import Transaction
from ..model.cuts import Cut, Ref
from .coverage import Covered
from .files import LogFiles
from .horizon import Horizon, begin_anew
from .view import LogView, missed


def transactions_between(
    files: LogFiles, start: LogView, end: Cut, met: Callable[[Transaction], None] | None = None
) -> list[Transaction]:
    """The transactions in the cut ``end`` and not in the view ``start``, by stamp; ``HistoryPruned`` where some may have been deleted.

    ``met`` is as of ``back_to``, and may be given branches that are not in the cut.
    """
    covered = refuse_pruned(files, start)
    tail = {t.ref for t in start.tail}
    known: dict[Ref, Transaction] = {}
    for writer in end.heads:
        with suppress(BucketCatalogError):  # what cannot be read is no error before it is asked for
            ahead = covered.ahead(writer, start.cut.newest_revision(writer) + 1, end.newest_revision(writer))
            for t in files.in_turn(ahead):
                known[t.ref] = _taken(t, met)
    return back_to(files, end, lambda ref: ref in tail or covered.holds(*ref), met=met, known=known)


def refuse_pruned(files: LogFiles, start: LogView) -> Covered:
    """What the view covers; ``HistoryPruned`` where something that was committed after its cut may have been deleted."""
    covered = Covered(files, start.checkpoints, start.horizon)
    if start.horizon is not None and not any(map(covered.reaches, start.checkpoints)):
        what = f"The version {start.cut}" if start.cut.heads else "The beginning"
        raise start.horizon.refusal(what, begin_anew())
    return covered


def still_there(files: LogFiles, view: LogView) -> list[Transaction]:
    """The transactions in the view's cut that have not been deleted, by stamp."""
    for writer in view.cut.heads:
        Covered(files, ()).read_ahead(writer, 0, view.cut.newest_revision(writer))
    return back_to(files, view.cut, lambda _: False, view.horizon)


def rests_on_what_is_gone(files: LogFiles, cut: Cut, horizon: Horizon) -> bool:
    """Whether transactions of the cut were deleted before the horizon, and no other is missing: a damaged one may be put back."""
    covered = Covered(files, (), horizon)
    missing: list[Ref] = []
    done: set[Ref] = set()
    pending = list(cut.refs())
    while pending:
        ref = pending.pop()
        if ref in done:
            continue
        done.add(ref)
        try:
            pending += files.transaction(*ref).parent_refs
        except MissingObject:
            missing.append(ref)
    return bool(missing) and all(covered.is_gone(*ref) for ref in missing)


def blamed(files: LogFiles, error: MissingObject, cut: Cut, horizon: Horizon | None) -> MissingObject:
    """The error for what is gone, with who in the cut refers to it, be that covered or not."""
    try:
        return missed(error, {t.ref: t for t in back_to(files, cut, lambda ref: not files.is_there(*ref), horizon)})
    except UNREADABLE:
        return error


def back_to(
    files: LogFiles,
    cut: Cut,
    stops_at: Callable[[Ref], bool],
    horizon: Horizon | None = None,
    met: Callable[[Transaction], None] | None = None,
    known: Mapping[Ref, Transaction] | None = None,
) -> list[Transaction]:
    """The transactions from a cut's heads back to where it stops; with a ``horizon`` also to what is gone before that.

    Who takes each with its events as it is ``met`` gets them without: there may be more of these than fit into memory. Those that are
    ``known`` were met already.
    """
    known = {} if known is None else known
    found: dict[Ref, Transaction] = {}
    done: set[Ref] = set()
    pending = list(cut.refs())
    while pending:
        ref = pending.pop()
        if ref in done or stops_at(ref):
            continue
        done.add(ref)
        try:
            transaction = known[ref] if ref in known else _taken(files.transaction(*ref), met)
        except MissingObject as error:
            if horizon is None or ref.head.revision >= horizon.floor(ref.writer):
                raise missed(error, found) from None
            continue
        found[ref] = transaction
        pending += transaction.parent_refs
    return sorted(found.values(), key=lambda transaction: transaction.stamp)


def _taken(transaction: Transaction, met: Callable[[Transaction], None] | None) -> Transaction:
    """The transaction as it is kept once it was met."""
    if met is None:
        return transaction
    met(transaction)
    return transaction.without_events()
