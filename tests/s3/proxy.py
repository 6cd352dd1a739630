"""A proxy in front of the server that lets single requests go wrong, as networks and busy servers do.

Clients are given its address as their endpoint. It passes every request on unchanged, the ``Host`` that was signed included, and every
answer back; ``inject`` says which requests meet with what. It keeps a record of what it was asked.
"""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


class Fault(Enum):
    """What happens to a request."""

    DROP = auto()  # the connection is closed; nothing of it reaches the server
    LOSE = auto()  # carried out, and the connection closed before a byte of the answer
    CUT_REQUEST = auto()  # half of its body reaches the server, then both connections are closed
    CUT_ANSWER = auto()  # carried out; half of the answer comes back, of its head where it has no body
    HANG = auto()  # nothing happens until the client has gone away; nothing of it reaches the server
    LATE = auto()  # it reaches the server when the client has gone away
    CORRUPT_REQUEST = auto()  # one byte of its body is another one
    CORRUPT_ANSWER = auto()  # carried out; one byte of the answer's body is another one


@dataclass(frozen=True)
class Request:
    """One request as the proxy saw it, and when (seconds of a clock of the machine)."""

    method: str
    target: str
    headers: dict[str, str]
    size: int
    at: float

    @property
    def key(self) -> str:
        """The object's name in its bucket, or the prefix of a listing."""
        return self.query.get("prefix") or unquote(urlsplit(self.target).path).lstrip("/").partition("/")[2]

    @property
    def query(self) -> dict[str, str]:
        """Its parameters."""
        return {name: values[0] for name, values in parse_qs(urlsplit(self.target).query, keep_blank_values=True).items()}

    @property
    def kind(self) -> str:
        """What it asks for, in a word or two."""
        query = self.query
        match self.method:
            case "GET" if "list-type" in query:
                return "list"
            case "GET" if "uploads" in query:
                return "list uploads"
            case "POST" if "uploads" in query:
                return "create upload"
            case "POST" if "uploadId" in query:
                return "complete upload"
            case "PUT" if "uploadId" in query:
                return "put part"
            case "DELETE" if "uploadId" in query:
                return "abort upload"
        return self.method.lower()


def kinds(requests: list[Request]) -> list[str]:
    return [request.kind for request in requests]


@dataclass(frozen=True)
class Refusal:
    """An error as S3 answers it; nothing reaches the server."""

    status: int
    code: str
    message: str = "As the test says."


SLOW_DOWN = Refusal(503, "SlowDown", "Please reduce your request rate.")


Matches = Callable[[Request], bool]


@dataclass
class Rule:
    """The requests that match, by their number, meet with a fault: from ``first`` on, ``times`` of them or all."""

    fault: Fault | Refusal
    matches: Matches
    first: int
    times: int | None
    seen: int = 0
    hits: list[Request] = field(default_factory=list)

    def strikes(self, request: Request) -> bool:
        """Whether it is this request's turn; each request is asked for once."""
        if not self.matches(request):
            return False
        number, self.seen = self.seen, self.seen + 1
        if number < self.first or (self.times is not None and number >= self.first + self.times):
            return False
        self.hits.append(request)
        return True


class Proxy:
    """Listens on a port of its own in front of ``endpoint_url``; a ``with`` block ends it, and every connection through it."""

    def __init__(self, endpoint_url: str) -> None:
        address = urlsplit(endpoint_url)
        assert address.hostname is not None and address.port is not None
        self.server = address.hostname, address.port
        self.requests: list[Request] = []
        self.page: tuple[int, bytes] | None = None
        """What every request is answered with instead of being passed on."""
        self._rules: list[Rule] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._open: set[socket.socket] = set()
        self._listener = _Listener(("127.0.0.1", 0), _Handler)
        self._listener.proxy = self
        self._thread = threading.Thread(target=self._listener.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def endpoint_url(self) -> str:
        """The address for clients."""
        return f"http://127.0.0.1:{self._listener.server_address[1]}"

    def inject(self, fault: Fault | Refusal, matches: Matches = lambda _: True, *, first: int = 0, times: int | None = 1) -> Rule:
        """Let requests that match go wrong: of those that come from now on, ``times`` (None: all) from number ``first`` on."""
        rule = Rule(fault, matches, first, times)
        with self._lock:
            self._rules.append(rule)
        return rule

    def heal(self) -> None:
        """All goes well again."""
        with self._lock:
            self._rules.clear()

    def take(self) -> list[Request]:
        """The requests since the last time, in the order in which they came."""
        with self._lock:
            taken, self.requests = self.requests, []
        return taken

    def fault(self, request: Request) -> Fault | Refusal | None:
        """What happens to the request, which is noted down."""
        with self._lock:
            self.requests.append(request)
            striking = [rule.fault for rule in self._rules if rule.strikes(request)]
        return striking[0] if striking else None

    def gone(self, connection: socket.socket) -> bool:
        """Wait until the client has closed its connection, or the proxy ends; True in the first case."""
        while not self._closing.is_set():
            connection.settimeout(0.05)
            with suppress(TimeoutError):
                try:
                    if not connection.recv(1, socket.MSG_PEEK):
                        return True
                except ConnectionError:
                    return True
                time.sleep(0.05)
        return False

    @contextmanager
    def serving(self, connection: socket.socket) -> Iterator[None]:
        """While a connection is served it is one to be ended with the proxy."""
        with self._lock:
            self._open.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(connection)

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._listener.shutdown()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self._listener.server_close()  # waits for the threads of all connections
        self._thread.join()


class _Listener(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 128
    proxy: Proxy

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is nothing to print."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Listener

    def handle(self) -> None:
        self._upstream: http.client.HTTPConnection | None = None
        with self.server.proxy.serving(self.connection), suppress(ConnectionError, TimeoutError):
            try:
                super().handle()
            finally:
                self._leave_server()

    def _pass(self) -> None:
        proxy = self.server.proxy
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = Request(self.command, self.path, dict(self.headers.items()), len(body), time.monotonic())
        if proxy.page is not None:
            self._show(*proxy.page, "text/html")
            return
        self._meet(proxy.fault(request), body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass  # noqa: N815

    def _meet(self, fault: Fault | Refusal | None, body: bytes) -> None:
        match fault:
            case Refusal(status, code, message):
                error = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
                self._show(status, error.encode(), "application/xml")
            case Fault.CORRUPT_REQUEST | None:
                self.wfile.write(b"".join(self._forward(_corrupted(body) if fault else body)))
            case Fault.CORRUPT_ANSWER:
                head, answer = self._forward(body)
                self.wfile.write(head + _corrupted(answer))
            case _:
                self._break(fault, body)
                self.close_connection = True

    def _break(self, fault: Fault, body: bytes) -> None:
        """What happens before the connection is closed."""
        match fault:
            case Fault.LOSE:
                self._forward(body)
            case Fault.CUT_REQUEST:
                self._send(body[: len(body) // 2])
                self._leave_server()
            case Fault.CUT_ANSWER:
                head, answer = self._forward(body)
                self.wfile.write((head + answer)[: len(head) + len(answer) // 2 if answer else len(head) // 2])
            case Fault.HANG:
                self.server.proxy.gone(self.connection)
            case Fault.LATE if self.server.proxy.gone(self.connection):
                self._forward(body)

    def _forward(self, body: bytes) -> tuple[bytes, bytes]:
        """Head and body of the server's answer."""
        self._send(body)
        assert self._upstream is not None
        response = self._upstream.getresponse()
        answer = response.read()
        lines = [f"HTTP/1.1 {response.status} {response.reason}"]
        lines += [f"{name}: {value}" for name, value in response.getheaders() if name.lower() != "transfer-encoding"]
        if response.getheader("Transfer-Encoding"):
            lines.append(f"Content-Length: {len(answer)}")
        if response.will_close:
            self._leave_server()
            self.close_connection = True
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"), answer

    def _send(self, body: bytes) -> None:
        if self._upstream is None:
            self._upstream = http.client.HTTPConnection(*self.server.proxy.server, timeout=60)
        self._upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            self._upstream.putheader(name, value)
        self._upstream.endheaders(body)

    def _show(self, status: int, body: bytes, content_type: str) -> None:
        head = f"HTTP/1.1 {status} Answer\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        head += f"Date: {self.date_time_string()}\r\n\r\n"
        self.wfile.write(head.encode() + (b"" if self.command == "HEAD" else body))

    def _leave_server(self) -> None:
        if self._upstream is not None:
            self._upstream.close()
            self._upstream = None

    def log_message(self, format: str, *_: Any) -> None:
        """Tests keep their output to themselves."""


def _corrupted(body: bytes) -> bytes:
    middle = len(body) // 2
    return body and body[:middle] + bytes([body[middle] ^ 1]) + body[middle + 1 :]
