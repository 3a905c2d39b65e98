"""What went wrong with PostgreSQL, in words: by SQLSTATE, or by what libpq says of a connection that failed."""

from __future__ import annotations

import psycopg

from engine.errors import StateError

Reason = tuple[str, str]
"""What happened, and what to do."""

UNREACHABLE: Reason = (
    "PostgreSQL cannot be reached",
    "start PostgreSQL, or repair its address or the network; the engine then goes on by itself",
)
BUSY: Reason = (
    "too many operations wait for PostgreSQL",
    "reduce the load, or look for what slows PostgreSQL down",
)
HANGING: Reason = (
    "PostgreSQL did not answer in time",
    "look at its load, locks and disks; the engine goes on by itself",
)
POOLER: Reason = (
    "a connection pooler is between the engine and PostgreSQL",
    "write the address of PostgreSQL itself: each engine keeps up to 8 connections, and shares them",
)
UNSAFE_COMMIT: Reason = (
    "PostgreSQL gave up a transaction instead of committing it",
    "report this; nothing was changed",
)
_REFUSED: Reason = ("PostgreSQL refused", "start the engine again; if that does not help, report this")
_LOGIN: Reason = (
    "PostgreSQL refused the login",
    "check the user of the address, and the password in PGPASSWORD or in the file that PGPASSFILE names",
)
NOT_PREPARED: Reason = (
    "the database has no tables of this engine",
    "run `engine state init` as the owner of the tables",
)

_BY_STATE: dict[str, Reason] = {
    "22": ("PostgreSQL refused a value", "remove NUL characters from names and texts"),
    "23514": ("a counter would leave its bounds", "request smaller amounts, or another window"),
    "25006": ("PostgreSQL is read-only", "connect to the primary server"),
    "28": _LOGIN,
    "3D": ("there is no such database", "create it, or correct the address"),
    "3F": NOT_PREPARED,
    "42P01": NOT_PREPARED,
    "42501": ("the role may not do this", "run `engine state grant ROLE` as the owner of the tables"),
    "53100": ("the disk of PostgreSQL is full", "make room there"),
    "53300": ("PostgreSQL has no connection left", "raise `max_connections`, or run fewer engines"),
    "53": ("PostgreSQL lacks memory or disk space", "give it more"),
    "55P03": HANGING,
    "57014": HANGING,
    "57": UNREACHABLE,
    "08": UNREACHABLE,
    "58": ("the disk of PostgreSQL failed or is full", "make room or repair the disk"),
    "XX": ("the database is damaged", "restore it from a backup"),
}
_BY_WORDS: tuple[tuple[str, Reason], ...] = (
    ("unsupported startup parameter", POOLER),
    ("password", _LOGIN),
    ("authentication", _LOGIN),
    ("pg_hba.conf", _LOGIN),
    ("read-only", _BY_STATE["25006"]),
    ("too many", _BY_STATE["53300"]),
    ("remaining connection slots", _BY_STATE["53300"]),
    (
        "certificate",
        (
            "the certificate of PostgreSQL cannot be verified",
            "name its authority with `sslrootcert` in the address; see the page on deployment",
        ),
    ),
    ("does not exist", ("there is no such database or role", "create it, or correct the address")),
    (
        "SSL",
        (
            "PostgreSQL offers no TLS",
            "switch it on there, or write `sslmode=disable` into the address where the network is yours alone",
        ),
    ),
)

_AGAIN = ("40001", "40P01", "23505")
"""A transaction that others were faster than."""


class OneFaultError(StateError):
    """What was asked is at fault, not the database: nothing was done, and other operations are not affected."""

    undone = True


class UnsentError(StateError):
    """PostgreSQL was not asked."""

    undone = True


class UndoneError(OneFaultError):
    """Others were faster, and the transaction was surely undone: it may be run again."""


def kind(error: psycopg.Error) -> type[StateError]:
    """The class for an error."""
    state = error.sqlstate or ""
    return UndoneError if state in _AGAIN else OneFaultError if state[:2] in {"22", "23"} else StateError


def reason(error: psycopg.Error) -> Reason:
    """What an error means. Its own words are not shown: they name hosts and values."""
    state = error.sqlstate or ""
    for known in (state, state[:2]):
        if known and known in _BY_STATE:
            return _BY_STATE[known]
    if state:
        return _REFUSED
    if isinstance(error, psycopg.DataError):  # psycopg itself refused the value
        return _BY_STATE["22"]
    words = str(error)
    return next((found for word, found in _BY_WORDS if word in words), UNREACHABLE)


def owners_reason(error: psycopg.Error) -> Reason:
    """The same for the role that prepares the tables, which has to be their owner."""
    if error.sqlstate == "42501":
        return (
            "this role does not own the tables, or may make none",
            "log in as their owner, or as that of the database",
        )
    if error.sqlstate == "42704":
        return "there is no such role", "create it with CREATE ROLE"
    return reason(error)
