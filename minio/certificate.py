"""A certificate for 127.0.0.1 that it signed itself, for a server that tests reach over TLS."""

from __future__ import annotations

import subprocess
from pathlib import Path

# Strict clients (Python 3.13 is one) want all of these extensions of a certificate that they are to trust by itself.
_CONFIGURATION = """
[req]
distinguished_name = name
x509_extensions = extensions
prompt = no
[name]
CN = bucketcatalog test server
[extensions]
basicConstraints = critical, CA:TRUE
keyUsage = critical, digitalSignature, keyCertSign
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
subjectAltName = IP:127.0.0.1, DNS:localhost
"""


class CertificateError(Exception):
    """There is no certificate; the message says why."""


def make_certificate(folder: Path) -> None:
    """Write ``public.crt`` and ``private.key``, the names that MinIO looks for, into ``folder``; they are good for ten days."""
    configuration, certificate = folder / "openssl.cnf", folder / "public.crt.new"
    configuration.write_text(_CONFIGURATION)
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "10"]
    files = ["-config", str(configuration), "-keyout", str(folder / "private.key"), "-out", str(certificate)]
    try:
        done = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise CertificateError("no certificate without the command openssl: install the package openssl") from error
    if done.returncode != 0:
        raise CertificateError(f"openssl made no certificate: {done.stderr.strip()}")
    # The certificate's presence says that the key is there as well.
    certificate.replace(folder / "public.crt")
    configuration.unlink()
