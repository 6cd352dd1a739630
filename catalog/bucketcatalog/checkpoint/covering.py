"""What a checkpoint says that it covers, so that readers list no more of a timeline than they must, and miss nothing that arrives late.

It is said of each timeline by the transactions that are there, those that earlier checkpoints named, and how long they have lain there.
``plan`` asks for it once it is decided what the checkpoint is made from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set

from .. import limits
from ..format.checkpoints import Checkpoint, Coverage
from ..log.aside import set_aside
from ..log.coverage import Covered
from ..log.files import LogFiles
from ..log.view import LogView
from ..model.cuts import Head


def coverages(
    files: LogFiles, view: LogView, oldest: int, *, beside: Checkpoint | None = None, first: int = 0
) -> dict[str, Coverage]:
    """For each writer the transactions that may still be joined by late ones, by name, and the branches before these.

    What is covered by the checkpoint ``beside`` is not, and before the ``first`` revision nothing that is not named.
    """
    coverages = {}
    held = Covered(files, [beside] if beside is not None else [], view.horizon)
    long_ago = oldest - limits.LOOK_WITHIN - limits.MAX_CLOCK_SKEW
    earlier = [checkpoint.cut for checkpoint in view.checkpoints if checkpoint.created < long_ago]
    covered = Covered(files, view.checkpoints, view.horizon)
    for writer in view.cut.heads:
        listed = set(files.transactions(writer))
        covered.know(writer, listed)
        held.know(writer, listed)
        known = {head for head in _known(covered, view, writer, listed) if not held.holds(writer, head)}
        branches = _branches(known, view, writer, first)
        recent = [head for head in known if head.commit_time >= oldest and (writer, head) not in view.voids]
        # What lies there and is not covered, such as the other branch of a fork that came after the horizon, nobody else finds for readers.
        left_out = {head for head in listed - known if not held.holds(writer, head)}
        # A transaction may have arrived a moment ago, however old it is and whoever follows it: then another process that has not seen it
        # may be about to publish one of the same revision. What had been there long ago, for it was covered or followed by then, that
        # process has seen: it comes after it.
        was_covered = max((cut.newest_revision(writer) for cut in earlier), default=-1)
        was_followed = max((head.revision for head in known if head.commit_time < long_ago), default=0) - 1
        list_from = min((max(was_covered, was_followed) + 1, *(head.revision for head in (*recent, *left_out))))
        coverages[writer] = Coverage(
            list_from=list_from,
            recent=frozenset(head for head in known if head.revision >= list_from),
            branches=frozenset(head for head in branches if head.revision < list_from),
            newest_commit_time=max((h.commit_time for h in known if (writer, h) not in view.voids), default=0),
            transactions=_transactions(covered, view, writer),
            first_revision=first,
        )
    return coverages


def _known(covered: Covered, view: LogView, writer: str, listed: Set[Head]) -> set[Head]:
    """Every transaction of the writer in the view's cut, as far as it is there, as ``listed``, or somebody has named it."""
    tail = {t.head for t in view.tail if t.writer == writer}
    named = {h for c in view.checkpoints if writer in c.coverage for h in c.coverage[writer].recent | c.coverage[writer].branches}
    return tail | named | set(view.cut.of_writer(writer)) | {head for head in listed - tail if covered.holds(writer, head)}


def _branches(known: set[Head], view: LogView, writer: str, first: int) -> set[Head]:
    """Those that are not known by being alone at their revision: there are several, or others may have been deleted."""
    count = Counter(head.revision for head in known)
    floor = view.horizon.floor(writer) if view.horizon is not None else 0
    earlier = {head for c in view.checkpoints if writer in c.coverage for head in c.coverage[writer].branches}
    earlier |= {head for c in view.checkpoints for head in c.cut.of_writer(writer) if head.revision < floor}
    late = {t.head for t in view.tail if t.writer == writer and t.revision < floor}
    aside = {ref.head for ref in set_aside(view.asides.values()) if ref.writer == writer} & known  # which need not be there
    return {head for head in known if count[head.revision] > 1 or head.revision < first} | earlier | late | aside


def _transactions(covered: Covered, view: LogView, writer: str) -> int:
    """How many transactions of the writer are covered, deleted ones too."""
    before = max((c.coverage[writer].transactions for c in view.checkpoints if writer in c.coverage), default=0)
    new = {t.head for t in view.tail if t.writer == writer}
    return before + len(new | {head for head in view.cut.of_writer(writer) if not covered.holds(writer, head)})
