"""Which cut a time or a version names, and the view of it."""

from __future__ import annotations

from datetime import timedelta

from .cut import Cut
from .errors import InvalidOption, InvalidTime, InvalidVersion
from .log.ancestry import causal_cut
from .log.files import LogFiles
from .log.looking import newest_view
from .log.view import View
from .log.walking import version_view
from .names import is_data_writer
from .times import Time, parse_causal, parse_time, refuse_unknown_tag, shown_time

Version = str | int


def find_view(files: LogFiles, timestamp: Time | None = None, version: Version | None = None) -> View:
    """The view of now, of a time, or of a version; ``InvalidTime`` or ``InvalidVersion`` where there is none."""
    if timestamp is not None and version is not None:
        raise InvalidOption("A snapshot has a timestamp or a version, not both.", next_step="Give one of them.")
    if timestamp is not None:
        time = parse_time(timestamp)
        _refuse_future(files, time)
        return newest_view(files, before=time)
    return newest_view(files) if version is None else version_view(files, _cut(files, str(version)))


def _refuse_future(files: LogFiles, time: int) -> None:
    now = files.store.now_us()
    if time > now:
        newest = newest_view(files).cut.newest_commit_time
        if time > newest:
            ahead = timedelta(microseconds=time - max(now, newest))
            raise InvalidTime(
                f"The time {shown_time(time)} lies after now and after the newest commit, by {ahead} (days, hours:minutes:seconds).",
                next_step="Ask for a time that has passed.",
            )


def _cut(files: LogFiles, text: str) -> Cut:
    causal = parse_causal(text)
    if causal is None:
        refuse_unknown_tag(text)
        return Cut.parse(text)
    writer, revision = causal
    return _causal_cut(files, _only_writer(files, revision) if writer is None else writer, revision)


def _only_writer(files: LogFiles, revision: int) -> str:
    writers = [w for w in files.writers() if is_data_writer(w) and next(files.timeline(w), None) is not None]
    if len(writers) != 1:
        raise InvalidVersion(
            f"The version {revision} needs a writer: the database has {', '.join(writers) or 'none'}.",
            next_step=f"Use WRITER@{revision}.",
        )
    return writers[0]


def _causal_cut(files: LogFiles, writer: str, revision: int) -> Cut:
    """What the commit at a revision had read, and itself."""
    at = files.at_revision(writer, revision)
    if len(at) != 1:
        there = " and ".join(head.uuid.hex() for head in at)
        raise InvalidVersion(
            f"Writer {writer!r} has {'several commits' if at else 'no commit'} at revision {revision}{': ' + there if at else ''}.",
            next_step="Use a snapshot's version." if at else "See bucketcatalog log for the revisions there are.",
        )
    return causal_cut(files, writer, at[0])
