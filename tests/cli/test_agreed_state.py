"""Every command on a state whose engines have agreed on a release: it works, or says which option it needs."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from engine.binaries import find_binary
from engine.cli import options
from engine.errors import Exit
from engine.points.registry import POINTS
from engine.policy_bundle.build import build
from engine.policy_bundle.sources import PolicySources
from engine.state import open_store
from tests.api.serving import ALLOWED
from tests.command import Command, Run, decisions
from tests.conftest import BUNDLES, ROOT
from tests.policy_bundle.releases import Keys, released

NEEDED = "--releases DIR --release-key FILE"
REFUSING = ("licenses.licenses.MIT.decision=refuse",)
"""The agreed release refuses what the shipped policy admits."""


@dataclass(frozen=True, slots=True)
class Made:
    keys: Keys
    releases: Path

    @property
    def options(self) -> tuple[str | Path, ...]:
        return ("--releases", self.releases, "--release-key", self.keys.public)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Made:
    folder = tmp_path_factory.mktemp("made")
    keys = Keys.make(folder / "keys")
    for number, values in ((1, REFUSING), (2, ())):
        sources = PolicySources(ROOT / "rego", ROOT / "policy", ROOT / "bundles" / "default", values)
        released(build(sources, POINTS, find_binary(), cache), folder / "releases" / f"r{number}", keys, number)
    return Made(keys, folder / "releases")


@pytest.fixture(scope="module")
def activated(made: Made, tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """A state with the agreed release."""
    command = Command.of(tmp_path_factory.mktemp("activated"), cache)
    done = command("policy", "activate", made.releases / "r1", "--release-key", made.keys.public)
    assert done.code == 0, done.stderr
    return command.state


@pytest.fixture
def agreed(command: Command, activated: Path) -> Command:
    """A person whose state has the agreed release; nothing serves."""
    shutil.copytree(activated, command.state)
    return command


@pytest.fixture
def request_file(tmp_path: Path) -> Path:
    path = tmp_path / "request.json"
    path.write_text(json.dumps(ALLOWED))
    return path


PREFIX = ("--principal", "agent", "--cwd", "/work", "--tool", "shell", "--", "git", "status")
VERBS: dict[str, tuple[str, ...]] = {
    "check": ("check", str(BUNDLES / "offline_fixture")),
    "decide": ("decide", "license", "-i", "REQUEST"),
    "input": ("policy", "input", "license", "-i", "REQUEST"),
    "retain": ("record", "retain", "--keep-days", "400"),
    "issue": ("tokens", "issue", "--principal", "ci", "--point", "license", "--days", "1"),
    "prefix": ("tools", "prefixes", "approve", *PREFIX),
    "tools list": ("tools", "list"),
    "tools explain": ("tools", "explain", "shell"),
    "lift": ("stop", "lift", "5" * 32, "--reason", "over"),
    "end": ("agent", "end", "5" * 32),
    "leave": ("policy", "leave", "--reason", "each team has its own"),
}


def run(command: Command, verb: str, request: Path, *options: str | Path) -> Run:
    """A command, with options before its `--`."""
    line = [str(request) if one == "REQUEST" else one for one in VERBS[verb]]
    cut = line.index("--") if "--" in line else len(line)
    return command(*line[:cut], *options, *line[cut:])


@pytest.mark.parametrize("verb", VERBS)
def test_without_the_releases_a_command_says_what_it_needs_and_with_them_it_works(
    agreed: Command, made: Made, request_file: Path, verb: str
) -> None:
    if verb == "retain":
        agreed("decide", "license", "-i", request_file, *made.options)  # it needs a record
    refused = run(agreed, verb, request_file)
    assert refused.code != 0
    assert NEEDED in " ".join((refused.stdout + refused.stderr).split()), refused
    assert refused.stderr.count("\n") < 12, refused.stderr
    done = run(agreed, verb, request_file, *made.options)
    assert "policy_stale" not in done.stdout + done.stderr
    assert NEEDED not in done.stdout + done.stderr, done


def test_the_release_decides_and_not_the_shipped_policy(agreed: Command, made: Made, request_file: Path) -> None:
    own = agreed("decide", "license", "-i", request_file, *made.options)
    assert (own.code, "license_incompatible" in own.stdout) == (Exit.DENY, True)


def test_activating_the_active_release_again_changes_nothing_and_says_so(agreed: Command, made: Made) -> None:
    again = ("policy", "activate", made.releases / "r1", "--release-key", made.keys.public, "--reason", "once more")
    done = agreed(*again)
    assert (done.code, "it is active already; nothing was changed" in done.stderr) == (0, True), done
    assert "once more" not in agreed("policy", "status").stdout


def test_stopping_needs_no_policy_and_lifting_does(agreed: Command, made: Made) -> None:
    done = agreed("stop", "all")
    assert done.code == 0, done.stderr
    with closing(open_store(agreed.state)) as store:
        (stop,) = store.stops_in_force()
    lift = ("stop", "lift", stop.id, "--reason", "over")
    assert agreed(*lift).code != 0
    assert agreed(*lift, *made.options).code == 0


@pytest.mark.parametrize("named", ["policy", "values"])
def test_a_dry_run_may_use_a_named_policy(agreed: Command, request_file: Path, tmp_path: Path, named: str) -> None:
    """An edit is tried beside engines that go on under their release; nothing is enforced under it."""
    shutil.copytree(ROOT / "policy", tmp_path / "policy")
    own, tried = ("--policy", tmp_path / "policy"), ("--values", "licenses.licenses.MIT.decision=admit")
    option = own if named == "policy" else tried
    lines = [("check", BUNDLES / "offline_fixture"), ("policy", "input", "license", "-i", request_file)]
    lines += [("decide", "license", "-i", request_file, *tried)]
    for line in lines:
        done = agreed(*line, *option)
        assert "the engines of this state decide under release 1 of `default`, not under this policy" in done.stderr
        assert "policy_stale" not in done.stdout
    assert {one["mode"] for one in decisions(agreed.state)} == {"check"}
    refused = agreed("decide", "license", "-i", request_file, *own)
    assert (refused.code, NEEDED in " ".join(refused.stdout.split())) == (Exit.FAILED_CLOSED, True)


def test_a_bulk_run_under_another_policy_is_refused(agreed: Command, tmp_path: Path) -> None:
    if find_spec("ray") is None:  # importing it here would settle how later tests of this process reach Ray
        pytest.skip("the extra `ray` is not installed")
    from tests.ray.samples import COLUMNS_YAML

    rows, columns = tmp_path / "rows.jsonl", tmp_path / "columns.yaml"
    rows.write_text('{"text": "one"}\n')
    columns.write_text(COLUMNS_YAML)
    line = ("check", rows, "--ray", "local", "--columns", columns, "--into", tmp_path / "run")
    agreed(*line, "--policy", ROOT / "policy").refused("agreed on another release", code=Exit.FAILED_CLOSED)
    assert not [*(tmp_path / "run").glob("manifest.json")]


def test_leaving_an_agreement_is_decided_under_its_release(agreed: Command, made: Made, request_file: Path) -> None:
    leave = ("policy", "leave", *made.options)
    assert "reason_missing" in agreed(*leave).stderr
    done = agreed(*leave, "--reason", "each team has its own")
    assert (done.code, "left     release 1 of default" in done.stdout) == (0, True), done.stderr
    assert agreed("decide", "license", "-i", request_file).code == 0
    assert agreed("decide", "license", "-i", request_file, *made.options).code == Exit.DENY
    status = agreed("policy", "status").stdout
    assert "by user:" in status
    assert ": each team has its own" in status
    acts = [one for one in decisions(agreed.state) if one["point"] == "administration"]
    assert [(one["outcome"], one["input"]["act"]) for one in acts] == [
        ("deny", "leave_agreement"),
        ("allow", "leave_agreement"),
    ]
    agreed(*leave, "--reason", "again").refused("have agreed on no release", code=Exit.UNREADABLE)


def test_leaving_without_an_agreement_is_refused(command: Command, request_file: Path) -> None:
    command("policy", "leave", "--reason", "x").refused("has no state")
    command("decide", "license", "-i", request_file)
    command("policy", "leave", "--reason", "x").refused("have agreed on no release", code=Exit.UNREADABLE)


def test_a_policy_that_is_named_outranks_releases_of_variables(
    agreed: Command, made: Made, request_file: Path, tmp_path: Path
) -> None:
    """A terminal that is set up for the engines tries an edit as any other."""
    shutil.copytree(ROOT / "policy", tmp_path / "policy")
    env = {"ENGINE_RELEASES": str(made.releases), "ENGINE_RELEASE_KEY": str(made.keys.public)}
    line = ("policy", "input", "license", "-i", request_file)
    assert "not under this policy" not in agreed(*line, env=env).stderr
    tried = agreed(*line, "--policy", tmp_path / "policy", env=env)
    assert (tried.code, "not under this policy" in tried.stderr) == (0, True), tried.stderr
    own = ("--policy", tmp_path / "policy")
    agreed(*line, *own, *made.options).refused("a release brings its own rules and values")
    agreed(*line, env=env | {"ENGINE_POLICY": str(tmp_path / "policy")}).refused("brings its own rules and values")


def test_a_long_running_command_follows_activations(agreed: Command, made: Made) -> None:
    """As a proxy in front of a server of MCP."""
    sources = options.Sources(state=options.StateAt(agreed.state), releases=made.releases, release_key=made.keys.public)
    with sources.engine("license", follow=True) as engine:
        assert engine.decide("license", ALLOWED).exit is Exit.DENY
        done = agreed("policy", "activate", made.releases / "r2", "--release-key", made.keys.public)
        assert (done.code, "engines  1 serve it" in done.stdout) == (0, True), done.stderr
        assert engine.decide("license", ALLOWED).exit is Exit.ALLOW


def test_values_beside_a_release_are_refused(command: Command, made: Made, request_file: Path) -> None:
    """They had no effect."""
    one = ("--release", made.releases / "r1", "--release-key", made.keys.public)
    command("decide", "license", "-i", request_file, *one, "--values", "a=b").refused("brings its own rules and values")
