"""Plain boto3 clients of a server, without anything of the environment in between."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config


def client(options: Mapping[str, str], service: str = "s3", *, ca_file: Path | None = None) -> Any:
    """A client with the endpoint and credentials of ``options``, as ``Server.storage_options`` has them, plus a ``token`` if there is one.

    It goes through no proxy and tries nothing twice, so that what the server answers is what the caller sees.
    """
    return boto3.client(
        service,
        endpoint_url=options["endpoint_url"],
        aws_access_key_id=options["key"],
        aws_secret_access_key=options["secret"],
        aws_session_token=options.get("token"),
        region_name=options["region"],
        verify=None if ca_file is None else str(ca_file),
        config=Config(proxies={}, retries={"total_max_attempts": 1, "mode": "standard"}, s3={"addressing_style": "path"}),
    )
