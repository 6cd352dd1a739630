"""An identity provider (OpenID Connect) as Kubernetes has one, and a MinIO server that gives credentials for its tokens."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from minio.process import Server

AUDIENCE = "bucketcatalog"


class Identities:
    """Signs tokens; a ``with`` block serves the key that they can be checked with."""

    def __init__(self, folder: Path) -> None:
        self._key = folder / "key.pem"
        subprocess.run(["openssl", "genrsa", "-out", str(self._key), "2048"], check=True, capture_output=True)
        shown = subprocess.run(
            ["openssl", "rsa", "-in", str(self._key), "-noout", "-modulus"], check=True, capture_output=True, text=True
        )
        modulus = bytes.fromhex(shown.stdout.strip().partition("=")[2])
        keys = {"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1", "n": _text(modulus), "e": "AQAB"}]}
        self._listener = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self._listener.server_address[1]}"
        _Handler.pages = {
            "/.well-known/openid-configuration": {"issuer": self.url, "jwks_uri": f"{self.url}/keys"},
            "/keys": keys,
        }
        self._thread = threading.Thread(target=self._listener.serve_forever, kwargs={"poll_interval": 0.05})

    def token(self, subject: str, *, lasts: float = 3600) -> str:
        """A token that says who somebody is, for so many seconds."""
        now = int(time.time())
        claims = {"iss": self.url, "aud": AUDIENCE, "sub": subject, "iat": now, "exp": int(now + lasts)}
        signed = ".".join(_text(json.dumps(part).encode()) for part in ({"alg": "RS256", "typ": "JWT", "kid": "1"}, claims))
        command = ["openssl", "dgst", "-sha256", "-sign", str(self._key)]
        signature = subprocess.run(command, input=signed.encode(), check=True, capture_output=True).stdout
        return f"{signed}.{_text(signature)}"

    def __enter__(self) -> Identities:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown()
        self._listener.server_close()
        self._thread.join()


class TrustingServer(Server):
    """A server that takes the word of an identity provider: whoever has a token may read and write everything."""

    identities: str

    @property
    def role(self) -> str:
        """The name of the role that tokens are exchanged for, which the server prints when it starts."""
        found = re.search(r"arn:minio:iam:::role/\S+", self.log.read_text())
        assert found is not None, self.log.read_text()
        return found[0]

    def _environment(self) -> dict[str, str]:
        return super()._environment() | {
            "MINIO_IDENTITY_OPENID_CONFIG_URL": f"{self.identities}/.well-known/openid-configuration",
            "MINIO_IDENTITY_OPENID_CLIENT_ID": AUDIENCE,
            "MINIO_IDENTITY_OPENID_ROLE_POLICY": "readwrite",
        }


class _Handler(BaseHTTPRequestHandler):
    pages: dict[str, Any]

    def do_GET(self) -> None:
        body = json.dumps(self.pages[self.path]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *_: Any) -> None:
        """Tests keep their output to themselves."""


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
