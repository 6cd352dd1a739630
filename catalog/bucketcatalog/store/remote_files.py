"""Files over any protocol that fsspec knows, for an inventory: directory by directory, with all that the listing says of each file.

Unlike ``FsspecStore`` it shows every file, whatever it is called, and tells a directory that cannot be listed from one that is empty.

Reads what fsspec's file systems tell of their files, which each of them says in words of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from .object_names import is_hidden, is_unicode
from .remote_failures import guarded, import_filesystem, open_filesystem
from .secrets import Secrets
from .tickets import is_carried, missing, redeemed, ticket_for

_TIME_KEYS = ("LastModified", "last_modified", "mtime", "modified", "updated", "created")


def entries(found: Iterable[Mapping[str, Any]], directory: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What an ``ls`` of ``directory`` gave, by the part of each name below it, directories with a ``/``; the rest cannot be objects."""
    for info in found:
        path = str(info["name"]).rstrip("/")
        part = path[len(directory) + 1 :]
        if not path.startswith(directory + "/") or "/" in part or not _can_be_shown(part):
            continue
        if info["type"] == "directory":
            yield part + "/", info
        elif info["type"] == "file":
            yield part, info


def flat_entries(found: Mapping[str, Mapping[str, Any]], directory: str, prefix: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What a ``find`` below ``directory`` gave, by full names, which begin with ``prefix``."""
    for path, info in found.items():
        below = path[len(directory) + 1 :]
        if path.startswith(directory + "/") and not below.endswith("/") and _can_be_shown(below.rpartition("/")[2]):
            yield prefix + below, info


def modified_us(info: Mapping[str, Any]) -> int:
    """When the store says the file was last written, in microseconds since the epoch; 0 where it does not say."""
    for key in _TIME_KEYS:
        value = info.get(key)
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                continue
        if isinstance(value, datetime):
            value = (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
        if isinstance(value, int | float):
            return round(value * 1_000_000)
    return 0


def _can_be_shown(part: str) -> bool:
    return bool(part) and not is_hidden(part) and is_unicode(part)


_OF_HOSTS = frozenset({"sftp", "ssh", "ftp", "smb", "http", "https", "hdfs", "webhdfs"})
_GONE, _DENIED = (404, 410), (401, 403)
_AT_ONCE, _PIECE = 8, 1 << 20


class RemoteFiles:
    """The directory at an fsspec ``url``, opened with ``options``, which reach fsspec and nothing else.

    A pickle holds the url, and neither the options nor what of the url is secret, see ``tickets``.
    """

    def __init__(self, url: str, options: Mapping[str, Any] | None = None, *, ticket: str | None = None) -> None:
        kept = None if ticket is None else redeemed(ticket)
        self._unknown = ticket if kept is None else None
        address, given = (url, options) if kept is None else kept
        self._address, self._options = str(address), dict(given or {})
        self._secrets = Secrets(self._address, self._options)
        public = self._secrets.public_url
        self.url = public.rstrip("/") if not public.endswith("://") else public
        self.protocol, _, self.path = self.url.partition("://")
        import_filesystem(self._address.partition("://")[0].partition("::")[0], self.url)
        if self._unknown is None:
            with guarded(self._secrets, "open", ""):
                self._files, self._root = open_filesystem(self._address, self._options)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._unknown is not None:
            return _reopened, (self.url, self._unknown)
        if is_carried() or (not self._options and self._address == self._secrets.public_url):
            return RemoteFiles, (self._address, self._options)
        return _reopened, (self.url, ticket_for((self._address, self._options)))

    @property
    def authority(self) -> str:
        """The host and port of the url, or the protocol where a bucket or container stands in their place."""
        found = urlsplit(self.url)
        if self.protocol not in _OF_HOSTS or not found.netloc:
            return self.protocol
        return found.netloc.rpartition("@")[2].lower()

    def below(self, prefix: str) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
        """Names directly below a prefix, which is empty or ends in ``/``, of directories with ``/``, and what the listing says of them.

        None is given for a file that may not be asked for; one that is listed and not there is left out. ``ObjectNotFound`` where there is
        no such directory, ``AccessDenied`` or ``StoreUnavailable`` where it, or a file in it, cannot be asked for.
        """
        self._require_known()
        directory = f"{self._root}/{prefix}".rstrip("/")
        with guarded(self._secrets, "list", prefix):
            for info in self._files.ls(directory or "/", detail=True):
                is_directory = info.get("type") == "directory"
                path = str(info["name"]).rstrip("/") if is_directory else str(info["name"])
                part = path[len(directory) + 1 :]
                if not path.startswith(directory + "/") or not part or "/" in part.rstrip("/"):
                    continue  # the directory itself, or a page's link to somewhere else
                if self.protocol.startswith("http") and ("?" in part or "#" in part):
                    continue  # a page's link to itself, in another order
                name = prefix + part + ("/" if is_directory and not part.endswith("/") else "")
                try:
                    asked = self._with_size(info)
                except PermissionError:
                    yield name, None
                else:
                    if asked is not None:
                        yield name, asked

    def _with_size(self, info: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Where a listing does not even tell sizes, as web servers' do not, each file is asked for; None: there is no such file."""
        if info.get("size") is not None or info.get("type") != "file":
            return info
        try:
            asked: Mapping[str, Any] = self._files.info(info["name"])
        except FileNotFoundError as error:
            # fsspec says so of whatever a web server answers, and of no answer at all; only the cause tells them apart
            status, cause = getattr(error.__cause__, "status", None), error.__cause__
            if not isinstance(cause, Exception) or isinstance(cause, FileNotFoundError) or status in _GONE:
                return None
            raise (PermissionError(str(cause)) if status in _DENIED else cause) from None
        return asked

    @property
    def readers(self) -> int:
        """How many threads may read files at once."""
        return _AT_ONCE if getattr(self._files, "async_impl", False) else 1

    def pieces(self, name: str) -> Iterator[bytes]:
        """What a file holds, a piece at a time; ``ObjectNotFound`` where there is none."""
        self._require_known()
        with guarded(self._secrets, "get", name), self._files.open(f"{self._root}/{name}", "rb") as file:
            while piece := file.read(_PIECE):
                yield bytes(piece)

    def info(self, name: str) -> Mapping[str, Any]:
        """What the file system says of a file when it is asked for it alone."""
        self._require_known()
        with guarded(self._secrets, "get", name):
            said: Mapping[str, Any] = self._files.info(f"{self._root}/{name}")
        return said

    def is_directory(self) -> bool:
        """Whether the url names something that can have files below it."""
        self._require_known()
        with guarded(self._secrets, "list", ""):
            return bool(self._files.info(self._root or "/").get("type") == "directory")

    def _require_known(self) -> None:
        if self._unknown is not None:
            raise missing(self.url)


def _reopened(url: str, ticket: str) -> RemoteFiles:
    return RemoteFiles(url, ticket=ticket)
