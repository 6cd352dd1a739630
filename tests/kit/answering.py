"""A server that answers as a test says, for what no real one does on command."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Answer = tuple[int, bytes] | tuple[int, bytes, dict[str, str]]
"""Status, body, and headers where they matter; an empty one is left out."""


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]


@dataclass
class Answering:
    """Where it listens, and what it was asked."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)

    @property
    def options(self) -> dict[str, Any]:
        """What an S3 store of the server is opened with, which gives up soon."""
        return {"endpoint_url": self.url, "key": "somebody", "secret": "somebody's", "region": "us-east-1", "retry_timeout": 0.05}


@contextmanager
def answering(answer: Callable[[Asked], Answer]) -> Iterator[Answering]:
    """A server on a free port, until the block ends."""
    told = Answering()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = dict(self.headers.items())
            found = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(found.query, keep_blank_values=True).items()}
            told.asked.append(Asked(self.command, found.path, query, headers))
            status, body, headers = (*answer(told.asked[-1]), {})[:3]
            self.send_response_only(status)
            usual = {"Date": self.date_time_string(), "Content-Length": str(len(body)), "Connection": "close"}
            for name, value in (usual | headers).items():
                if value:
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else body)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer  # noqa: N815

        def log_message(self, format: str, *_: Any) -> None:
            """Tests keep their output to themselves."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def refusal(status: int, code: str) -> Answer:
    """An error as S3 answers it."""
    return status, f"<Error><Code>{code}</Code><Message>As the test says.</Message></Error>".encode()
