"""Which cut a time or a version names, and the view of it.

A tag names what it names now, whatever cut is looked at: the entries of tags are those of the newest view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from .. import clock, limits
from ..errors import CorruptionError, HistoryPruned, InvalidOption, InvalidTime, InvalidVersion, MissingObject
from ..format.records import TagEntry
from ..model.cuts import Cut
from ..model.names import is_data_writer, is_maintainer, is_tag_name
from ..model.times import Time, looks_like_time, parse_causal, parse_time, shown_age, shown_time
from ..wording import either, how_to_list
from .ancestry import causal_cut, version_view
from .between import blamed, rests_on_what_is_gone
from .discovery import newest_view, view_at
from .entries import TagState, tags_of, tags_that_hold
from .files import LogFiles
from .horizon import FROM_THEN_ON, Horizon, begin_anew
from .pruned import KeptCheckpoints, is_of_source, kept_is_gone
from .view import LogView

Version = str | int


def find_view(files: LogFiles, look: Callable[[], LogView], timestamp: Time | None, version: Version | None) -> LogView:
    """The view of now, of a time, or of a version; ``InvalidTime`` or ``InvalidVersion`` where there is none.

    ``HistoryPruned`` where it lies before the horizon. ``look`` gives the view of now.
    """
    if timestamp is not None and version is not None:
        raise InvalidOption("A snapshot has a timestamp or a version, not both.", next_step="Give one of them.")
    if timestamp is None and version is None:
        return look()
    try:
        try:
            return _past_view(files, look, timestamp, version)
        except MissingObject:
            return _past_view(files, look, timestamp, version)  # if it was pruned meanwhile, the horizon says so by now
    except HistoryPruned as error:
        raise _naming_tags(error, files, look()) from None


def _past_view(files: LogFiles, look: Callable[[], LogView], timestamp: Time | None, version: Version | None) -> LogView:
    observed = files.store.now_us()  # before the first listing: what is missed by it is younger than the watermark
    writers = files.writers()
    now = look() if any(map(is_maintainer, writers)) else None  # nobody else deletes anything, or sets it aside
    files = files if now is None else files.aware(now.asides)
    horizon = now.horizon if now is not None else None
    if timestamp is not None:
        time = parse_time(timestamp)
        _refuse_future(files, time)
        if horizon is not None and time < horizon.time:
            raise horizon.refusal(f"The time {shown_time(time)}")
        return view_at(files, time, observed, horizon=horizon, writers=writers)
    cut = _cut(files, look if now is None else lambda: now, str(version), horizon)
    had_tag = now is not None and any(cut == entry.cut for tag in tags_of(now).values() for entry in tag.entries)
    # What a commit had read is missing, and not a version that somebody has mistyped.
    named = Cut() if parse_causal(str(version)) is not None else None
    try:
        return version_view(files, cut, horizon, writers, observed=observed, had_tag=had_tag, named=named)
    except (HistoryPruned, CorruptionError) as error:
        if isinstance(error, MissingObject) and named is not None:
            # A plain writer's checkpoint may say what its transactions do not.
            said = _cut(files.of_trusted(), look, str(version), horizon)
            if said != cut:
                return version_view(files, said, horizon, writers, observed=observed, had_tag=had_tag, named=named)
        tags = [] if now is None else [tag for tag in _undropped(now) if tag.cut == cut]
        if now is None or not tags:
            if isinstance(error, MissingObject):
                raise blamed(files, error, cut, horizon) from None
            raise
        return _tagged_view(files, max(tags, key=lambda tag: (is_maintainer(tag.stamp.writer), tag.stamp)), now, error)


def _tagged_view(files: LogFiles, tag: TagEntry, now: LogView, error: HistoryPruned | CorruptionError) -> LogView:
    """The view of a tag's cut from the transactions, which stay until it has a checkpoint: where it has none, or none can be read."""
    try:
        view = version_view(files, tag.cut)
        return replace(view, horizon=now.horizon) if isinstance(error, HistoryPruned) else view  # no changes since may be shown
    except (MissingObject, InvalidVersion):
        if isinstance(error, CorruptionError):
            raise error from None
        if now.horizon is None or not rests_on_what_is_gone(files, tag.cut, now.horizon):
            raise  # nobody was allowed to delete that
        if is_of_source(files, now.cut, tag):
            raise error from None
        if not is_maintainer(tag.stamp.writer):
            raise _held_no_more(error, tag) from None
        raise KeptCheckpoints.listed(files).unread_of(tag.cut) or kept_is_gone(files, tag, now.horizon) from None


def _held_no_more(error: HistoryPruned, tag: TagEntry) -> HistoryPruned:
    """The error for a version that only a tag of who is no maintainer named, which holds it for a while."""
    return HistoryPruned(
        f"{error.message} The tag {tag.name!r} held it for a while only: {tag.stamp.writer!r}, who gave it at "
        f"{shown_time(tag.stamp.commit_time)}, is no maintainer.",
        next_step=f"Let a maintainer give tags that are to last. {FROM_THEN_ON}",
    )


def _naming_tags(error: HistoryPruned, files: LogFiles, now: LogView) -> HistoryPruned:
    """The error with a tag to read instead, if there is one that is not of a clone's source; whether it can be read is not asked."""
    try:
        held = tags_that_hold(tags_of(now).values(), now.observed)
        tag = next((tag for tag in held if not is_of_source(files, now.cut, tag)), None)
    except CorruptionError:
        tag = None  # a reader is told what was pruned, not what else is wrong
    if tag is None:
        return error
    others = f"Read a time from then on, a version that contains that one, or a tag, such as {tag.name!r}."
    return HistoryPruned(error.message, next_step=others)


@contextmanager
def telling_to_begin_anew() -> Iterator[None]:
    """Of changes that are pruned it is said within how to go on without them; tags do not help, for these keep states and no events."""
    try:
        yield
    except HistoryPruned as error:
        raise HistoryPruned(error.message, next_step=begin_anew()) from None


def _undropped(view: LogView) -> list[TagEntry]:
    """The tags that name something, by name."""
    return [tag.latest for tag in tags_of(view).values() if not tag.latest.dropped]


def _refuse_future(files: LogFiles, time: int) -> None:
    now, here = files.store.now_us(), clock.now_us()
    if abs(here - now) <= limits.MAX_CLOCK_SKEW:  # whoever asks for now has it from this machine
        now = max(now, here)
    if time > now:
        newest = newest_view(files).newest_commit_time
        if time > newest:
            ahead = shown_age(time - max(now, newest))
            raise InvalidTime(
                f"The time {shown_time(time)} lies after now and after the newest commit, by {ahead}.",
                next_step="Ask for a time that has passed.",
            )


def _cut(files: LogFiles, look: Callable[[], LogView], text: str, horizon: Horizon | None) -> Cut:
    causal = parse_causal(text)
    if causal is None:
        if is_tag_name(text):
            return _tagged(tags_of(look()).get(text), text)
        if looks_like_time(text):
            raise InvalidVersion(f"{text!r} is a time, and no version.", next_step=_give_as_time())
        return Cut.parse(text)
    writer, revision = causal
    return _causal_cut(files, _only_writer(files, revision) if writer is None else writer, revision, horizon)


def _give_as_time() -> str:
    return "Give it as a time" + either(
        ": timestamp=..., in Spark the option timestampAsOf (startingTimestamp, endingTimestamp).", " where one is taken."
    )


def _tagged(known: TagState | None, name: str) -> Cut:
    """The cut that a tag names."""
    if known is None and looks_like_time(name):
        raise InvalidVersion(f"There is no tag {name!r}: it is a time, and no version.", next_step=_give_as_time())
    if known is None:
        raise InvalidVersion(
            f"There is no tag {name!r}, and it is neither a time nor another version.",
            next_step=f"See {how_to_list('tags', 'tag')} for the tags there are. A version is a snapshot's, WRITER@REVISION, a revision or "
            "a tag; a time is ISO 8601, such as 2024-05-01T12:00:00Z, what counts from now, such as 24h or yesterday, or @ and "
            "microseconds.",
        )
    if known.latest.dropped:
        raise InvalidVersion(
            f"The tag {name!r} was dropped by {known.latest.stamp[1]!r} at {shown_time(known.latest.stamp.commit_time)}. "
            f"It named the version {known.latest.cut}.",
            next_step="Read that version, or give the name to it again: "
            + either("catalog.tag(NAME, version=VERSION).", "bucketcatalog tag CATALOG NAME VERSION."),
        )
    return known.latest.cut


def _only_writer(files: LogFiles, revision: int) -> str:
    writers = [w for w in files.writers() if is_data_writer(w) and next(files.timeline(w), None) is not None]
    if len(writers) != 1:
        raise InvalidVersion(
            f"The version {revision} needs a writer: the database has {', '.join(writers) or 'none'}.",
            next_step=f"Use WRITER@{revision}.",
        )
    return writers[0]


def _causal_cut(files: LogFiles, writer: str, revision: int, horizon: Horizon | None) -> Cut:
    """What the commit at a revision had read, and itself."""
    at = files.at_revision(writer, revision)
    if not at and horizon is not None and revision < horizon.floor(writer):
        raise horizon.refusal(f"The version {writer}@{revision}")
    if len(at) != 1:
        there = " and ".join(head.uuid.hex() for head in at)
        raise InvalidVersion(
            f"Writer {writer!r} has {'several commits' if at else 'no commit'} at revision {revision}{': ' + there if at else ''}.",
            next_step="Use a snapshot's version." if at else f"See {how_to_list('log', 'log')} for the revisions there are.",
        )
    return causal_cut(files, writer, at[0], horizon)
