"""Writers that a checkpoint says to be retired, and those of them whose timelines are sealed: readers ask nothing for these any more.

A writer looks at the newest checkpoints of those who speak for others before it commits, if it has not for a while, and commits no more
where one names it. So long after the first such checkpoint was published that whatever a writer had begun before must have arrived, the
next checkpoint of everybody covers all that the writer will ever have committed, and says so. Each later one does, whoever makes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from .. import limits
from ..errors import InvalidOption, NotFound
from ..format.checkpoints import Checkpoint
from ..format.records import Retirement
from ..log.files import LogFiles
from ..log.trust import is_trusted
from ..log.view import LogView
from ..model.cuts import Head
from ..model.times import shown_age
from ..wording import how_to_join, how_to_list


def refuse_unfit(view: LogView, database: str, writers: Collection[str]) -> None:
    """``NotFound`` for a writer that has no timeline here, ``InvalidOption`` for one that cannot be retired, or not as it is."""
    for writer in writers:
        if is_trusted(writer):
            raise InvalidOption(
                f"{writer!r} cannot be retired: what compactors and maintainers say of others is always looked for.",
                next_step="Leave it: a prune takes what nobody needs of it.",
            )
        heads = view.cut.of_writer(writer)
        if not heads:
            raise NotFound(
                f"No writer {writer!r} has committed to the database {database!r}.",
                next_step=f"See {how_to_list('writers', 'writers')} for those there are.",
            )
        if len(heads) > 1:
            raise InvalidOption(f"The timeline of {writer!r} is forked.", next_step=f"Join it first: {how_to_join(writer)}.")
        age = view.observed - last_commit(view, writer).commit_time
        if age < limits.SEALED_AFTER:
            raise InvalidOption(
                f"{writer!r} has committed {shown_age(max(age, 0))} ago.",
                next_step=f"End its process, and retire it {shown_age(limits.SEALED_AFTER)} after its last commit.",
            )


def last_commit(view: LogView, writer: str) -> Head:
    """The writer's head, or where that is voided for its time the last commit that is not and is known."""
    heads = [*view.cut.of_writer(writer), *(t.head for t in view.tail if t.writer == writer)]
    return max((head for head in heads if (writer, head) not in view.voids), default=Head(0, b""))


def retired_in(files: LogFiles, view: LogView, named: Collection[str], limit: int) -> tuple[Retirement, ...]:
    """What a checkpoint of the view's cut says of retired writers: those that are ``named``, and those that the newest ones name already.

    These are the newest up to the ``limit`` of whoever speaks for others, whoever makes this one.
    """
    said = {writer: Retirement(writer) for writer in named}
    for each in _said(files, limit):
        said[each.writer] = _earlier(said.get(each.writer, each), each)
    return tuple(_sealed(files, view, said[writer]) for writer in sorted(said))


def _said(files: LogFiles, limit: int) -> Iterator[Retirement]:
    """What those checkpoints say, with the time at which it could first be seen."""
    for checkpoint in files.map(lambda files, maker: files.newest_of_everybody(maker, limit), files.trusted()):
        if checkpoint is not None and checkpoint.retired:
            yield from _seen(checkpoint.retired, files, checkpoint)


def _seen(retired: Iterable[Retirement], files: LogFiles, by: Checkpoint) -> Iterator[Retirement]:
    published = files.marked_at(by.writer, by.head)
    return (replace(each, since=each.since or published) for each in retired)


def _earlier(one: Retirement, other: Retirement) -> Retirement:
    since = min(filter(None, (one.since, other.since)), default=0)
    return Retirement(one.writer, since, one.sealed or other.sealed)


def _sealed(files: LogFiles, view: LogView, said: Retirement) -> Retirement:
    """The same, sealed if the time has come: the view has all that the writer can have committed.

    One that goes on committing has not seen that it is retired, because that could not be read for a while. What is ahead is in no view.
    """
    quiet_since = view.observed - limits.SEALED_AFTER
    if said.sealed or not said.since or said.since > quiet_since:
        return said
    return replace(said, sealed=all(head.commit_time <= quiet_since for head in files.transactions(said.writer)))
