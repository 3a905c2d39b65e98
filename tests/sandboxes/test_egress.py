"""Commands in the sandbox with one way out: what reaches a local TLS server, and everything that must not."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from engine.engine import Engine
from engine.settings import Settings
from engine.shell import ShellRun
from tests.adapters.gates import AGENT
from tests.administration.test_stops import stopped
from tests.command import decisions
from tests.facilities import needs
from tests.processes import until
from tests.sources.https import BODY, HOST, Authority, drips, response
from tests.sources.world import World, at_world, authority, resolving

__all__ = ["authority"]

OTHER = "other.example.org"
pytestmark = needs("bubblewrap", "curl")


@pytest.fixture(scope="module")
def opened(module_settings: Settings, authority: Authority) -> Iterator[World]:
    with at_world(module_settings, authority, f"networks.tunnels.hosts=[{HOST}]") as world:
        yield world


@pytest.fixture
def world(opened: World) -> World:
    opened.server.answers(response())
    opened.looked_up.clear()
    opened.addresses = ("127.0.0.1",)
    return opened


def ran(world: World, text: str, *hosts: str) -> ShellRun:
    return world.engine.run_shell(text, hosts=hosts or (HOST,), context=AGENT)


def test_a_command_reaches_a_host_that_policy_and_caller_name(world: World) -> None:
    before = len(decisions(world.state))
    run = ran(world, f"curl -sS {world.server.url('/a?key=canary')} | tr a-z A-Z")
    assert run.ended is not None, run.answer
    assert (run.ended.stdout, run.ended.exit_code) == (BODY.decode().upper().encode(), 0), run
    assert [(one.url, one.outcome) for one in run.connections] == [(f"https://{HOST}:{world.server.port}/", "closed")]
    points = [(one["point"], one["outcome"]) for one in decisions(world.state)[before:]]
    assert points == [("sandbox", "allow"), ("network", "allow")]


def test_a_host_that_policy_does_not_name_is_not_connected_to(world: World) -> None:
    run = ran(world, f"curl -sS {world.server.url(host=OTHER)}", HOST, OTHER)
    assert run.ended is not None, run.answer
    assert run.ended.exit_code == 56, run
    assert [(one.outcome, one.codes) for one in run.connections] == [("refused", ["host_not_allowlisted"])]
    assert (world.server.connections, world.looked_up) == (0, [])


ELSEWHERE = [
    f"https://{OTHER}:PORT/",
    "https://127.0.0.1:PORT/",
    "https://2130706433:PORT/",
    "https://0x7f.1:PORT/",
    "https://[::1]:PORT/",
    "https://[::ffff:127.0.0.1]:PORT/",
    "https://localhost:PORT/",
    f"https://{HOST}.:PORT/",
    f"https://sub.{HOST}:PORT/",
    f"https://{HOST}.evil.example:PORT/",
    f"https://{HOST}:1/",
    f"http://{HOST}:PORT/",
    f"http://{HOST}/",
    f"ftp://{HOST}:PORT/",
]
"""Addresses that policy does not name, some of them in spellings that lead to the server."""


# covers: C60.1 C60.3 H06
def test_no_other_host_address_port_or_scheme_is_reachable(world: World) -> None:
    urls = [url.replace("PORT", str(world.server.port)) for url in ELSEWHERE]
    run = ran(world, "; ".join(f"curl -sS -g --max-time 5 '{url}'" for url in urls), HOST, OTHER)
    assert run.ended is not None, run.answer
    assert BODY not in run.ended.stdout
    assert {one.outcome for one in run.connections} == {"refused"}, run
    assert len(run.connections) >= len(urls) - 2  # curl itself refuses some
    assert (world.server.connections, {*world.looked_up} - {HOST}) == (0, set())


ASKING = 'levels.levels.network={address_not_public: {level: confirm, owner: a, reason: a test, until: "2099-01-01"}}'
LOOPBACK = 'addresses.refused=[{cidr: 127.0.0.0/8, reason: a test, source: a test, date: "2026-01-01"}]'


@contextmanager
def asking(world: World, folder: Path) -> Iterator[Engine]:
    """An engine whose policy leaves a connection to this machine to a person."""
    values = (*world.values, ASKING, LOOPBACK, f"networks.ports=[443, {world.server.port}, 8443]")
    with Engine(replace(world.engine.settings, state=folder / "state"), values=values) as engine:
        resolving(engine, world)
        yield engine


def needed(run: ShellRun) -> list[str]:
    """The approvals that the connections of a command need; each is refused for one reason."""
    assert [(one.outcome, one.codes) for one in run.connections] == [("not_approved", ["address_not_public"])] * len(
        run.connections
    )
    return [one.approval or "" for one in run.connections]


def test_a_connection_that_needs_an_approval_is_refused_and_says_so(world: World, tmp_path: Path) -> None:
    """A running command does not wait for an approval; the refusal names it, and asking twice requests it once."""
    head = f"CONNECT {HOST}:{world.server.port} HTTP/1.1\\r\\n\\r\\n"
    text = f"exec 3<>/dev/tcp/127.0.0.1/3128; printf '{head}' >&3; cat <&3"
    with asking(world, tmp_path) as engine:
        runs = [engine.run_shell(one, hosts=(HOST,), context=AGENT) for one in (text, f"curl -sS {world.server.url()}")]
        (approval,) = {one for run in runs for one in needed(run)}
        (row,) = engine.store().approvals(None, 10)
    assert (row.id, row.state, row.point) == (approval, "requested", "network")
    assert runs[0].ended is not None
    assert f"Once `engine approvals grant {approval}` was run, the next connection".encode() in runs[0].ended.stdout
    assert world.server.connections == 0


def test_an_approval_admits_one_connection_of_its_own_run(world: World, tmp_path: Path) -> None:
    url = world.server.url()
    with asking(world, tmp_path) as engine:

        def ran(text: str, run: str | None = AGENT.run, *hosts: str) -> ShellRun:
            return engine.run_shell(text, hosts=hosts or (HOST,), context=replace(AGENT, run=run))

        (approval,) = needed(ran(f"curl -sS {url}"))
        engine.store().resolve(approval, "granted", "user:ana", None, 0)
        elsewhere = [
            ran(f"curl -sS {url}", "run-2"),
            ran(f"curl -sS {url}", None),
            ran(f"curl -sS https://{HOST}:8443/"),
            ran(f"curl -sS {world.server.url(host=OTHER)}", AGENT.run, HOST, OTHER),
        ]
        assert world.server.connections == 0
        assert approval not in {one for run in elsewhere[:3] for one in needed(run)}
        assert [one.outcome for one in elsewhere[3].connections] == ["refused"]
        made = ran(f"curl -s https://{HOST}:8443/; curl -sS {url} {url} -H 'Connection: close'")
        again = needed(replace(made, connections=(made.connections[0], made.connections[2])))[1]
        recorded = [one for one in decisions(engine.settings.state) if one.get("approval") == approval]
    assert (made.connections[1].outcome, made.connections[1].approval) == ("closed", None)
    assert made.ended is not None
    assert made.ended.stdout == BODY
    assert again != approval
    assert [one["outcome"] for one in recorded] == ["confirm", "confirm", "allow"]
    assert len(world.server.requests) == 1


def test_a_refused_approval_makes_no_connection(world: World, tmp_path: Path) -> None:
    text = f"curl -sS {world.server.url()}"
    with asking(world, tmp_path) as engine:
        (approval,) = needed(engine.run_shell(text, hosts=(HOST,), context=AGENT))
        engine.store().resolve(approval, "refused", "user:ana", None, 0)
        (again,) = needed(engine.run_shell(text, hosts=(HOST,), context=AGENT))
    assert again != approval
    assert world.server.connections == 0


def test_plain_http_is_refused_with_its_reason(world: World) -> None:
    run = ran(world, f"curl -s http://{HOST}/a?key=canary-path")
    assert run.ended is not None, run.answer
    assert run.ended.stdout.startswith(b"the connection is refused: ")
    assert b"unsafe_scheme" in run.ended.stdout
    assert b"canary-path" not in b"".join(path.read_bytes() for path in world.state.rglob("*.jsonl"))


def test_a_redirect_is_a_connection_of_its_own(world: World) -> None:
    world.server.answers(response(b"", status="302 Found", more=(f"Location: {world.server.url(host=OTHER)}",)))
    run = ran(world, f"curl -sS -L {world.server.url()}", HOST, OTHER)
    assert [one.outcome for one in run.connections] == ["closed", "refused"]
    assert len(world.server.requests) == 1


# covers: H06
@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    ("addresses", "code"),
    [
        (("10.0.0.7",), "address_not_public"),
        (("127.0.0.1", "10.0.0.7"), "address_not_public"),
        (("fe80::1%lo",), "address_not_public"),
        ((), "address_unknown"),
    ],
)
def test_a_host_with_an_address_that_is_not_public_is_refused(
    addresses: tuple[str, ...], code: str, world: World
) -> None:
    world.addresses = addresses
    run = ran(world, f"curl -sS {world.server.url()}")
    assert [one.codes for one in run.connections] == [[code]]
    assert world.server.connections == 0


def test_each_connection_is_decided_on_freshly_resolved_addresses(world: World) -> None:
    """Each connection goes to the addresses that its own decision saw; the name is looked up once for each."""
    text = f"curl -sS {world.server.url()} {world.server.url()} -H 'Connection: close'"
    look = world.look
    answered = iter((("127.0.0.1",), ("10.0.0.7",)))

    def changing(host: str) -> tuple[str, ...]:
        world.addresses = next(answered)
        return look(host)

    assert world.engine.services is not None
    kept = world.engine.services
    world.engine.services = replace(kept, gather_context=replace(kept.gather_context, addresses=changing))
    try:
        run = ran(world, text)
    finally:
        world.engine.services = kept
    assert [one.outcome for one in run.connections] == ["closed", "refused"], run
    assert (len(world.server.requests), world.looked_up) == (1, [HOST, HOST])


DIRECT = """
import errno, socket, sys
port, out = int(sys.argv[1]), []
def tried(name, act):
    try:
        act()
        out.append(name + " did")
    except OSError as error:
        out.append(name + " " + (errno.errorcode.get(error.errno) or type(error).__name__))
def to(family, kind, address, protocol=0):
    with socket.socket(family, kind, protocol) as one:
        one.settimeout(5)
        one.connect(address)
tried("tcp", lambda: to(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", port)))
tried("address", lambda: to(socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", 443)))
tried("mptcp", lambda: to(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", port), 262))
tried("ipv6", lambda: to(socket.AF_INET6, socket.SOCK_STREAM, ("::1", port)))
tried("udp", lambda: to(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", port)))
tried("unix", lambda: to(socket.AF_UNIX, socket.SOCK_STREAM, "/run/x"))
tried("abstract", lambda: to(socket.AF_UNIX, socket.SOCK_STREAM, chr(0) + "x"))
tried("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close())
tried("vsock", lambda: socket.socket(40, socket.SOCK_STREAM).close())
tried("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close())
tried("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close())
tried("name", lambda: socket.getaddrinfo("data.example.org", 443))
tried("port taken", lambda: socket.create_server(("127.0.0.1", 3128)).close())
tried("own server", lambda: socket.create_server(("127.0.0.1", 8080)).close())
print("\\n".join(out))
"""


# covers: C60.1-4
def test_no_socket_type_bypasses_the_proxy(world: World) -> None:
    run = ran(world, f"/usr/bin/python3 - {world.server.port} <<'END'\n{DIRECT}\nEND")
    assert run.ended is not None, run.answer
    found = dict(line.rsplit(" ", 1) for line in run.ended.stdout.decode().splitlines())
    refused = ("mptcp", "ipv6", "udp", "unix", "abstract", "netlink", "vsock", "packet", "raw")
    assert {name: found[name] for name in refused} == dict.fromkeys(refused, "EPERM")
    assert (found["tcp"], found["address"]) == ("ECONNREFUSED", "ENETUNREACH")
    assert found["name"] not in {"did", "EPERM"}
    assert (found["port taken"], found["own server"]) == ("EADDRINUSE", "did")
    assert (run.connections, world.server.connections) == ((), 0)


@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    "text",
    [
        "curl -sS --noproxy '*' https://HOST/",
        "env -u https_proxy -u HTTPS_PROXY -u http_proxy curl -sS https://HOST/",
        "curl -sS -x socks5h://127.0.0.1:3128 https://HOST/",
        "curl -sS --connect-to ::127.0.0.1:PORT --noproxy '*' https://HOST/",
        "exec 3<>/dev/tcp/127.0.0.1/PORT",
        "git clone -q ssh://git@HOST/x.git",
    ],
)
def test_a_client_that_bypasses_the_proxy_cannot_connect(text: str, world: World) -> None:
    place = f"{HOST}:{world.server.port}"
    run = ran(world, text.replace("HOST", place).replace("PORT", str(world.server.port)))
    assert run.ended is not None, run.answer
    assert (run.ended.exit_code != 0, run.ended.stdout) == (True, b""), run
    assert {one.outcome for one in run.connections} <= {"refused"}
    assert world.server.connections == 0


def test_a_hello_naming_another_host_than_decided_is_refused(world: World) -> None:
    port = world.server.port
    run = ran(world, f"curl -sS --connect-to {OTHER}:{port}:{HOST}:{port} https://{OTHER}:{port}/")
    assert [(one.url, one.outcome) for one in run.connections] == [(f"https://{HOST}:{port}/", "other_name")]
    assert world.server.requests == []


def test_a_run_without_hosts_has_no_network_access(world: World) -> None:
    run = world.engine.run_shell(f"curl -sS {world.server.url()}", context=AGENT)
    assert run.ended is not None, run.answer
    assert (run.ended.exit_code != 0, run.connections) == (True, ())


@pytest.mark.full
def test_a_profile_without_egress_is_refused_for_a_run_with_hosts(world: World) -> None:
    run = world.engine.run_shell("true", hosts=(HOST,), profile="standard", context=AGENT)
    codes = sorted(one.code for one in run.answer.decision.findings)
    assert (run.ended, codes) == (None, ["egress_unsupported", "shell_not_permitted"])


@pytest.mark.full
def test_a_stop_closes_the_tunnel_and_ends_the_command(world: World) -> None:
    world.server.answers(drips([b"HTTP/1.1 200 OK\r\n\r\n"]))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(ran, world, f"curl -sS {world.server.url()}; sleep 100")
        until(lambda: world.server.requests)
        with stopped(world.engine):
            run = running.result(30)
    assert run.ended is not None, run.answer
    assert (run.ended.status.value, [one.outcome for one in run.connections]) == ("cancelled", ["cut"])


@pytest.mark.full
def test_received_bytes_and_connections_of_a_run_are_limited(world: World) -> None:
    values = (*world.values, "networks.tunnels.received_bytes=20000", "networks.tunnels.most=1")
    with Engine(replace(world.engine.settings), values=values) as engine:
        resolving(engine, world)
        world.server.answers(response(b"x" * 30_000))
        text = (
            f"curl -sS {world.server.url()} -o /dev/null; curl -sS {world.server.url()}; curl -sS {world.server.url()}"
        )
        run = engine.run_shell(text, hosts=(HOST,), context=AGENT)
    assert [one.outcome for one in run.connections] == ["received_limit", "refused"]
    assert run.connections[1].codes == ["request_budget_exhausted"]
