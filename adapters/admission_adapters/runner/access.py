"""What a gate shows to its runner: a token and a client certificate; and which authorities it trusts.

The files are read for each run, so that a short-lived token or certificate can be replaced while the gate serves.
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from admission_adapters.trust import client_tls
from engine.errors import WorkError

_TOKEN = re.compile(r"[\x21-\x7e]{8,4096}")
"""A token as a header can carry it; a shorter one would be found in ordinary text."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What one run shows. `token` is empty where none is sent."""

    context: ssl.SSLContext
    token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Presented:
    """A client certificate: its subject in the form of RFC 4514, and when it expires."""

    subject: str
    ends: datetime


@dataclass(frozen=True, slots=True)
class RunnerAccess:
    """Files of the operator: a bearer token, a client certificate with its key, and authorities (all but it PEM)."""

    token: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    ca_file: Path | None = None

    def credentials_of_run(self, *, credentials: bool = True) -> Credentials:
        """What a run shows to its runner; only the authorities count without `credentials`.

        Raises WorkError `engine.runner_credentials`.
        """
        try:
            if not credentials:
                return Credentials(client_tls(self.ca_file))
            return Credentials(client_tls(self.ca_file, self.certificate, self.key), self._read())
        except WorkError as error:
            raise WorkError(error.message, remedy=error.remedy, code="engine.runner_credentials") from error

    def _read(self) -> str:
        if self.token is None:
            return ""
        try:
            text = self.token.read_bytes()[: 64 << 10].decode("ascii").strip()
        except (OSError, UnicodeDecodeError):
            text = ""
        if _TOKEN.fullmatch(text) is None:
            raise WorkError(
                "the token for the runner cannot be read",
                remedy="write one token of 8 to 4,096 printable ASCII characters into the file of --runner-token-file",
            )
        return text


def presented(certificate: Path) -> Presented | None:
    """What the client certificate says; None without the package cryptography.

    Raises WorkError for a file that is not one.
    """
    try:
        from cryptography import x509
    except ImportError:
        return None
    try:
        first = x509.load_pem_x509_certificates(certificate.read_bytes())[0]
    except (OSError, ValueError) as error:
        raise WorkError("the client certificate cannot be read", remedy="use a file in PEM") from error
    return Presented(first.subject.rfc4514_string(), first.not_valid_after_utc)
