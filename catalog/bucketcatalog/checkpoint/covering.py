"""How a checkpoint of a view is to say which transactions it covers."""

from __future__ import annotations

from collections import Counter

from ..format.checkpoints import Coverage
from ..log.coverage import Covered
from ..log.files import LogFiles
from ..log.timeline import LOOK_WITHIN, MAX_CLOCK_SKEW
from ..log.view import View
from ..model.cuts import Head


def coverages(files: LogFiles, view: View, oldest: int) -> dict[str, Coverage]:
    """For each writer the transactions that may still be joined by late ones, by name, and the branches before these."""
    coverages = {}
    long_ago = oldest - LOOK_WITHIN - MAX_CLOCK_SKEW
    earlier = Covered(files, [checkpoint for checkpoint in view.checkpoints if checkpoint.created < long_ago], view.horizon)
    covered = Covered(files, view.checkpoints, view.horizon)
    for writer in view.cut.heads:
        known = _known(covered, view, writer)
        branches = _branches(known, view, writer)
        recent = [head for head in known if head.commit_time >= oldest and (writer, head) not in view.voids]
        # A head may have arrived a moment ago, however old it is: then another process that has not seen it may be about to publish
        # a transaction of the same revision. What has followers or was covered long ago had arrived long ago.
        unsure = [head for head in view.cut.of_writer(writer) if not earlier.holds(writer, head)]
        list_from = min((head.revision for head in (*recent, *unsure)), default=view.cut.newest_revision(writer) + 1)
        coverages[writer] = Coverage(
            list_from=list_from,
            recent=frozenset(head for head in known if head.revision >= list_from),
            branches=frozenset(head for head in branches if head.revision < list_from),
            newest_commit_time=max((h.commit_time for h in known if (writer, h) not in view.voids), default=0),
            transactions=_transactions(covered, view, writer),
        )
    return coverages


def _known(covered: Covered, view: View, writer: str) -> set[Head]:
    """Every transaction of the writer in the view's cut, as far as it is there or somebody has named it."""
    tail = {t.head for t in view.tail if t.writer == writer}
    listed = set(covered.files.transactions(writer))
    covered.know(writer, listed)
    named = {h for c in view.checkpoints if writer in c.coverage for h in c.coverage[writer].recent | c.coverage[writer].branches}
    return tail | named | set(view.cut.of_writer(writer)) | {head for head in listed - tail if covered.holds(writer, head)}


def _branches(known: set[Head], view: View, writer: str) -> set[Head]:
    """Those that cannot be told by being alone at their revision: there are several, or others may have been deleted."""
    count = Counter(head.revision for head in known)
    floor = view.horizon.floor(writer) if view.horizon is not None else 0
    earlier = {head for c in view.checkpoints if writer in c.coverage for head in c.coverage[writer].branches}
    earlier |= {head for c in view.checkpoints for head in c.cut.of_writer(writer) if head.revision < floor}
    late = {t.head for t in view.tail if t.writer == writer and t.revision < floor}
    return {head for head in known if count[head.revision] > 1} | earlier | late


def _transactions(covered: Covered, view: View, writer: str) -> int:
    """How many transactions of the writer are covered, deleted ones too."""
    before = max((c.coverage[writer].transactions for c in view.checkpoints if writer in c.coverage), default=0)
    new = {t.head for t in view.tail if t.writer == writer}
    return before + len(new | {head for head in view.cut.of_writer(writer) if not covered.holds(writer, head)})
