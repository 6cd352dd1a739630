"""Which server a client speaks to, named the same way from every machine."""

from __future__ import annotations

from urllib.parse import urlsplit

from .calls import Calls

_AWS = "amazonaws.com"
_PORTS = {"http": 80, "https": 443}


def authority_of(calls: Calls) -> str:
    """Host and port of the endpoint, without a port that the scheme implies; no request is made.

    All regions of AWS are one authority, for a bucket's name is taken once in all of them; another partition of AWS is another one.
    """
    endpoint, partition = calls.server
    found = urlsplit(endpoint)
    host = (found.hostname or "").lower()
    if host.endswith((f".{_AWS}", f".{_AWS}.cn")):
        return f"s3.{_AWS}" if partition == "aws" else f"{partition}.s3.{_AWS}"
    shown = f"[{host}]" if ":" in host else host
    return shown if found.port in (None, _PORTS.get(found.scheme)) else f"{shown}:{found.port}"
