"""What PostgreSQL says is put into our own words: by its code, else by words that libpq uses."""

from __future__ import annotations

import psycopg
import pytest

from engine.errors import StateError
from engine.state.postgres.faults import OneFaultError, UndoneError, kind, owners_reason, reason

SECRET = "host-7.internal"  # noqa: S105  (none: a name that is not shown)


def coded(state: str) -> psycopg.Error:
    error = psycopg.DatabaseError(f"about {SECRET}")
    error.sqlstate = state
    return error


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("22021", "refused a value"),
        ("23514", "would leave its bounds"),
        ("23503", "PostgreSQL refused"),
        ("28P01", "refused the login"),
        ("3D000", "there is no such database"),
        ("42P01", "no tables of this engine"),
        ("42601", "PostgreSQL refused"),
        ("42501", "may not do this"),
        ("53100", "the disk of PostgreSQL is full"),
        ("53300", "no connection left"),
        ("53200", "lacks memory"),
        ("57014", "did not answer in time"),
        ("57P01", "cannot be reached"),
        ("58030", "failed or is full"),
        ("XX001", "is damaged"),
    ],
)
def test_each_error_code_has_a_reason_and_unknown_codes_a_generic_one(state: str, message: str) -> None:
    for told in (reason(coded(state)), owners_reason(coded(state))):
        assert message in told[0] or state == "42501"
        assert SECRET not in "".join(told)
        assert told[1]
    assert message in reason(coded(state))[0]


def test_an_owner_gets_reasons_that_apply_only_to_owners() -> None:
    assert "does not own the tables" in owners_reason(coded("42501"))[0]
    assert "there is no such role" in owners_reason(coded("42704"))[0]
    assert "PostgreSQL refused" in reason(coded("42704"))[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("FATAL: unsupported startup parameter: options", "a connection pooler"),
        ("fe_sendauth: no password supplied", "refused the login"),
        ("FATAL: no pg_hba.conf entry for host", "refused the login"),
        ("session is read-only", "is read-only"),
        ("FATAL: sorry, too many clients already", "no connection left"),
        ("FATAL: remaining connection slots are reserved", "no connection left"),
        ("SSL error: certificate verify failed", "certificate of PostgreSQL cannot be verified"),
        ('FATAL: database "x" does not exist', "no such database or role"),
        ("server does not support SSL, but SSL was required", "offers no TLS"),
        ("connection refused", "cannot be reached"),
    ],
)
def test_errors_without_a_code_are_explained_by_their_message(words: str, message: str) -> None:
    told = reason(psycopg.OperationalError(f"{words} ({SECRET})"))
    assert message in told[0]
    assert SECRET not in "".join(told)


def test_a_value_refused_by_the_driver_is_reported() -> None:
    assert "refused a value" in reason(psycopg.DataError("cannot contain NUL"))[0]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("40001", UndoneError),
        ("40P01", UndoneError),
        ("23505", UndoneError),
        ("23514", OneFaultError),
        ("22003", OneFaultError),
        ("57014", StateError),
        ("40003", StateError),
        ("", StateError),
    ],
)
def test_only_certainly_rolled_back_transactions_are_retried(state: str, expected: type[StateError]) -> None:
    assert kind(coded(state)) is expected
