"""What a user may say about an S3 store: flat names, as Spark options and the command line can carry them.

Names are those of s3fs where it has one, so that the same options open Parquet files beside the catalog.

Credentials given as options stay in the process that was given them, and in those forked from it, see ``tickets``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ...errors import InvalidName, InvalidOption
from ..secrets import has_cut_password
from ..tickets import is_carried, ticket_for

PROTOCOLS = ("s3", "s3a")
_URL = re.compile(r"s3a?://([^/]*)(?:/(.*))?", re.DOTALL)
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\-:/]{1,}[A-Za-z0-9]")
_ENCRYPTIONS = ("AES256", "aws:kms", "aws:kms:dsse")


@dataclass(frozen=True)
class S3Options:
    """How to reach an S3 store. What is not given comes from the usual chain: environment, profile, web identity, instance.

    ====================  ===================================================================================================
    option                meaning
    ====================  ===================================================================================================
    key, secret, token    credentials; without them the usual chain of the AWS SDKs is asked
    profile               a profile of the shared configuration files
    anon                  true: requests are not signed
    endpoint_url          another server than AWS; also from AWS_ENDPOINT_URL
    region                the bucket's region; also from AWS_REGION, AWS_DEFAULT_REGION or the profile
    path_style            true: the bucket stands in the path; by default so with an endpoint_url of its own
    verify                false: TLS certificates are not checked; or the path of a file with the authorities to trust
    sse                   server-side encryption of what is put: AES256, aws:kms or aws:kms:dsse
    sse_kms_key_id        the key of aws:kms
    connect_timeout       seconds until a connection must stand; default 5
    read_timeout          seconds without a byte after which a request has failed; default 30
    retry_timeout         seconds for which a read, a listing or a delete is tried again; default 30
    max_concurrency       how many requests are under way at once where many are needed; default 16
    ====================  ===================================================================================================
    """

    key: str | None = field(default=None, repr=False)
    secret: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    profile: str | None = None
    anon: bool = False
    endpoint_url: str | None = None
    region: str | None = None
    path_style: bool | None = None
    verify: bool | str | None = None
    sse: str | None = None
    sse_kms_key_id: str | None = None
    connect_timeout: float = 5.0
    read_timeout: float = 30.0
    retry_timeout: float = 30.0
    max_concurrency: int = 16

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> S3Options:
        """The options in a mapping of names to values or to texts of values; ``InvalidOption`` names the one that cannot be."""
        names = [known.name for known in fields(cls)]
        for name in given:
            if name not in names:
                near = difflib.get_close_matches(str(name), names, n=1)
                meant = f"Did you mean {near[0]}? " if near else ""
                raise InvalidOption(f"S3 has no option {name!r}.", next_step=f"{meant}The options are {', '.join(names)}.")
        values: dict[str, Any] = {name: _READ[name](name, value) for name, value in given.items() if value is not None}
        options = cls(**values)
        options._check()
        return options

    def _check(self) -> None:
        if (self.key is None) != (self.secret is None) or (self.token is not None and self.key is None):
            raise InvalidOption("The options key and secret go together.", next_step="Give both or neither; token needs both.")
        if self.sse is not None and self.sse not in _ENCRYPTIONS:
            raise InvalidOption(f"The option sse is {self.sse!r}.", next_step=f"Use {', '.join(_ENCRYPTIONS)}.")
        if self.sse_kms_key_id is not None and self.sse in (None, "AES256"):
            raise InvalidOption("The option sse_kms_key_id needs sse to be aws:kms.", next_step="Set sse too.")

    def __getstate__(self) -> dict[str, Any]:
        """``TypeError``: what goes with these opens a store, and the store pickles."""
        raise TypeError("options of S3 do not pickle: they may hold credentials")

    @property
    def secrets(self) -> dict[str, str]:
        """The values that no message may show."""
        named = {"key": self.key, "secret": self.secret, "token": self.token}
        return {name: value for name, value in named.items() if value is not None}

    def for_s3fs(self) -> dict[str, Any]:
        """The same as options of s3fs, which other S3 urls, as of Parquet files beside the catalog, are opened with."""
        client = {"region_name": self.region, "verify": self.verify}
        config: dict[str, Any] = {"connect_timeout": self.connect_timeout, "read_timeout": self.read_timeout}
        if self.path_style is not None:
            config["s3"] = {"addressing_style": "path" if self.path_style else "virtual"}
        encryption = {"ServerSideEncryption": self.sse, "SSEKMSKeyId": self.sse_kms_key_id}
        return {
            **self.secrets,
            "anon": self.anon,
            "profile": self.profile,
            "endpoint_url": self.endpoint_url,
            "client_kwargs": {name: value for name, value in client.items() if value is not None},
            "config_kwargs": config,
            "s3_additional_kwargs": {name: value for name, value in encryption.items() if value is not None},
            "use_listings_cache": False,
        }

    def for_object_store(self, endpoint: str, region: str) -> dict[str, str] | None:
        """The same as options of the Rust crate ``object_store``, less the credentials; None where it cannot do the same.

        The bucket always stands in the path, of whichever ``endpoint`` requests go to.
        """
        if self.path_style is False or isinstance(self.verify, str):
            return None
        return {
            "aws_endpoint_url": endpoint,
            "aws_region": region,
            "aws_virtual_hosted_style_request": "false",
            "aws_skip_signature": str(self.anon).lower(),
            "aws_allow_http": str(endpoint.startswith("http:")).lower(),
            "aws_allow_invalid_certificates": str(self.verify is False).lower(),
        }

    def without_credentials(self) -> dict[str, Any]:
        """The options that were given, less the credentials."""
        values = ((known, getattr(self, known.name)) for known in fields(self) if known.name not in _CREDENTIALS)
        return {known.name: value for known, value in values if value != known.default}

    def packed(self, unknown: str | None = None) -> tuple[dict[str, Any], str | None]:
        """What a pickle of a store with these options holds: options, and a ticket for what is secret of them, where anything is.

        A ticket that was ``unknown`` here is handed on: it may be good where the pickle goes.
        """
        if unknown is not None or not self.secrets:
            return self.without_credentials(), unknown
        if is_carried():
            return {**self.without_credentials(), **self.secrets}, None
        return self.without_credentials(), ticket_for(self.secrets)


PUBLIC_OPTIONS: tuple[str, ...] = tuple(known.name for known in fields(S3Options) if known.repr)
"""The options that are no credentials."""
_CREDENTIALS = ("key", "secret", "token")


def split_url(url: str) -> tuple[str, str]:
    """Bucket and path of an S3 url; the path has neither a leading nor a trailing ``/``. ``InvalidOption`` for what is none."""
    authority = url.partition("://")[2].partition("/")[0]
    if "@" in authority or (has_cut_password(url) and not authority.startswith("arn:")):
        raise InvalidOption(
            "An S3 url has no place for credentials.",
            next_step="Give key and secret as options, and the url as s3://BUCKET/PATH.",
        )
    match = _URL.fullmatch(url)
    if match is None or not _BUCKET.fullmatch(match[1]):
        raise InvalidOption(f"{url!r} names no bucket.", next_step="Write s3://BUCKET/PATH.")
    path = (match[2] or "").removesuffix("/")
    if any(part in ("", ".", "..") for part in path.split("/")) and path:
        raise InvalidName(
            f"{url!r} has a path with empty parts, '.' or '..'.", next_step="Leave these out, for no key of a catalog has such."
        )
    return match[1], path


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        what = "is not a text" if not isinstance(value, str) else "holds a NUL character" if value else "is empty"
        raise InvalidOption(f"The option {name} {what}.", next_step="Give a text, or leave it out.")
    return value


def _flag(name: str, value: Any) -> bool:
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise InvalidOption(f"The option {name} is neither true nor false.", next_step="Set it to true or false.")
    return text == "true"


def _endpoint(name: str, value: Any) -> str:
    text = _text(name, value).rstrip("/")
    if not re.fullmatch(r"https?://[^/@?#\s]+", text):
        raise InvalidOption(
            f"The option {name} is not the address of a server.",
            next_step="Write http(s)://HOST:PORT, without path or password.",
        )
    return text


def _verify(name: str, value: Any) -> bool | str:
    if str(value).strip().lower() in ("true", "false"):
        return _flag(name, value)
    if not Path(_text(name, value)).is_file():
        raise InvalidOption(f"The option {name} names no file here.", next_step="Give true, false, or a file of authorities.")
    return str(value)


def _seconds(name: str, value: Any) -> float:
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = -1.0
    if not 0 < seconds <= 86_400 or isinstance(value, bool):
        raise InvalidOption(f"The option {name} is not a number of seconds.", next_step="Give one above 0, at most 86400.")
    return seconds


def _count(name: str, value: Any) -> int:
    text = str(value).strip()
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 1_024):
        raise InvalidOption(f"The option {name} is not a whole number from 1 to 1024.", next_step="Give one.")
    return int(text)


_READ: dict[str, Callable[[str, Any], Any]] = {
    "key": _text,
    "secret": _text,
    "token": _text,
    "profile": _text,
    "anon": _flag,
    "endpoint_url": _endpoint,
    "region": _text,
    "path_style": _flag,
    "verify": _verify,
    "sse": _text,
    "sse_kms_key_id": _text,
    "connect_timeout": _seconds,
    "read_timeout": _seconds,
    "retry_timeout": _seconds,
    "max_concurrency": _count,
}
