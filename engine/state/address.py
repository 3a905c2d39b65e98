"""The address of a shared state: a connection URI of PostgreSQL without secrets."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

SCHEME = "postgresql://"
_SECRETS = ("password", "sslpassword")


def checked(address: str) -> str:
    """The address itself. Raises ValueError, which never contains it: a password would be shown."""
    if not address.startswith(SCHEME) or not address.isprintable():
        raise ValueError(f"the address of a shared state begins with {SCHEME}")
    try:
        parts = urlsplit(address)
        query = parse_qs(parts.query, keep_blank_values=True)
    except ValueError as error:
        raise ValueError("the address of the shared state is not a URI") from error
    if parts.password is not None or any(name in query for name in _SECRETS):
        raise ValueError(
            "the address of the shared state has a password, which other processes could read:"
            " put it into PGPASSWORD, or into a file that PGPASSFILE names"
        )
    if "options" in query:
        raise ValueError("the address of the shared state sets `options`, which the engine sets itself")
    return address
