"""Two servers over one PostgreSQL share approvals, budgets, keys, tokens and stops, also after it failed."""

from __future__ import annotations

import json
import select
import shutil
import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from engine.errors import Exit
from tests.api.serving import ALLOWED, SECONDS, Reply, Serving, serving
from tests.command import Command, lines
from tests.conftest import ROOT, case
from tests.postgres import SERVING, Server, frozen
from tests.processes import until

REVIEWED = case("license", "review_required").case.request
BUDGET = 25
UNAVAILABLE = "engine.state_unavailable"


@pytest.fixture
def address(postgres: Server) -> str:
    return postgres.address(postgres.database(), SERVING)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """The policy with a budget for licenses that all callers share."""
    folder = tmp_path / "policy"
    shutil.copytree(ROOT / "policy", folder)
    budgets = folder / "budgets.yaml"
    unlimited = "  license: {principal: unlimited, run: unlimited, all: unlimited}\n"
    ours = f"  license: {{principal: unlimited, run: unlimited, all: {{limit: {BUDGET}, window_seconds: 31536000}}}}\n"
    text = budgets.read_text(encoding="utf-8")
    assert unlimited in text
    budgets.write_text(text.replace(unlimited, ours), encoding="utf-8")
    return folder


@pytest.fixture
def patient() -> bool:
    """Whether engines wait for the state as long as it takes, also on a busy machine."""
    return True


@pytest.fixture
def engines(
    tmp_path: Path, cache: Path, policy: Path, address: str, *, patient: bool
) -> Iterator[tuple[Serving, Serving]]:
    """Two servers as on two machines: each with a state folder of its own."""
    with ExitStack() as stack:
        found = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            env = {"ENGINE_STATE_DATABASE": address}
            started = serving(tmp_path / name, cache, "--policy", policy, env=env, patient=patient)
            found.append(stack.enter_context(started))
        yield found[0], found[1]


def run(command: Command, engine: Serving, address: str, *arguments: str) -> str:
    """A command on the machine of an engine."""
    done = command(*arguments, "--state", address, env={"ENGINE_STATE_DIR": str(engine.state)})
    assert done.code == 0, done
    return done.stdout


def codes(reply: Reply) -> list[str]:
    document = reply.json
    return [finding["code"] for finding in document.get("decision", document)["findings"]]


def outcomes(replies: Sequence[Reply]) -> list[str]:
    return [reply.json.get("decision", reply.json)["outcome"] for reply in replies]


def test_an_approval_granted_at_one_engine_is_used_once_across_all(
    engines: tuple[Serving, Serving], address: str, command: Command
) -> None:
    one, two = engines
    asked = one.decide("license", REVIEWED).json
    assert asked["outcome"] == "confirm"
    id_ = asked["approval"]["id"]
    assert two.decide("license", REVIEWED).json["approval"]["id"] == id_
    run(command, two, address, "approvals", "grant", id_, "--reason", "seen the contract")
    with ThreadPoolExecutor(8) as pool:
        replies = list(
            pool.map(lambda number: engines[number % 2].decide("license", REVIEWED, X_Approval=id_), range(8))
        )
    assert sorted(outcomes(replies)) == ["allow", *["deny"] * 7]


def test_a_budget_is_exact_over_both(engines: tuple[Serving, Serving]) -> None:
    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda number: engines[number % 2].decide("license", ALLOWED), range(3 * BUDGET)))
    assert outcomes(replies).count("allow") == BUDGET
    assert {code for reply in replies for code in codes(reply)} == {"budget_exhausted"}


def test_keys_tokens_and_stops_are_shared_by_engines(
    engines: tuple[Serving, Serving], address: str, command: Command
) -> None:
    one, two = engines
    first = one.decide("license", ALLOWED, Idempotency_Key="key-1").json
    again = two.decide("license", ALLOWED, Idempotency_Key="key-1").json
    assert first["decision_id"] == again["decision_id"]
    id_ = run(command, one, address, "stop", "tool", "http_get").split()[-1]
    assert id_ in run(command, two, address, "stop", "list")
    token = run(
        command, one, address, "tokens", "issue", "--principal", "p", "--point", "license", "--days", "1"
    ).split()[0]
    bearer = {"Authorization": f"Bearer {token}"}
    for engine in engines:
        assert engine.decide("license", ALLOWED).status == 401
        assert engine.ask("POST", "/v1/decide/license", ALLOWED, bearer).status == 200
    run(command, one, address, "tokens", "revoke", token.split("_")[1])
    assert [engine.ask("POST", "/v1/decide/license", ALLOWED, bearer).status for engine in engines] == [401, 401]


@pytest.mark.parametrize("patient", [False])
def test_a_server_that_is_killed_and_started_again_costs_denies_and_no_budget(
    engines: tuple[Serving, Serving], postgres: Server, command: Command
) -> None:
    assert [engine.decide("license", ALLOWED).json["outcome"] for engine in engines] == ["allow", "allow"]
    postgres.kill()
    denied = [engine.decide("license", ALLOWED) for engine in engines for _ in range(5)]
    assert {reply.status for reply in denied} == {503}
    assert {code for reply in denied for code in codes(reply)} == {UNAVAILABLE}
    for engine in engines:
        wait_for(engine, 503)
        assert engine.ask("GET", "/health").status == 200
    postgres.start()
    for engine in engines:
        wait_for(engine, 200)
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda number: engines[number % 2].decide("license", ALLOWED), range(2 * BUDGET)))
    assert outcomes(replies).count("allow") == BUDGET - 2
    with frozen(postgres):
        assert {engine.decide("license", ALLOWED).status for engine in engines} == {503}
    for engine in engines:
        wait_for(engine, 200)
        assert codes(engine.decide("license", ALLOWED)) == ["budget_exhausted"]
        assert engine.stop() == 0
        decided = [line for line in lines(engine.state) if line["kind"] == "decision"]
        assert UNAVAILABLE in {finding["code"] for line in decided for finding in line["findings"]}
        assert command("record", "verify", "--state", engine.state).code == 0


def test_an_engine_does_not_start_without_the_server(postgres: Server, address: str, command: Command) -> None:
    postgres.kill()
    try:
        command("serve", "--port", "0", "--state", address).refused("start PostgreSQL", code=Exit.FAILED_CLOSED)
    finally:
        postgres.start()


@contextmanager
def asking_for_a_license(engine: Serving, **headers: str) -> Iterator[socket.socket]:
    """A connection on which a decision was requested."""
    body = json.dumps(ALLOWED)
    named = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    with socket.create_connection((engine.host, engine.port), timeout=SECONDS) as connection:
        connection.sendall(f"POST /v1/decide/license HTTP/1.1\r\n{head}\r\n{body}".encode())
        yield connection


def has_answer(connection: socket.socket) -> bool:
    return bool(select.select([connection], [], [], 0)[0])


def wait_for(engine: Serving, status: int) -> None:
    until(lambda: engine.ask("GET", "/ready").status == status)


def test_the_doctor_reports_a_shared_state_without_tables(postgres: Server, address: str, command: Command) -> None:
    def doctor(database: str) -> dict[str, str]:
        checks = command("doctor", "--state", database, "--format", "json").json["checks"]
        return next(one for one in checks if one["name"] == "shared state")

    assert doctor(address)["state"] == "ok"
    empty = doctor(postgres.address(postgres.empty_database()))
    assert (empty["state"], "no tables" in empty["detail"]) == ("failed", True)


def test_health_is_answered_though_the_state_is_not(engines: tuple[Serving, Serving], postgres: Server) -> None:
    one, _ = engines
    with frozen(postgres), asking_for_a_license(one) as asking:
        assert one.ask("GET", "/health").json["status"] == "ok"
        assert not has_answer(asking)  # which waits until the state counts as failed


def test_a_token_is_looked_up_while_others_are_answered(
    engines: tuple[Serving, Serving], postgres: Server, address: str, command: Command
) -> None:
    """A server that hangs blocks the request whose token has to be read, and nothing else of the engine."""
    one, _ = engines
    issued = run(command, one, address, "tokens", "issue", "--principal", "p", "--point", "license", "--days", "1")
    bearer = {"Authorization": f"Bearer {issued.split()[0]}"}
    until(lambda: one.decide("license", ALLOWED).status == 401)  # from now on it looks tokens up
    with ExitStack() as stack:
        with frozen(postgres):
            asking = stack.enter_context(asking_for_a_license(one, **bearer))
            for _ in range(5):  # at most one, before the lookup, if the event loop waited too
                assert one.ask("GET", "/openapi.json").status == 200  # which asks nothing of the state
            assert not has_answer(asking)
        assert asking.recv(4096).startswith(b"HTTP/1.1 200 ")
    large = json.dumps(ALLOWED).encode().replace(b"{", b"{" + b" " * 400_000, 1)
    assert one.ask("POST", "/v1/decide/license", large, bearer).status == 200
    unknown = {"Authorization": f"Bearer aet_{'0' * 8}_{'x' * 43}"}
    assert one.ask("POST", "/v1/decide/license", large, unknown).status == 401
    until(lambda: one.metric("engine_http_body_bytes") == 0)
