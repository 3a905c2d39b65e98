"""Secrets of a run that are sealed to the key of its runner, with HPKE (RFC 9180).

X25519, HKDF-SHA256, ChaCha20-Poly1305. A sealed secret is bound to its place in the request, such as
`secrets/PROVIDER_KEY` or `mcp_servers/docs/X-Key`: moved to another place, it cannot be opened. Only an adapter
that passes the secret on opens it.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any, Protocol

from engine.errors import GatherError, WorkError, install_extra
from engine.model import SEALED

_MARK = "sealed:1:"
_PURPOSE = b"admission-engine secret of a run 1:"


class SealedSecretError(WorkError):
    """A sealed secret that cannot be opened. The error of a failed call is the name of this class."""

    code = "engine.secret_sealed"


class Secret(Protocol):
    """A text that is only revealed by a method, such as pydantic's SecretStr."""

    def get_secret_value(self) -> str:
        """The text."""


def seal(secret: str, place: str, public_key: Path) -> str:
    """The sealed form of a secret for one place, to the public key in this PEM file. Raises GatherError."""
    key = _key(public_key, private=False)
    sealed = _suite().encrypt(secret.encode("utf-8"), key, _PURPOSE + place.encode("utf-8"))
    return _MARK + base64.urlsafe_b64encode(sealed).rstrip(b"=").decode("ascii")


class Opener:
    """Opens sealed secrets with the private key in a PEM file. Raises GatherError if the key cannot be used."""

    def __init__(self, private_key: Path | None) -> None:
        self._key = None if private_key is None else _key(private_key, private=True)

    def open(self, secret: Secret, place: str) -> str:
        """The text of a secret; a sealed one is opened. Raises SealedSecretError."""
        text = secret.get_secret_value()
        if re.fullmatch(SEALED, text) is None:
            return text
        if self._key is None:
            raise _sealed(place, "this runner has no key to open it with")
        data = text.removeprefix(_MARK)
        try:
            sealed = base64.b64decode(data + "=" * (-len(data) % 4), altchars=b"-_", validate=True)
            opened = _suite().decrypt(sealed, self._key, _PURPOSE + place.encode("utf-8"))
            return str(opened, "utf-8")
        except Exception as error:
            raise _sealed(place, "it is sealed to another key, for another place, or was changed") from error


def _key(path: Path, *, private: bool) -> Any:
    """An X25519 key; the library is imported late, because most installations seal nothing. Raises GatherError."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import x25519
    except ImportError as error:
        raise GatherError(
            "sealed secrets need the package `cryptography`, which is not installed", remedy=install_extra("sealed")
        ) from error
    try:
        data = path.read_bytes()
        key: Any = (
            serialization.load_pem_private_key(data, password=None)
            if private
            else serialization.load_pem_public_key(data)
        )
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _unusable(path, private) from error
    if not isinstance(key, x25519.X25519PrivateKey if private else x25519.X25519PublicKey):
        raise _unusable(path, private)
    return key


def _suite() -> Any:
    from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

    return Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)


def _unusable(path: Path, private: bool) -> GatherError:  # noqa: FBT001
    return GatherError(
        f"`{path.name}` is not a {'private' if private else 'public'} X25519 key in PEM",
        remedy="make one with `openssl genpkey -algorithm X25519`, and its public key with `openssl pkey -pubout`",
    )


def _sealed(place: str, why: str) -> SealedSecretError:
    """The names of a place come from a request that was admitted; only the kind of the place is shown."""
    return SealedSecretError(
        f"a secret of the run ({place.partition('/')[0]}) cannot be opened: {why}",
        remedy="seal it again with `engine runner seal`, for this place and to the public key of this runner",
    )
