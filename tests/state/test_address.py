"""The address of a shared state has no secret, none is shown, and other machines have to show a certificate."""

from __future__ import annotations

import pytest

from engine.errors import StateError
from engine.state import open_shared
from engine.state.address import checked
from engine.state.postgres.connecting import parameters
from engine.state.rows import StateLimits

SECRET = "correct-horse"  # noqa: S105  (none)


def refusal(address: str) -> StateError:
    with pytest.raises(StateError) as caught:
        open_shared(address)
    assert SECRET not in f"{caught.value}{caught.value.remedy}{caught.value.where}"
    return caught.value


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (f"postgresql://user:{SECRET}@host/name", "has a password"),
        (f"postgresql://user@host/name?password={SECRET}", "has a password"),
        (f"postgresql://user@host/name?sslpassword={SECRET}", "has a password"),
        (f"postgresql://user:{SECRET}@[host/name", "not a URI"),
        ("postgresql://host/name?options=-csynchronous_commit%3Doff", "sets `options`"),
        ("postgresql://host/name?unknown=1", "not a URI"),
        (f"postgres://user:{SECRET}@host/name", "begins with"),
        ("postgresql://host/na\nme", "begins with"),
        ("", "begins with"),
    ],
)
def test_an_address_with_a_secret_or_of_another_kind_is_refused_and_never_shown(address: str, message: str) -> None:
    assert message in refusal(address).message


def test_an_address_without_a_secret_is_taken() -> None:
    for address in ("postgresql://", "postgresql://user@a,b/name", "postgresql:///name?host=/run/pg&passfile=/run/pw"):
        assert checked(address) == address


@pytest.mark.parametrize(
    ("address", "mode"),
    [
        ("postgresql://db.example.org/name", "verify-full"),
        ("postgresql://127.0.0.1,db.example.org/name", "verify-full"),
        ("postgresql:///name?host=db.example.org", "verify-full"),
        ("postgresql://db.example.org/name?sslmode=disable", "disable"),
        ("postgresql://127.0.0.1/name", None),
        ("postgresql://localhost/name", None),
        ("postgresql:///name?host=/run/postgresql", None),
        ("postgresql:///name?host=@postgresql", None),
        ("postgresql:///name?host=/run/postgresql,db.example.org", "verify-full"),
        ("postgresql:///name", None),
        ("postgresql://[::1]/name", None),
        ("postgresql:///name?host=,localhost", None),
        ("postgresql:///name?hostaddr=127.0.0.1,::1", None),
        ("postgresql:///name?hostaddr=192.0.2.2", "verify-full"),
        ("postgresql://localhost/name?hostaddr=192.0.2.2", "verify-full"),
        ("postgresql:///name?host=/run/postgresql,localhost&hostaddr=,192.0.2.2", "verify-full"),
        ("postgresql://localhost/name?hostaddr=/run/postgresql", "verify-full"),
        ("postgresql://db.example.org/name?hostaddr=127.0.0.1", "verify-full"),
        ("postgresql:///?service=prod", "verify-full"),
        ("postgresql://localhost/?service=prod", "verify-full"),
        ("postgresql:///?service=prod&sslmode=disable", "disable"),
    ],
)
def test_a_server_elsewhere_has_to_show_its_certificate(
    address: str, mode: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PGSSLMODE", "PGHOST", "PGHOSTADDR", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)
    assert parameters(address, StateLimits()).get("sslmode") == mode


def test_the_environment_may_state_what_a_server_elsewhere_has_to_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSSLMODE", "verify-ca")
    assert "sslmode" not in parameters("postgresql://db.example.org/name", StateLimits())
    monkeypatch.delenv("PGSSLMODE")
    for name, value in (("PGHOST", "db.example.org"), ("PGHOSTADDR", "192.0.2.2"), ("PGSERVICE", "prod")):
        with monkeypatch.context() as alone:
            alone.setenv(name, value)
            assert parameters("postgresql:///name", StateLimits())["sslmode"] == "verify-full", name
