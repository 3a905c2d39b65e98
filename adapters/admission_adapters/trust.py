"""The TLS of connections to other hosts: which authorities are trusted, and the certificate that is shown."""

from __future__ import annotations

import ssl
from pathlib import Path

from engine.errors import WorkError


def client_tls(ca_file: Path | None, certificate: Path | None = None, key: Path | None = None) -> ssl.SSLContext:
    """A context of our own, TLS 1.2 and later: `ssl.create_default_context` obeys SSL_CERT_FILE and SSLKEYLOGFILE.

    `ca_file` has the trusted authorities (PEM), None for those of certifi; `certificate` and `key` are shown where
    the other side asks. Raises WorkError for files that cannot be read.
    """
    import certifi

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_verify_locations(ca_file or certifi.where())
    except (OSError, ssl.SSLError) as error:
        raise _unreadable() from error
    if certificate is not None:
        try:
            context.load_cert_chain(certificate, key, password=_no_password)
        except (OSError, ssl.SSLError) as error:
            raise WorkError(
                "the client certificate or its key cannot be read",
                remedy="use PEM files that belong together, and a key without a password",
            ) from error
    return context


def authorities(ca_file: Path | None) -> bytes:
    """The trusted authorities (PEM), for programs that check certificates themselves. Raises WorkError."""
    import certifi

    try:
        return Path(ca_file or certifi.where()).read_bytes()
    except OSError as error:
        raise _unreadable() from error


def _unreadable() -> WorkError:
    return WorkError(
        "the file of trusted certificate authorities cannot be read",
        remedy="name a PEM file with `--ca-file`, or leave the option out",
    )


def _no_password() -> str:
    """Without this, OpenSSL would ask for the password of a key on the terminal."""
    return ""
