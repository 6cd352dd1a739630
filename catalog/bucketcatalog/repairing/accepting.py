"""Transactions that nobody can read and that stop every reader: which they are, and what a timeline would say of them to go on without.

Whose loss is accepted counts as following whatever lies next before it. That is said by a transaction of its own timeline, so that it is
in every version of that timeline from then on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from .. import paths
from ..checking.walk import Walk
from ..codec.transactions import Link, Void
from ..cut import Head
from ..errors import CorruptionError, InvalidOption, UnsupportedFormat
from ..log.coverage import Covered
from ..log.looking import newest_view
from ..log.salvage import SalvagingFiles
from ..log.view import DEFAULT_LATENESS_BOUND
from ..names import is_maintainer
from ..times import parse_causal

Ref = tuple[str, Head]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A transaction that readers need and cannot read, as a loss; ``size`` is that of its file, None where that is gone.

    An ``obstacle`` says why its loss cannot be accepted.
    """

    loss: Void
    size: int | None
    obstacle: str = ""

    @property
    def name(self) -> str:
        """How the caller names it."""
        return f"{self.loss.writer}@{self.loss.link.revision}"

    @property
    def file(self) -> str:
        """What is the matter with its file."""
        return "Its file is gone" if self.size is None else f"Its file of {self.size:,} bytes cannot be read"

    @property
    def remark(self) -> str:
        """What to say of it where it is lost."""
        return f"{self.file}, and every reader stops at it. {self.obstacle or f'--accept-loss {self.name} does without it, for good.'}"


def unreadable(walk: Walk, broken: Collection[bytes]) -> list[Unreadable]:
    """The transactions that stop readers of the newest state who do without the ``broken`` checkpoints, and that none covers."""
    files = SalvagingFiles(walk.files.store, walk.files.database, frozenset(broken))
    try:
        view = newest_view(files, everything=True)
    except (CorruptionError, UnsupportedFormat):
        return []  # of the horizon's own checkpoint, which has to be restored first
    covered = Covered(walk.files, walk.checkpoints)
    lost = sorted((t.writer, t.head) for t in view.tail if t.lost and not t.accepted and not covered.holds(t.writer, t.head))
    newer = {loss.file for loss in files.losses.found if loss.code == UnsupportedFormat.code}
    return [_unreadable(walk, ref) for ref in lost if paths.transaction(*_place(walk, ref)) not in newer]


def _place(walk: Walk, ref: Ref) -> tuple[str, str, int, bytes]:
    return ref[0], walk.files.database, ref[1].revision, ref[1].uuid


def _unreadable(walk: Walk, ref: Ref) -> Unreadable:
    writer, head = ref
    listed = walk.found[writer].transactions if writer in walk.found else {}
    before = sorted(other for other in listed if other.revision == head.revision - 1)
    loss = Void(writer, _link(walk, ref), tuple(_link(walk, (writer, other)) for other in before))
    obstacle = ""
    if is_maintainer(writer):
        obstacle = (
            "It is a maintainer's: what it has allowed to be deleted, or voided, nothing else says. Restore it from a copy."
        )
    elif not before and head.revision > 0:
        obstacle = f"Revision {head.revision - 1} is gone too, and perhaps more before it. Restore them from a copy."
    return Unreadable(loss, listed[head].size if head in listed else None, obstacle)


def _link(walk: Walk, ref: Ref) -> Link:
    """A link to a transaction, with its digest as far as what follows it, or else itself, says that."""
    writer, head = ref
    told = {link.digest for t in walk.log.values() if t.writer == writer for link in t.parents if _is_link_to(link, head)}
    own = walk.log[ref].digest if ref in walk.log else b""
    return Link(head.revision, head.uuid, max(told, default=b"") or own)


def _is_link_to(link: Link, head: Head) -> bool:
    return (link.revision, link.uuid) == (head.revision, head.uuid)


def weigh(walk: Walk, found: Sequence[Unreadable], named: Collection[str], *, forked: Collection[str]) -> list[Unreadable]:
    """Those that are ``named``, each with what is in the way of accepting its loss; ``InvalidOption`` where one is none of them.

    Whoever accepts follows all that is left of the timeline: nothing else of it may be unread, nor ``forked``.
    """
    places = {(each.loss.writer, each.loss.link.revision): each.name for each in found}
    wanted = {text: parse_causal(text) for text in named}
    for text, place in wanted.items():
        if place not in places:
            raise InvalidOption(
                f"{text!r} is no transaction that readers need and cannot read.",
                next_step=f"There are: {', '.join(sorted(set(places.values()))) or 'none'}.",
            )
    taken = {places[place] for place in places if place in wanted.values()}
    return [replace(each, obstacle=_in_the_way(walk, each, found, taken, forked)) for each in found if each.name in taken]


def _in_the_way(
    walk: Walk, each: Unreadable, found: Sequence[Unreadable], taken: Collection[str], forked: Collection[str]
) -> str:
    writer = each.loss.writer
    if each.obstacle:
        return each.obstacle
    if writer in forked:
        return f"Its timeline has several branches: say --join {writer} too."
    for other in found:
        if other.loss.writer == writer and (other.obstacle or other.name not in taken):
            return f"{other.name} cannot be read either: {other.obstacle or f'say --accept-loss {other.name} too.'}"
    return too_young(walk, writer)


def too_young(walk: Walk, writer: str) -> str:
    """Why nobody may follow all of a timeline yet, if so: a commit of another process may still be under way."""
    now = walk.files.store.now_us()
    newest = max((head.commit_time for head in walk.found[writer].transactions if head.commit_time <= now), default=0)
    wait = (newest + DEFAULT_LATENESS_BOUND - now) // 1_000_000
    return f"Its last commit is too young: another may be under way. Wait for {wait + 1} s." if wait >= 0 else ""


def by_writer(found: Iterable[Unreadable]) -> dict[str, tuple[Void, ...]]:
    """The losses of each writer."""
    losses: dict[str, tuple[Void, ...]] = {}
    for each in found:
        losses[each.loss.writer] = (*losses.get(each.loss.writer, ()), each.loss)
    return losses
