"""Turns of the processes of one machine under the writers that are called after it: one has such a writer open, the others wait.

A writer that nobody named is ``maintainer-HOST`` or the like, the same for every process of the machine. Cron jobs that overlap would be
two processes under one id, which forks its timeline. So whoever opens one takes a lock first and keeps it while the writer is open: an
advisory lock on a file of this machine, which the system takes back from a process that ends, however it ends. A writer that was named is
the business of who named it.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .. import clock
from ..errors import WriterBusy
from ..model.names import WriterId, writer_id
from ..store import Store
from ..wording import either

PATIENCE = 600.0
"""Seconds for which who comes second waits: longer than most work takes, shorter than the hour after which cron begins it again."""
_PAUSE = 0.2
_BETWEEN_WORDS = 60.0
_ROOT = Path("/tmp")  # not what TMPDIR and XDG_RUNTIME_DIR say: a shell has them, cron has not, and the two have to meet
_IN_MEMORY = "memory://"
_log = logging.getLogger("bucketcatalog")

_own_turns: dict[str, tuple[int, threading.Thread]] = {}
"""The locks of this process by name, and who took each: a fork inherits what is written here, and no thread is one that has ended."""


@contextmanager
def host_turn(
    store: Store, database: str, *, named: str | None, default: WriterId, patience: float = PATIENCE
) -> Iterator[WriterId]:
    """The writer to open in a database of a store: the one ``named``, else ``default``, this machine's own, held alone.

    Who waits for it says so by the logger ``bucketcatalog``, and for at most ``patience`` seconds: then ``WriterBusy``, at once for a
    thread that has it open itself. Processes of one user meet here, by the store's url as it is shown and its server; those of other users
    and machines do not.
    """
    if named is not None:
        yield writer_id(named)
        return
    if store.url.startswith(_IN_MEMORY):  # of which no other process knows
        yield default
        return
    held = _Turn(store, database, default)
    held.take(patience)
    try:
        yield default
    finally:
        held.give_back()


class _Turn:
    """One process's claim to a writer. ``taken`` is the lock file while it has it, None before and after, and where there can be none."""

    def __init__(self, store: Store, database: str, writer: str) -> None:
        url = store.url
        self._what = f"The writer {writer!r} in database {database!r} of {url}"
        # A path has several spellings, and a url of a bucket leads to as many buckets as there are servers.
        place = f"{getattr(store, 'server', '')}\0{url}" if "://" in url else os.path.realpath(url)
        digest = hashlib.sha256("\0".join((place, database, writer)).encode("utf-8", "surrogateescape")).hexdigest()
        self._name = f"{digest[:32]}.lock"
        self._taken: int | None = None

    def take(self, patience: float) -> None:
        """Wait until it is this process's turn; where the machine gives no place for a lock, say so and go on without."""
        began, said = clock.monotonic(), -_BETWEEN_WORDS
        while True:
            try:
                holder = self._try()
            except OSError as error:
                _log.warning("%s may be opened by another process meanwhile: no lock can be had (%s).", self._what, error)
                return
            waited = clock.monotonic() - began
            if holder is None:
                _own_turns[self._name] = _this_thread()
                return
            if _own_turns.get(self._name) == _this_thread():
                raise WriterBusy(
                    f"{self._what} is open already in this thread, which would wait for itself.",
                    next_step="Do it before or after what has the writer open, not within it, or give one of the two a writer of its own, "
                    f"with {either('writer=', '--writer')}.",
                )
            if waited >= patience:
                raise WriterBusy(
                    f"{self._what} is open in {holder} of this machine{f', after {waited:.0f} s of waiting' if patience else ''}.",
                    next_step=f"Run it again once that has ended, or let the two have writers of their own, "
                    f"with {either('writer=', '--writer')}.",
                )
            if waited - said >= _BETWEEN_WORDS:
                said = waited
                _log.warning("%s is open in %s of this machine. Waiting for it, %.0f s at most.", self._what, holder, patience)
            clock.sleep(min(_PAUSE, patience - waited))

    def _try(self) -> str | None:
        """Take the lock; returns who has it, or None where it is this process now."""
        path = _directory() / self._name
        while True:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pid = os.pread(file, 20, 0).decode("ascii", "replace").strip()
                os.close(file)
                return f"process {pid}" if pid.isdigit() else "another process"
            except BaseException:
                os.close(file)
                raise
            if _is_at(file, path):
                self._taken = file
                with suppress(OSError):  # a full disk: nobody is told who has it
                    os.truncate(file, 0)
                    os.pwrite(file, b"%d\n" % os.getpid(), 0)
                return None
            os.close(file)  # somebody tidied up between the two calls

    def give_back(self) -> None:
        """Let the next one have it. The file stays: who removed it would take it from under who waits for it."""
        file, self._taken = self._taken, None
        if file is not None:
            _own_turns.pop(self._name, None)
            fcntl.flock(file, fcntl.LOCK_UN)  # also of what a fork of this process has inherited
            os.close(file)


def _this_thread() -> tuple[int, threading.Thread]:
    return os.getpid(), threading.current_thread()


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _directory() -> Path:
    """The directory of this user's locks; ``OSError`` where it is not theirs, for in a directory of all anybody may have made it."""
    path = _ROOT / f"bucketcatalog-{os.getuid()}"
    try:
        path.mkdir(0o700)
    except FileExistsError:
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise PermissionError(f"{path} is somebody else's") from None
    return path
