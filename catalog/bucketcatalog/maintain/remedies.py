"""Remedies: what is to be done about a damaged database, decided from a walk over it before anything is written.

Checkpoints that are broken are done without: where everything that they cover can be had from the transactions or from other
checkpoints, nothing is lost with them. Whose data it is has to be named: a fork is joined as its writer, and a commit from the future
is voided, only where the caller says so. Doing it is for ``repair``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from .. import limits
from ..errors import UNREADABLE, InvalidOption
from ..format.checkpoints import Checkpoint
from ..format.records import Link, SetAside, TagEntry, Void
from ..log.discovery import whole_view
from ..log.files import ChosenFiles, FilesWithout, LogFiles
from ..log.view import LogView
from ..model import paths
from ..model.cuts import Cut, Ref
from ..model.times import parse_causal, shown_age
from ..model.uuids import uuid_text
from ..state.contents import Contents
from ..wording import either
from .broken import broken_checkpoints, kept_again, lost, newer, rest_of
from .evidence import Evidence
from .rebuild import Rebuilt, rebuilt
from .setting_aside import Said, mended, said_before, set_aside, taken_in
from .verify.findings import Finding
from .verify.walk import Walk
from .without import Remains, remains


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do to a file or timeline, and why: set aside, take in, void, join, drop, checkpoint or rebuild.

    An ``obstacle`` says why not.
    """

    what: str
    subject: str
    why: str
    obstacle: str = ""
    done: bool = False


@dataclass(frozen=True, slots=True)
class Named:
    """What the caller has named: writers whose branches are joined, commits that are voided, files that are set aside or taken in.

    A writer among the files stands for all that are bad of it. With ``force`` also files are set aside that are not bad.
    """

    join: Collection[str] = ()
    void: Collection[str] = ()
    set_aside: Collection[str] = ()
    take_in: Collection[str] = ()
    force: bool = False


@dataclass(frozen=True)
class Plan:
    """What to do about a database, and what is ``lost`` whatever is done.

    ``files`` are what is left to work with, without the checkpoints that are done without; ``dropped`` are those of them whose markers go.
    ``instead`` is what the new checkpoint is made from where readers need it before they can read anything; None where they do not.
    ``kept`` are the cuts whose checkpoints, which tags alone need, are made again. ``asides`` are said ``after`` what was said before.
    Where there are any nothing else is done than what they need: ``later`` is what was named to be done then, and all else is decided by
    another look, for what can be read without these files decides it.
    """

    database: str
    voids: tuple[Void, ...]
    joins: tuple[str, ...]
    files: ChosenFiles
    dropped: tuple[Ref, ...]
    instead: tuple[Checkpoint, ...] | None
    kept: tuple[Cut, ...]
    actions: tuple[Action, ...]
    lost: tuple[Finding, ...]
    asides: tuple[SetAside, ...] = ()
    after: int = 0
    later: tuple[Action, ...] = ()


def decide(walk: Walk, findings: Sequence[Finding], now: int, *, by: str, named: Named) -> Plan:
    """The plan for a database over which a walk has found this, by the store's time, for the maintainer ``by``.

    ``InvalidOption`` where nothing is to be done to what has been named.
    """
    ahead, join = _ahead(walk, now), named.join
    chosen = _chosen(ahead, named.void)
    evidence = Evidence(walk, findings)
    said, refused = set_aside(evidence, named.set_aside, force=named.force)
    said += taken_in(evidence, named.take_in)
    forked = _forked(findings)
    for writer in join:
        if writer not in forked:
            raise InvalidOption(
                f"The timeline of {writer!r} is not forked.", next_step=f"Forked are: {', '.join(forked) or 'none'}."
            )
    broken = broken_checkpoints(walk, findings)
    without = FilesWithout(walk.files.store, walk.files.database, set(broken)).aware(walk.files.asides)
    left, again = _left(walk, without, broken, now)
    joins = {action.subject: action for action in _join_actions(walk, forked, join, now, [v for v in ahead if v not in chosen])}
    first = [joins.pop(by)] if by in joins else []
    asides = [*map(_action, said), *(Action("set aside", each.name, each.why, each.obstacle) for each in refused)]
    named_actions = [*_void_actions(ahead, chosen), *joins.values()]
    dropped, kept, actions = _of_checkpoints(walk, findings, broken, left, again)
    no_more = mended(evidence, findings, said)
    plan = Plan(
        database=walk.files.database,
        voids=tuple(chosen),
        joins=tuple(action.subject for action in (*first, *named_actions) if action.what == "join" and not action.obstacle),
        files=left.files,
        dropped=dropped,
        instead=left.instead,
        kept=tuple(kept),
        actions=(*first, *asides, *named_actions, *(() if said else actions)),
        lost=tuple(
            finding
            for finding in lost(walk, findings, left, without, again, {ref: broken[ref] for ref in dropped}, kept)
            if finding.file not in no_more
        ),
        asides=tuple(each.entry for each in said),
        after=said_before(evidence, said),
    )
    plan = _beside(plan, by, [finding.file for finding in findings if finding.code == "NOT_LISTED"])
    if (own := next((void for void in ahead if void.writer == by), None)) is not None:
        return _waiting(plan, by, f"{by} can commit nothing before {_shown(own)} is voided: another maintainer can do that.")
    if any(action.obstacle for action in first):
        return _waiting(plan, by, f"{by} can commit nothing before its timeline is joined.")
    if plan.asides:
        joins_own = tuple(writer for writer in plan.joins if writer == by)
        before = tuple(a for a in plan.actions if a.what in ("set aside", "take in") or (a.what, a.subject) == ("join", by))
        later = tuple(action for action in plan.actions if action not in before)
        plan = replace(plan, voids=(), joins=joins_own, dropped=(), instead=None, kept=(), actions=before, later=later)
    return plan


def _of_checkpoints(
    walk: Walk, findings: Sequence[Finding], broken: Mapping[Ref, str], left: Remains, again: Rebuilt | None
) -> tuple[tuple[Ref, ...], dict[Cut, TagEntry], list[Action]]:
    """Which broken checkpoints are dropped, which tags get theirs again, and all that is done about checkpoints."""
    obstacle, too_new = left.obstacle, newer(walk, findings, broken)
    actions = []
    for ref, why in sorted(broken.items()):
        if not obstacle and not walk.is_marked(ref):
            continue  # nobody is led to it: it is a tag's, or the horizon rests on it no more
        actions.append(Action("drop", walk.name_of(ref), why, obstacle or too_new.get(ref, "")))
    dropped = tuple(ref for ref in sorted(broken) if not obstacle and ref not in too_new and walk.is_marked(ref))
    kept = {} if obstacle else {tag.cut: tag for tag in kept_again(left.files, walk, broken)}
    for tag in kept.values():
        actions.append(Action("checkpoint", tag.name, "What was kept of what this tag names is written again from what is left."))
    if again is not None:
        count = sum(len(part.segments) for part in again.parts)
        why = f"It is lost and its transactions are gone; {count} segments have its rows, {rest_of(again)}."
        actions.append(Action("rebuild", uuid_text(again.uuid), why))
    elif dropped or left.instead is not None:
        actions.append(
            Action("checkpoint", walk.files.database, "What the dropped checkpoints covered is written again from what is left.")
        )
    return dropped, kept, actions


def _forked(findings: Iterable[Finding]) -> list[str]:
    """The writers whose timelines have several branches."""
    return sorted({paths.writer_of(finding.file) for finding in findings if finding.code == "OPEN_FORK"})


def left_to_do(named: Named, walk: Walk, findings: Iterable[Finding], now: int) -> Named:
    """What is left of what was named once files are set aside, which may have been what else was named, or have forked a timeline."""
    forked, ahead = _forked(findings), {_shown(void) for void in _ahead(walk, now)}
    join = [writer for writer in named.join if writer in forked]
    return Named(join=join, void=[text for text in named.void if text in ahead])


def _waiting(plan: Plan, by: str, why: str) -> Plan:
    """What can be done of a plan while nobody can commit as ``by``: joins of others that need no void. What waits is not lost."""
    joins = tuple(writer for writer in plan.joins if writer not in {by, *(void.writer for void in plan.voids)})
    actions = [a if a.obstacle or (a.what == "join" and a.subject in joins) else replace(a, obstacle=why) for a in plan.actions]
    return replace(plan, voids=(), joins=joins, dropped=(), instead=None, kept=(), actions=tuple(actions), asides=())


def _left(walk: Walk, without: FilesWithout, broken: Collection[Ref], now: int) -> tuple[Remains, Rebuilt | None]:
    """What there is without the broken checkpoints, and the one that is made again for it where one is."""
    left = remains(walk, without, broken)
    again = rebuilt(without, walk, now) if left.obstacle else None
    if again is not None:
        left = Remains(without, whole_view(without, using=again.parts), again.parts)
    if broken and not left.obstacle and left.view is not None and (why := _unwritable(left.files, left.view)):
        return Remains(left.files, left.view, obstacle=why), None
    return left, again


def _unwritable(files: LogFiles, view: LogView) -> str:
    """Why no checkpoint of everybody can be made of a view, if so: a table has rows that do not fit it."""
    contents = Contents(files, view)
    with suppress(*UNREADABLE):
        for name in sorted(contents.definitions):
            if (why := contents.contradiction(name)) is not None:
                return f"No checkpoint of everybody can be written instead: {why}"
    return ""


def _beside(plan: Plan, by: str, unlisted: Sequence[str]) -> Plan:
    """What can be done of a plan beside what cannot be listed: what needs no more than timelines that can be. The rest is to wait.

    A checkpoint may cover what nobody sees, and of a timeline with some of that nobody can tell where it goes on.
    """
    if not unlisted:
        return plan
    why = f"Nobody sees what lies below {unlisted[0]}: let it be listed first."
    hidden = {paths.writer_of(name) for name in unlisted}
    if by in hidden:
        return _waiting(replace(plan, joins=()), by, why)
    joins = tuple(writer for writer in plan.joins if writer not in hidden)
    may = {("join", writer) for writer in joins}
    actions = tuple(
        a if a.obstacle or a.what in ("set aside", "take in", "void") or (a.what, a.subject) in may else replace(a, obstacle=why)
        for a in plan.actions
    )
    return replace(plan, joins=joins, dropped=(), instead=None, kept=(), actions=actions)


def _action(said: Said) -> Action:
    return Action("take in" if said.entry.taken_in else "set aside", said.name, said.why)


def _ahead(walk: Walk, now: int) -> list[Void]:
    """The transactions from the future that are not voided yet, as voids of them."""
    limit = now + limits.MAX_CLOCK_SKEW
    late = sorted(ref for ref in walk.log if ref.head.commit_time > limit and ref not in walk.voided)
    return [Void(writer, Link(head.revision, head.uuid, walk.log[Ref(writer, head)].digest)) for writer, head in late]


def _chosen(ahead: Iterable[Void], named: Collection[str]) -> list[Void]:
    """Those of them that are named as ``writer@revision``."""
    wanted = {text: parse_causal(text) for text in named}
    there = {(void.writer, void.link.revision) for void in ahead}
    for text, place in wanted.items():
        if place not in there:
            raise InvalidOption(
                f"{text!r} is not a transaction from the future.",
                next_step=f"There are: {', '.join(f'{w}@{r}' for w, r in sorted(there)) or 'none'}.",
            )
    return [void for void in ahead if (void.writer, void.link.revision) in wanted.values()]


def _void_actions(ahead: Iterable[Void], chosen: Collection[Void]) -> Iterator[Action]:
    for void in ahead:
        obstacle = "" if void in chosen else f"Give {_naming('void', _shown(void))}, or wait until its time has come."
        yield Action("void", _shown(void), "Its commit time lies in the future, and its writer cannot commit before.", obstacle)


def _naming(argument: str, name: str) -> str:
    """How one names to a repair what it is to join or to void."""
    return either(f"{argument}=[{name!r}]", f"--{argument} {name}")


def _shown(void: Void) -> str:
    return f"{void.writer}@{void.link.revision}"


def _join_actions(walk: Walk, forked: Iterable[str], join: Collection[str], now: int, ahead: Iterable[Void]) -> Iterator[Action]:
    """``ahead`` are the transactions from the future that stay: nothing can follow them yet."""
    late = {void.writer: void for void in ahead}
    for writer in forked:
        obstacle = f"Give {_naming('join', writer)}, with the right to write as {writer}, once no process writes under that id."
        if writer in join:
            obstacle = _too_young(walk, writer, now)
            if writer in late:
                obstacle = (
                    f"A branch of it ends in the future. Give {_naming('void', _shown(late[writer]))} too, or wait until then."
                )
        yield Action("join", writer, "Its timeline has several branches, so that nobody can write under its id.", obstacle)


def _too_young(walk: Walk, writer: str, now: int) -> str:
    """Why a timeline cannot be joined yet, if so: a commit of another process may still be under way."""
    newest = max((h.commit_time for w, h in walk.log if w == writer and h.commit_time <= now), default=0)
    left = newest + limits.LATENESS_BOUND - now
    wait = left - left % limits.SECOND + limits.SECOND
    return f"Its last commit is so young that another may be under way. Wait for {shown_age(wait)}." if left >= 0 else ""
