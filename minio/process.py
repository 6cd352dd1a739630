"""One MinIO server as a process of its own: on a free port of 127.0.0.1, with data, credentials and a key that nobody else has.

`scripts/setup-minio` put the binary where `binary` looks. Tests and benchmarks use ``Server`` as it is; ``minio.server`` is the command
that leaves one running.
"""

from __future__ import annotations

import base64
import os
import secrets
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Self

from .certificate import CertificateError, make_certificate

VERSION = (Path(__file__).parent / "version.txt").read_text().strip()
REGION = "us-east-1"

READY_SECONDS = 30.0
STOP_SECONDS = 10.0
_PORTS_TRIED = 5
# What the pinned version prints; a start on a port that another process took in between is told by it from any other failure.
_PORT_TAKEN = "port is already in use"
_LISTENS = "\nAPI: "


class ServerError(Exception):
    """The server cannot be started; the message says why."""


class PortTaken(ServerError):
    """Another process listens on the server's port."""


def binary() -> Path:
    """Where the pinned server is, once `make minio-server` has built it: in the user's cache, which all clones share."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "bucketcatalog" / f"minio-{VERSION}" / "minio"


class Server:
    """A MinIO server, stopped until ``start``; a ``with`` block starts it and leaves nothing behind.

    ``folder`` is where data, log and certificates go, and they stay; without one they go to a temporary folder until ``close``. Port,
    data, credentials and key stay the same however often it is started again. With ``tls`` it has a certificate that it signed itself,
    ``ca_file``. A ``detached`` one outlives the process that started it and the terminal.
    """

    def __init__(
        self, folder: Path | None = None, *, tls: bool = False, detached: bool = False, ready_seconds: float = READY_SECONDS
    ) -> None:
        self._temporary = folder is None
        self.folder = Path(tempfile.mkdtemp(prefix="bucketcatalog-minio-")) if folder is None else folder.absolute()
        self.access_key = "root-" + secrets.token_hex(6)
        self.secret_key = secrets.token_urlsafe(30)
        self._kms_key = "bucketcatalog:" + base64.b64encode(secrets.token_bytes(32)).decode()
        self._tls = tls
        self._detached = detached
        self._ready_seconds = ready_seconds
        self._port: int | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        """The folder of the objects."""
        return self.folder / "data"

    @property
    def log(self) -> Path:
        """The file of what the server printed, over all of its starts."""
        return self.folder / "log"

    @property
    def ca_file(self) -> Path | None:
        """The certificate that clients must trust, or None without TLS."""
        return self.folder / "certs" / "public.crt" if self._tls else None

    @property
    def endpoint_url(self) -> str:
        """The address for clients; there is none before the first start."""
        if self._port is None:
            raise ServerError("MinIO was not started yet")
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"

    @property
    def storage_options(self) -> dict[str, str]:
        """The root user's options for a store of this server: a new dictionary each time."""
        return {"endpoint_url": self.endpoint_url, "key": self.access_key, "secret": self.secret_key, "region": REGION}

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The id of the running process."""
        if self._process is None or self._process.poll() is not None:
            raise ServerError("MinIO is not running")
        return self._process.pid

    def start(self) -> Self:
        """Start it and return when it answers; one that runs already is left alone. Raises ``ServerError`` if it cannot start."""
        if self.running:
            return self
        if not os.access(binary(), os.X_OK):
            raise ServerError(f"{binary()} is missing: run `make minio-server`")
        self.data.mkdir(parents=True, exist_ok=True)
        (self.folder / "certs").mkdir(exist_ok=True)
        if self.ca_file is not None and not self.ca_file.exists():
            try:
                make_certificate(self.folder / "certs")
            except CertificateError as error:
                raise ServerError(str(error)) from error
        if self._port is not None:
            self._start(self._port)
            return self
        for attempt in range(1, _PORTS_TRIED + 1):
            port = free_port()
            try:
                self._start(port)
            except PortTaken:
                if attempt == _PORTS_TRIED:
                    raise
            else:
                break
        return self

    def stop(self) -> None:
        """End it, the data stay; one that does not end by itself within 10 seconds is killed."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def kill(self) -> None:
        """End it in the middle of whatever it does (SIGKILL), the data stay as they are at that moment."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> Self:
        """Start it again, on the same port with the same data, whether it runs, was stopped or was killed."""
        self.stop()
        return self.start()

    def leave(self) -> int:
        """Let it run on without this object, which no longer ends it; gives the id of the process."""
        pid = self.pid
        assert self._process is not None
        self._process.returncode = 0  # or Popen warns that nobody waits for it
        self._process = None
        return pid

    def close(self) -> None:
        """Stop it, and remove its folder if that is a temporary one."""
        self.stop()
        if self._temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, port: int) -> None:
        """Start it on ``port`` and wait; a process that does not get ready is gone when this raises."""
        address = f"127.0.0.1:{port}"
        command = [str(binary()), "server", str(self.data), "--address", address, "--certs-dir", str(self.folder / "certs")]
        self._port = port
        with self.log.open("ab") as log:
            printed = log.tell()
            # Without a session of its own, what ends the tests (an interrupt, a time limit) ends the server along with them.
            self._process = subprocess.Popen(
                command,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=self._detached,
            )
        try:
            self._wait(self._process, printed)
        except BaseException as error:
            self.kill()
            if isinstance(error, PortTaken):
                self._port = None
            raise

    def _environment(self) -> dict[str, str]:
        """All that the server gets to see: neither proxies nor anybody's credentials nor settings of another MinIO."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.folder),
            "MINIO_ROOT_USER": self.access_key,
            "MINIO_ROOT_PASSWORD": self.secret_key,
            "MINIO_KMS_SECRET_KEY": self._kms_key,
            "MINIO_BROWSER": "off",  # the console would take a second port
            "MINIO_UPDATE": "off",
        }

    def _wait(self, process: subprocess.Popen[bytes], printed: int) -> None:
        deadline = time.monotonic() + self._ready_seconds
        while True:
            ended = process.poll() is not None
            output = self.log.read_bytes()[printed:].decode(errors="replace")
            if ended and _PORT_TAKEN in output:
                raise PortTaken(f"MinIO's port is taken: {_last_words(output)}")
            if ended:
                raise ServerError(f"MinIO ended with {process.returncode}: {_last_words(output)}")
            # Only the log tells that the one who answers on this port is this process.
            if _LISTENS in output and self._answers():
                return
            if time.monotonic() > deadline:
                raise ServerError(f"MinIO was not ready after {self._ready_seconds:g} s: {_last_words(output)}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if self.ca_file is not None:
            handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(self.ca_file))))
        try:
            with urllib.request.build_opener(*handlers).open(self.endpoint_url + "/minio/health/ready", timeout=5) as response:
                return bool(response.status == 200)
        except OSError:  # no answer yet, or one that says that it is not ready
            return False


def free_port() -> int:
    """A port of 127.0.0.1 that nobody has, and that the system gives to nobody else for the next seconds."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        # A connection that this side closed first keeps the port from being chosen for others, yet a server may bind to it.
        with socket.create_connection(("127.0.0.1", port)):
            listener.accept()[0].close()
    return port


def _last_words(output: str) -> str:
    """The line of a log that says why the server gave up, or its last one."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("FATAL", "ERROR", "minio: <ERROR>"))]
    return [*fatal, *lines[-1:], "it printed nothing"][0]
