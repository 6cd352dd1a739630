"""Turns whatever a file system of fsspec raises into this package's errors, without giving away what it was opened with.

Packages that a store needs and that are not installed with this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..errors import (
    AccessDenied,
    BucketCatalogError,
    InvalidOption,
    ObjectNotFound,
    OutcomeUnknown,
    StoreUnavailable,
    UnsupportedStore,
)
from .secrets import Secrets


@contextmanager
def extra(name: str, url: str) -> Iterator[None]:
    """Around the imports of what ``pip install 'bucketcatalog[name]'`` installs: ``UnsupportedStore`` where it is missing.

    They stand where a store is opened: botocore takes a third of a second, and is not always there.
    """
    try:
        yield
    except ImportError as error:
        raise UnsupportedStore(
            f"{url} needs a package that is not installed: {error.name}.", next_step=f"pip install 'bucketcatalog[{name}]'"
        ) from error


_PACKAGES = {
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
    "az": "adlfs",
    "sftp": "paramiko",
    "ssh": "paramiko",
    "http": "aiohttp",
    "https": "aiohttp",
    "github": "requests",
}
_NO_SUCH_FILE = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


@contextmanager
def guarded(secrets: Secrets, doing: str, name: str) -> Iterator[None]:
    """Raise this package's errors for what is raised inside, where the store is asked for ``doing`` something to ``name``."""
    try:
        yield
    except BucketCatalogError:
        raise
    except Exception as error:
        raise _translated(error, secrets, doing, name) from (None if secrets.shown_by(error) else error)


def import_filesystem(protocol: str, url: str) -> None:
    """Raise ``UnsupportedStore`` unless fsspec has a file system for ``protocol`` and the package behind it is installed."""
    import fsspec

    try:
        fsspec.get_filesystem_class(protocol)
    except ValueError:
        raise UnsupportedStore(
            f"{url} names no kind of store: {protocol}:// is unknown.",
            next_step=f"Write {protocol.lower()}://."
            if protocol != protocol.lower()
            else "Use a path, or a url with a protocol of fsspec, such as s3://, gs:// or abfs://.",
        ) from None
    except ImportError as error:
        package = _PACKAGES.get(protocol)
        raise UnsupportedStore(
            f"{url} needs a package that is not installed.",
            next_step=f"pip install '{package}'" if package else f"Install what fsspec asks for: {error}",
        ) from error


def open_filesystem(url: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    """A file system of fsspec's own for ``url``, which remembers no listing, and the path in it.

    fsspec is imported here: a catalog in a directory or on S3 does without, and it brings asyncio and more.
    """
    import fsspec
    from fsspec.dircache import DirCache

    files, path = fsspec.core.url_to_fs(url, skip_instance_cache=True, **options)
    files.dircache = DirCache(use_listings_cache=False)
    return files, str(path).rstrip("/")


def _translated(error: Exception, secrets: Secrets, doing: str, name: str) -> BucketCatalogError:
    place = f"{name!r} in {secrets.public_url}" if name else secrets.public_url
    said = secrets.hide(": ".join(filter(None, (type(error).__name__, str(error).rstrip(".")))))
    message = f"Cannot {doing} {place}: {said}."
    if isinstance(error, PermissionError) or _is_about_credentials(error):
        return AccessDenied(message, next_step="Check the credentials in the options or the environment, and what they allow.")
    if doing == "open" and isinstance(error, TypeError | ValueError | KeyError):
        return InvalidOption(message, next_step="Check the url and its options.")
    if isinstance(error, NotImplementedError | ImportError):
        return UnsupportedStore(message, next_step="Use a path, or an object store (s3, gs, abfs).")
    if isinstance(error, _NO_SUCH_FILE) and doing == "put":
        return StoreUnavailable(message, next_step="Create the bucket, or check its name.")
    if isinstance(error, _NO_SUCH_FILE):
        return ObjectNotFound(f"There is no object {place}.", next_step="List what is there, or check the name.")
    if doing == "put":
        return OutcomeUnknown(message, next_step="Put the same bytes under the same name again.")
    return StoreUnavailable(message, next_step="Try again; if it stays, check the network and the store.")


def _is_about_credentials(error: Exception) -> bool:
    return any("Credential" in kind.__name__ or "Authenticat" in kind.__name__ for kind in type(error).__mro__)
