"""What is broken: the checkpoints that cannot be trusted by what a walk over a database has found, and what is lost with them.

Repair decides by it what is done without, before anything is written. What a damaged file held is lost only where it is nowhere else:
in the transactions, in another checkpoint, or in the segments of the same one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from ..errors import UNREADABLE, BucketCatalogError
from ..format.records import TagEntry
from ..log.ancestry import version_view
from ..log.coverage import Covered
from ..log.files import FilesWithout, LogFiles
from ..log.horizon import Horizon
from ..log.trust import is_trusted
from ..log.view import LogView
from ..model import paths
from ..model.cuts import Cut, Ref
from ..model.paths import FileKind
from ..model.uuids import uuid_text
from .rebuild import Rebuilt
from .verify.checkpoints import References
from .verify.files import may_be_of_tag
from .verify.findings import Finding, Severity
from .verify.walk import Walk
from .without import Remains

_OF_CHECKPOINTS = {"DAMAGED_CHECKPOINT", "MISSING_CHECKPOINT", "WRONG_CHECKPOINT", "DIFFERENT_STATE"}
_OF_SEGMENTS = {"DAMAGED_SEGMENT", "MISSING_SEGMENT", "DAMAGED_BLOCK", "WRONG_BLOCK"}
_OF_TRANSACTIONS = {"DAMAGED_TRANSACTION", "MISSING_TRANSACTION", "BROKEN_CHAIN", "DAMAGED_EVENTS"}


def broken_checkpoints(walk: Walk, findings: Iterable[Finding]) -> dict[Ref, str]:
    """The checkpoints that cannot be trusted, and why."""
    found: dict[Ref, str] = {}
    for finding in findings:
        if finding.severity is not Severity.ERROR:
            continue
        names: list[str] = []
        if _is_of(finding, FileKind.CHECKPOINT, _OF_CHECKPOINTS):  # a run that it holds itself too
            names = [finding.file]
        elif _is_of(finding, FileKind.SEGMENT, _OF_SEGMENTS):
            names = list(_referring(walk, finding.file))
        for name in names:
            ref = _named(walk, name, FileKind.CHECKPOINT)
            if ref is not None:
                found.setdefault(ref, finding.message if finding.file == name else _of_part(finding))
    return found


def _is_of(finding: Finding, kind: FileKind, codes: Collection[str]) -> bool:
    """Whether something is wrong with a file of this kind, as the code says or the name."""
    return finding.code in codes or paths.kind_of(finding.file) is kind


def _of_part(finding: Finding) -> str:
    """Why a checkpoint cannot be trusted that refers to a segment of which this was found."""
    text = f"{finding.message[0].lower()}{finding.message[1:]}"
    return f"Its segment {finding.file} cannot be used: {text}"


def _referring(walk: Walk, name: str) -> Sequence[str]:
    """The files that refer to the segment of this name."""
    found = paths.parse(name)
    if found is None or found.segment is None or found.database != walk.files.database:
        return ()
    return walk.segments.get((found.writer, found.segment), References()).by


def _named(walk: Walk, name: str, kind: FileKind) -> Ref | None:
    """The transaction or checkpoint of the database that has this name."""
    found = paths.parse(name)
    if found is None or found.log_file is None or (found.database, found.log_file.kind) != (walk.files.database, kind):
        return None
    return Ref(found.writer, found.log_file.head)


def newer(walk: Walk, findings: Iterable[Finding], broken: Collection[Ref]) -> dict[Ref, str]:
    """Why some of the broken checkpoints are left alone though they cannot be read: a newer release can.

    Not so a plain writer's: what is there beside it says the same, and anybody may say that a file of its own is from tomorrow.
    """
    newer = {finding.file for finding in findings if finding.code == "UNSUPPORTED_FORMAT"}
    why = "A newer release has written it: repair with that."
    return {ref: why for ref in broken if is_trusted(ref.writer) and walk.name_of(ref) in newer}


def lost(
    walk: Walk,
    findings: Sequence[Finding],
    left: Remains,
    without: FilesWithout,
    again: Rebuilt | None,
    dropped: Mapping[Ref, str],
    kept: Collection[Cut],
) -> Iterator[Finding]:
    """All that is lost of a database of which this is ``left`` beside its broken checkpoints.

    ``again`` is the checkpoint that is made again, ``dropped`` are those that are dropped and why, and ``kept`` the cuts of tags for which
    another one is written.
    """
    yield from _lost_entries(findings, again)
    yield from _lost_history(without, walk, dropped)
    yield from _lost_tags(without, walk, findings, dropped)
    mended = {walk.name_of(ref) for ref in dropped} | {walk.name_of(c.ref) for c in walk.checkpoints if c.cut in kept}
    yield from _lost_else(walk, findings, left.view, mended, is_rebuilt=again is not None)


def rest_of(again: Rebuilt) -> str:
    """What becomes of that in a lost checkpoint which is not in its segments."""
    if not again.lost_entries:
        return "and what is left of the log has the rest"
    return f"but the tags, voids, boundaries and results of {' and '.join(map(str, again.lost_entries))} are lost"


def _lost_entries(findings: Iterable[Finding], again: Rebuilt | None) -> Iterator[Finding]:
    """The checkpoint that is made again, where not all that it said of the catalog itself is known."""
    if again is not None and again.lost_entries:
        uuid = uuid_text(again.uuid)
        known = [f for f in findings if f.code in _OF_CHECKPOINTS and uuid in f.file]
        of = known[0] if known else Finding("MISSING_CHECKPOINT", uuid, "It is gone.")
        yield replace(
            of, message=f"{of.message} It is made again: its rows are there, {rest_of(again)}.", held=again.lost_entries
        )


def _lost_history(files: FilesWithout, walk: Walk, dropped: Mapping[Ref, str]) -> Iterator[Finding]:
    """What is lost with the horizon's own checkpoint, where that is dropped and no other is of its cut; ``dropped`` say why they are."""
    link = walk.horizon.boundary.checkpoint if walk.horizon is not None else None
    if walk.horizon is None or link is None or link.ref not in dropped:
        return
    try:
        version_view(files, walk.horizon.cut, Horizon(walk.horizon.boundary, files))
    except UNREADABLE:
        text = f"{dropped[link.ref]} Versions between the horizon and a later checkpoint are lost with it."
        yield Finding("UNREADABLE_HISTORY", walk.name_of(link.ref), text)


def _lost_tags(files: FilesWithout, walk: Walk, findings: Sequence[Finding], dropped: Mapping[Ref, str]) -> Iterator[Finding]:
    """What is lost with the checkpoints that tags alone need, for there is no other of their cuts and their transactions are gone.

    Markers lead to them since they are also the first of their maintainers; who reads a tag meets them without.
    """
    cuts = {checkpoint.ref: checkpoint.cut for checkpoint in walk.checkpoints}
    for tag, _ in walk.gone_of_tags(files, walk.tagged.values() if dropped else ()):
        for ref, why in dropped.items():
            if may_be_of_tag(ref, [tag.cut]) and cuts.get(ref, tag.cut) == tag.cut:
                name = walk.name_of(ref)
                of = next((f for f in findings if f.file == name), Finding("DAMAGED_CHECKPOINT", name, why))
                yield replace(of, message=f"{why} What the tag {tag.name!r} names is lost with it.")


def kept_again(left: LogFiles, walk: Walk, broken: Collection[Ref]) -> Iterator[TagEntry]:
    """The latest tags of cuts whose own checkpoints are broken, where what is ``left`` has all of them, as during the grace period.

    Of one that can be looked into, who reads the tag meets damaged blocks only then; else the transactions are read instead.
    """
    for checkpoint in walk.checkpoints:
        tag = walk.tagged.get(checkpoint.cut)
        if tag is not None and checkpoint.ref in broken and not walk.is_marked(checkpoint.ref):
            with suppress(BucketCatalogError):
                if version_view(left, tag.cut).cut == tag.cut:  # by no other that was made for it: that may be damaged too
                    yield tag


def _lost_else(
    walk: Walk, findings: Iterable[Finding], view: LogView | None, dropped: Collection[str], *, is_rebuilt: bool
) -> Iterator[Finding]:
    """What cannot be brought back: errors that are not mended by dropping checkpoints."""
    dropped = set(dropped)
    checkpoints = view.checkpoints if view is not None else ()
    of_everybody = walk.covered_by([c for c in checkpoints if is_rebuilt or is_trusted(c.writer)])
    covered = walk.covered_by(checkpoints)
    for finding in findings:
        if finding.severity is not Severity.ERROR or finding.file in dropped:
            continue
        if _is_of(finding, FileKind.SEGMENT, _OF_SEGMENTS):
            by = set(_referring(walk, finding.file))
            if by and by <= dropped:
                continue
        if finding.code in _OF_TRANSACTIONS and _is_covered(walk, covered, finding.file):
            text = f"{finding.message} A checkpoint covers it: its rows are there, its history is lost."
            if not _is_covered(walk, of_everybody, finding.file):
                text += " It is its writer's own: who merges for everybody, prunes or restores goes by none such."
            finding = replace(finding, message=text)
        yield finding


def _is_covered(walk: Walk, covered: Covered, name: str) -> bool:
    ref = _named(walk, name, FileKind.TRANSACTION)
    return ref is not None and covered.holds(*ref)
