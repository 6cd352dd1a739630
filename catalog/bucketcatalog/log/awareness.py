"""Getting to know what is set aside, while a view is looked for: before any file is decoded that may be set aside.

Maintainers' transactions are fetched first. What they say, and what the checkpoints say that cover some of them, is all there is to know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..errors import UNREADABLE
from ..format.checkpoints import Checkpoint
from ..format.transactions import Transaction
from ..model.cuts import Ref
from ..model.names import is_maintainer
from ..model.paths import LogFile
from .aside import Asides, counting, entries_of
from .coverage import Covered
from .files import LogFiles
from .horizon import Horizon


def aware_of(
    covered: Covered, candidates: Iterable[Checkpoint], timelines: Mapping[str, tuple[int, Sequence[LogFile]]]
) -> Covered:
    """The same, by files that know what is set aside by what they knew, the candidates, and what the maintainers' timelines have beside.

    What cannot be read of these is met by whoever needs it.
    """
    files = covered.files
    refs: list[Ref] = []
    for writer in filter(is_maintainer, timelines):
        first, timeline = timelines[writer]
        heads = [file.head for file in timeline if file.is_transaction]
        covered.know(writer, heads, first)
        refs += [Ref(writer, head) for head in heads if not covered.holds(writer, head)]
    told = (found for found in files.map(_if_whole, refs) if found is not None)
    asides = settled(files, counting([*files.asides.values(), *entries_of(told, candidates)]), covered.horizon)
    aware = files.aware(asides)
    return covered if aware is files else Covered(aware, covered.checkpoints, covered.horizon)


def _if_whole(files: LogFiles, ref: Ref) -> Transaction | None:
    try:
        return files.as_stored(*ref)
    except UNREADABLE:
        return None


def settled(files: LogFiles, asides: Asides, horizon: Horizon | None) -> Asides:
    """What counts of these entries beside a ``horizon``: of what its checkpoint covers what that says, and no other."""
    within = [ref for ref in asides if horizon is not None and ref.head.revision <= horizon.cut.newest_revision(ref.writer)]
    if horizon is None or not within or not horizon.is_readable:
        return asides
    said = {entry.ref: entry for entry in horizon.checkpoint.asides}
    covered = Covered(files.aware(asides), [horizon.checkpoint], horizon)
    fixed = {ref for ref in within if asides[ref] != said.get(ref) and covered.holds(*ref)}
    return {ref: said[ref] if ref in fixed else entry for ref, entry in asides.items() if ref not in fixed or ref in said}
