"""Parts by themselves: identity, failures, load, trace context, names in certificates."""

from __future__ import annotations

import asyncio
import hashlib
import json
import resource
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from engine.api.headers import read_trace
from engine.api.identity import Failures, Identity
from engine.api.limits import ApiLimits
from engine.api.load import Load, Shares
from engine.api.messages import Exchange, Head, Peer, Response, Trace
from engine.api.oplog import OperationalLog
from engine.api.origin import Site
from engine.api.peers import subject
from engine.api.routes import routes
from engine.errors import EngineError
from engine.model import Caller, Via
from engine.state.rows import TokenRow
from tests.expect import refused
from tests.processes import limited, until

_EMPTY, _SHARED = "", "s3cret"
HERE = Peer(address="127.0.0.1", loopback=True)
THERE = Peer(address="192.0.2.7", loopback=False)
LIMITS = ApiLimits(failures_burst=3, failures_per_second=1.0, all_failures_burst=5, all_failures_per_second=1.0)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def row(principal: str, points: tuple[str, ...]) -> TokenRow:
    return TokenRow("1", principal, points, created_at=0, expires_at=1)


class Tokens:
    """Scoped tokens in memory, as the state has them."""

    def __init__(self, rows: dict[str, TokenRow] | None = None) -> None:
        self.rows = rows or {}
        self.looked = 0

    def any_issued(self) -> bool:
        return bool(self.rows)

    def token(self, presented: str, _now: int, _audience: str | None = None, *, again: bool = False) -> TokenRow | None:
        assert not again
        self.looked += 1
        return self.rows.get(presented)


def identity(shared: str | None = None, tokens: Tokens | None = None, clock: Clock | None = None) -> Identity:
    clock = clock or Clock()
    found = tokens or Tokens()
    return Identity(shared, lambda: found, Failures(LIMITS, clock))  # type: ignore[arg-type, return-value]


def head(_repeated: frozenset[bytes] = frozenset(), /, **headers: str) -> Head:
    named = {name.replace("_", "-").lower().encode(): value.encode() for name, value in headers.items()}
    return Head("POST", "/v1/decide/license", "", named, _repeated)


def code(found: Identity, asked: Head, peer: Peer = HERE) -> str:
    with pytest.raises(EngineError) as caught:
        found.caller(asked, peer)
    return caught.value.code


# covers: D03
def test_without_any_token_only_this_machine_may_ask() -> None:
    assert identity().caller(head(), HERE) == Caller(via=Via.LOOPBACK)
    assert code(identity(), head(), THERE) == "unauthorized"


# covers: D03 D04.1-2
@pytest.mark.parametrize("headers", [{"Authorization": "Bearer s3cret"}, {"X_Agenta_Runner_Token": "s3cret"}])
def test_both_headers_carry_the_shared_token(headers: dict[str, str]) -> None:
    assert identity("s3cret").caller(head(**headers), HERE) == Caller(via=Via.SHARED_TOKEN)


# covers: D05.1-2
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer"},
        {"Authorization": "s3cret"},
        {"Authorization": "Basic s3cret"},
        {"X_Agenta_Runner_Token": ""},
        {"X_Agenta_Runner_Token": "S3CRET"},
        {"Authorization": "Bearer s3cret", "X_Agenta_Runner_Token": "other"},
    ],
)
def test_missing_wrong_and_contradicting_tokens_are_unauthorized(headers: dict[str, str]) -> None:
    assert code(identity("s3cret"), head(**headers)) == "unauthorized"


def test_the_same_token_in_both_headers_is_one_token() -> None:
    both = head(Authorization="Bearer s3cret", X_Agenta_Runner_Token=_SHARED)
    assert identity("s3cret").caller(both, THERE) == Caller(via=Via.SHARED_TOKEN)


def test_a_repeated_authorization_header_is_unauthorized() -> None:
    assert (
        code(identity("s3cret"), head(frozenset({b"authorization"}), Authorization="Bearer s3cret")) == "unauthorized"
    )


# covers: D58
def test_an_empty_token_is_unauthorized_even_if_no_token_is_set() -> None:
    assert code(identity(None), head(Authorization="Bearer ")) == "unauthorized"
    assert code(identity(None, Tokens({"": row("nobody", ())})), head(X_Agenta_Runner_Token=_EMPTY)) == "unauthorized"


def test_a_scoped_token_gives_principal_and_points_and_makes_a_token_needed() -> None:
    tokens = Tokens({"tok": row("pipeline", ("license",))})
    found = identity(None, tokens)
    caller = Caller(via=Via.TOKEN, principal="pipeline", points=("license",))
    assert found.caller(head(Authorization="Bearer tok"), THERE) == caller
    assert code(found, head()) == "unauthorized"


def test_a_revoked_token_is_refused_at_once() -> None:
    tokens = Tokens({"tok": row("pipeline", ())})
    found = identity(None, tokens)
    asked = head(Authorization="Bearer tok")
    assert found.caller(asked, HERE).via is Via.TOKEN
    tokens.rows["tok"] = row("pipeline", ("license",))
    assert found.caller(asked, HERE).points == ("license",)
    del tokens.rows["tok"]
    assert code(found, asked) == "unauthorized"


# covers: D05.3 H10.1
def test_every_wrong_token_is_looked_up_in_the_same_way() -> None:
    tokens = Tokens()
    found = identity("s3cret", tokens)
    for wrong in ("", "x", "s3cret!", "s3cre", "y" * 4000):
        before = tokens.looked
        code(found, head(X_Agenta_Runner_Token=wrong), Peer(address=wrong[:3], loopback=True))
        assert tokens.looked == before + 1


def test_failed_logins_are_limited_but_strong_tokens_still_pass() -> None:
    clock, tokens = Clock(), Tokens({"tok": row("pipeline", ("license",))})
    found = identity("s3cret", tokens, clock)
    good = head(Authorization="Bearer s3cret")
    codes = [code(found, head(Authorization=f"Bearer {number}")) for number in range(5)]
    assert codes == ["unauthorized"] * 3 + ["engine.too_many_failures"] * 2
    assert tokens.looked == 5  # in the same way, also beyond the limit
    assert found.caller(head(Authorization="Bearer tok"), HERE).via is Via.TOKEN
    assert code(found, good) == "engine.too_many_failures"  # short enough to be guessed
    assert found.caller(good, THERE).via is Via.SHARED_TOKEN
    clock.now += 1.0
    assert found.caller(good, HERE).via is Via.SHARED_TOKEN
    long = identity("7f" * 16, tokens, clock)
    for number in range(5):
        code(long, head(Authorization=f"Bearer {number}"))
    assert long.caller(head(Authorization=f"Bearer {'7f' * 16}"), HERE).via is Via.SHARED_TOKEN
    assert code(found, head(Authorization="Bearer x")) == "unauthorized"


def test_many_peers_share_one_allowance() -> None:
    found = identity("s3cret")
    codes = [
        code(found, head(Authorization="Bearer x"), Peer(address=f"192.0.2.{number}", loopback=False))
        for number in range(7)
    ]
    assert codes == ["unauthorized"] * 5 + ["engine.too_many_failures"] * 2


@pytest.mark.parametrize("host", ["127.0.0.1:8642", "localhost", "[::1]:8642", "LOCALHOST:1"])
def test_names_of_this_machine_are_answered(host: str) -> None:
    Site().check(head(Host=host), HERE)
    assert identity().caller(head(Host=host), HERE).via is Via.LOOPBACK


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8642", "127.0.0.1.evil.example", "[::2]", "localhost.evil"]
)
def test_an_unknown_host_name_is_refused_unless_configured(host: str) -> None:
    with refused(EngineError, "engine.host_unknown"):
        Site().check(head(Host=host), HERE)
    Site(names=frozenset({host.partition(":")[0] if "]" not in host else host})).check(head(Host=host), HERE)


def test_a_proven_peer_needs_no_token_and_a_wrong_token_beside_it_is_refused() -> None:
    peer = Peer(address="uid:0", loopback=False, control=True, caller=Caller(via=Via.CONTROL, principal="user:root"))
    assert identity("s3cret").caller(head(), peer) == peer.caller
    assert code(identity("s3cret"), head(Authorization="Bearer x"), peer) == "unauthorized"


@pytest.mark.parametrize(
    "value",
    [
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-comes-later",
    ],
)
def test_a_valid_trace_is_continued_with_a_span_of_ours(value: str) -> None:
    trace = read_trace(head(traceparent=value))
    assert (trace.trace_id, trace.flags) == ("4bf92f3577b34da6a3ce929d0e0e4736", "01")
    assert trace.span_id != "00f067aa0ba902b7"
    assert trace.header().decode() == f"00-4bf92f3577b34da6a3ce929d0e0e4736-{trace.span_id}-01"


@pytest.mark.parametrize(
    "value",
    [
        "",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
    ],
)
def test_an_invalid_trace_is_replaced_by_a_new_one(value: str) -> None:
    trace = read_trace(head(traceparent=value))
    assert len(trace.trace_id) == 32
    assert trace.trace_id not in value.lower()


def test_the_load_is_bounded_and_first_come_is_first_served() -> None:
    async def play() -> list[str]:
        load, order = Load(running=1, waiting=4), []

        async def one(name: str) -> None:
            async with load.turn("a"):
                order.append(name)
                await asyncio.sleep(0)

        async with load.turn("a"):
            tasks = [asyncio.create_task(one(name)) for name in "abc"]
            await asyncio.sleep(0)
            assert load.waiting.used == 2
            with refused(EngineError, "engine.overloaded"):
                await tasks[2]
            tasks[0].cancel()
            await asyncio.sleep(0)
        await tasks[1]
        assert (load.running.used, load.waiting.used, load.waiting.refused) == (0, 0, 1)
        return order

    assert asyncio.run(play()) == ["b"]


def test_bytes_of_bodies_are_counted() -> None:
    bodies = Shares(10)
    assert bodies.take("a", 5)
    assert not bodies.take("a", 1)
    bodies.give("a", 5)
    assert bodies.take("a", 5)
    assert (bodies.used, bodies.refused) == (5, 1)


def test_each_new_caller_gets_half_of_the_remaining_budget() -> None:
    shares, held = Shares(1_024), []
    for caller in "abcdefgh":
        own = 0
        while shares.take(caller):
            own += 1
        held.append(own)
    assert held == [512, 256, 128, 64, 32, 16, 8, 4]
    for caller, own in zip("abcdefgh", held, strict=True):
        shares.give(caller, own)
    assert (shares.used, shares.take("a", 1_024)) == (0, True)


def test_callers_that_wait_get_their_turn_one_after_the_other() -> None:
    async def play() -> list[str]:
        load, order = Load(running=2, waiting=64), []

        async def one(name: str) -> None:
            async with load.turn(name):
                order.append(name)
                await asyncio.sleep(0)

        await asyncio.gather(*(one(name) for name in "aaaaaaaabbc"))
        assert (load.running.used, load.waiting.used, load.waiting.refused) == (0, 0, 0)
        return order

    first = "".join(asyncio.run(play()))[:5]
    assert (first.count("b"), first.count("c")) == (2, 1)


def exchange() -> Exchange:
    route = routes(None)["/v1/decide/license"]["POST"]
    return Exchange(head(), HERE, route, "r", Trace("0" * 32, "0" * 16), 0, 1 << 20)


@pytest.mark.parametrize("parts", [[b"one"], [b"on", b"e"], [b"o", b"n", b"e"], []])
def test_a_body_is_kept_in_one_piece(parts: list[bytes]) -> None:
    kept = exchange()
    for part in parts:
        kept.keep(part)
    assert len(kept.stored) == len(b"".join(parts))
    assert (kept.body, type(kept.body)) == (b"".join(parts), bytes)
    assert parts == [bytes(part) for part in parts]


CUT = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


@pytest.mark.parametrize(
    "body",
    [
        b'{"password": "hunter2-of-mine"',
        b'{"password": "hunter2-of-mine",}',
        b"\xff hunter2-of-mine",
        b"[" * 100_000 + b"hunter2-of-mine",
        b"x" * 4080 + CUT.encode() + b"hunter2-of-mine",
    ],
)
def test_a_malformed_payload_is_logged_by_length_and_digest_only(tmp_path: Path, body: bytes) -> None:
    found = payload(tmp_path, body)
    assert found == {"unreadable": True, "bytes": len(body), "digest": f"sha256:{hashlib.sha256(body).hexdigest()}"}


def test_a_json_payload_is_logged_without_secrets(tmp_path: Path) -> None:
    found = payload(tmp_path, b'{"password": "hunter2-of-mine", "license": "MIT"}')
    assert found["license"] == "MIT"
    assert found["password"].startswith("[redacted:")


def payload(folder: Path, body: bytes) -> Any:
    """What a log with payloads tells of this body."""
    file = folder / "log"
    with file.open("wb") as opened:
        log = OperationalLog(payload=True, descriptor=opened.fileno())
        asked = exchange()
        asked.keep(body)
        log.answered(asked, Response(400), 1)
        log.close()
    assert b"hunter2" not in file.read_bytes()
    assert CUT[:10].encode() not in file.read_bytes()
    return json.loads(file.read_text())["payload"]


def test_a_subject_is_written_last_part_first_and_escaped() -> None:
    names = ((("countryName", "DE"),), (("organizationName", "A, B"),), (("commonName", "#x+y "), ("userId", "1")))
    assert subject(names) == "CN=\\#x\\+y\\ +UID=1,O=A\\, B,C=DE"


def test_the_log_goes_on_after_a_disk_that_was_full(tmp_path: Path) -> None:
    """Lines that could not be written are counted, and end no later line."""
    path = tmp_path / "log"
    with path.open("wb") as file, closing(OperationalLog(descriptor=file.fileno())) as log:
        with limited(resource.RLIMIT_FSIZE, 10):
            log.event("first")
            log.event("second")
            until(lambda: log.dropped == 2)
        log.event("third")
        until(lambda: b"third" in path.read_bytes())
    assert json.loads(path.read_bytes().splitlines()[-1])["event"] == "third"
