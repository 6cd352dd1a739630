"""One client a process and store, set up for many small requests.

For 300-byte PUTs, range GETs and LISTs boto3 is as fast as s3fs or faster, and faster still without what is switched off here: waiting
for ``100 Continue``, the check of parameters, which this package makes itself, and reading each time of a listing on its own. Every
request is made once: ``calls`` says what is tried again, and until when.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import Any

import botocore.session
from botocore import UNSIGNED
from botocore.config import Config
from botocore.handlers import add_expect_header
from botocore.loaders import Loader, create_loader

from .options import S3Options

_REGION_ELSEWHERE = "us-east-1"
"""What servers other than AWS take for granted where nobody names a region."""


@dataclass(frozen=True)
class Connection:
    """A client, and where its credentials come from the usual chain what keeps them and fetches them again when they run out."""

    client: Any
    credentials: Any | None

    def fetch_credentials(self) -> None:
        """Have those at hand that the next request is signed with. May ask a service or a program for them; the store is asked nothing."""
        if self.credentials is not None:
            self.credentials.get_frozen_credentials()


def connect(options: S3Options) -> Connection:
    """A client as the options say; an error of botocore where they cannot be followed. Times in its answers are left as text."""
    session = botocore.session.Session(profile=options.profile)
    session.register_component("data_loader", _loader(session.get_config_variable("data_path")))
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_as_it_is)
    session.unregister("before-call.s3", add_expect_header)
    endpoint = options.endpoint_url or session.get_config_variable("endpoint_url") or None
    region = options.region or os.environ.get("AWS_REGION") or session.get_config_variable("region")
    session.set_config_variable("region", region)  # the service that gives credentials has one too
    styles = {None: "auto", True: "path", False: "virtual"}
    path_style = bool(endpoint) or None if options.path_style is None else options.path_style
    config = Config(
        signature_version=UNSIGNED if options.anon else None,
        connect_timeout=options.connect_timeout,
        read_timeout=options.read_timeout,
        retries={"mode": "standard", "total_max_attempts": 1},
        max_pool_connections=options.max_concurrency + 4,
        parameter_validation=False,
        request_checksum_calculation="when_supported",
        response_checksum_validation="when_supported",
        tcp_keepalive=True,
        user_agent="bucketcatalog",
        s3={"addressing_style": styles[path_style]},
    )
    client = session.create_client(
        "s3",
        endpoint_url=options.endpoint_url,
        region_name=region or (_REGION_ELSEWHERE if endpoint else None),
        verify=options.verify,
        aws_access_key_id=options.key,
        aws_secret_access_key=options.secret,
        aws_session_token=options.token,
        config=config,
    )
    given = options.anon or options.key is not None
    return Connection(client, None if given else session.get_credentials())


@cache
def _loader(data_path: str | None) -> Loader:
    """What reads botocore's description of S3, a megabyte of JSON: kept, since a process may open many stores (one a task of Spark)."""
    return create_loader(data_path)


def _as_it_is(time: Any) -> Any:
    return time
