"""`engine policy build --output`, `sign` and `verify`: from sources to a release that may be trusted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from engine.errors import Exit
from engine.opa.packed import MANIFEST, SIGNATURES
from engine.opa.reply import VALUES
from engine.policy_bundle import archives
from engine.policy_bundle.release_folder import CHANGES, STATEMENT
from engine.settings import Settings
from tests.command import Command, Run
from tests.policy_bundle.releases import Keys, forge_values, restate

NOW = "2026-11-21T00:00:00Z"


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys.make(tmp_path / "keys")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> tuple[Path, Run]:
    """The first release of the repository's own policy, not signed, and what was said when it was built."""
    command = Command.of(tmp_path_factory.mktemp("original"), cache)
    folder = command.home / "one"
    build = ("policy", "build", "--output", folder, "--sequence", "1", "--now", NOW, "--author", "user:author")
    return folder, command(*build, "--notes", "the first one")


@pytest.fixture
def build(command: Command, original: tuple[Path, Run]) -> Run:
    """A copy of it at `one`, to be signed or harmed."""
    folder, run = original
    shutil.copytree(folder, command.home / "one")
    return run


def drop_a_requirement(rego: Path) -> str:
    """Remove one requirement of a topic that has several; gives its code."""
    path = rego / "admission/requirements/source/export.rego"
    parts = path.read_text(encoding="utf-8").split("# METADATA\n")
    kept = [part for part in parts if "code: export_forbidden\n" not in part]
    path.write_text("# METADATA\n".join(kept), encoding="utf-8")
    return "export_forbidden"


# covers: H13
def test_build_sign_verify(command: Command, build: Run, keys: Keys) -> None:
    folder = command.home / "one"
    assert (build.code, build.stderr) == (0, "")
    statement = json.loads((folder / STATEMENT).read_bytes())
    told = f"release 1 of default, built {NOW}\nrules    {statement['rules']}\nvalues   {statement['values']}\n"
    assert build.stdout == f"written  {told}"
    lonely = command("policy", "sign", folder, "--key", keys.private)
    assert (lonely.code, lonely.stdout) == (Exit.POLICY_INVALID, "")
    assert "no other person than the author, user:author, has approved this release" in lonely.stderr
    approved = command("policy", "approve", folder, "--reason", "reviewed")
    assert (approved.code, approved.stderr) == (0, "")
    people = approved.stdout.removeprefix(f"approved {told}")
    assert people.startswith("author   user:author\napproved by user:")
    again = command("policy", "approve", folder)
    assert again.code == Exit.POLICY_INVALID
    assert f"{people.split()[-1]} approved this release already, at 20" in again.stderr
    assert len(command("record", "show", "--format", "json", "--point", "administration").json["entries"]) == 1
    unsigned = command("policy", "verify", folder, "--release-key", keys.public)
    assert unsigned.code == Exit.POLICY_INVALID
    assert unsigned.stdout == ""
    assert "missing .signatures.json" in unsigned.stderr
    assert unsigned.stderr.endswith("3 problems\n")
    signed = command("policy", "sign", folder, "--key", keys.private)
    assert (signed.code, signed.stdout, signed.stderr) == (0, f"signed   {told}", "")
    verified = command("policy", "verify", folder, "--release-key", keys.public)
    assert (verified.code, verified.stdout, verified.stderr) == (0, f"verified {told}{people}", "")
    manifest = json.loads(archives.read(folder / VALUES)[MANIFEST])
    assert manifest["revision"] == statement["values"]


# covers: H13
@pytest.mark.full
def test_verify_names_the_failing_part(command: Command, build: Run, keys: Keys, tmp_path: Path) -> None:
    assert build.code == 0
    folder = command.home / "one"
    assert command("policy", "approve", folder).code == 0
    assert command("policy", "sign", folder, "--key", keys.private).code == 0
    other = command("policy", "verify", folder, "--release-key", Keys.make(tmp_path / "other").public)
    assert other.code == Exit.POLICY_INVALID
    assert "failed to verify JWT signature" in other.stderr
    forge_values(folder, {"levels": {}})
    forged = command("policy", "verify", folder, "--release-key", keys.public)
    assert forged.code == Exit.POLICY_INVALID
    assert f"{folder / VALUES}: the signature is not valid" in forged.stderr
    restate(folder, values="sha256:" + "0" * 64)
    wrong = command("policy", "verify", folder, "--release-key", keys.public)
    assert wrong.code == Exit.POLICY_INVALID
    assert "is not the digest of its content" in wrong.stderr
    (folder / SIGNATURES).write_bytes(b"")
    shutil.rmtree(folder)
    assert command("policy", "verify", folder, "--release-key", keys.public).code == Exit.UNREADABLE


@pytest.mark.full
def test_the_number_follows_that_of_the_release_before(command: Command, build: Run) -> None:
    assert build.code == 0
    one, two = command.home / "one", command.home / "two"
    assert (
        command("policy", "build", "--output", two, "--after", one, "--now", NOW, "--author", "user:author").code == 0
    )
    first, second = (json.loads((folder / STATEMENT).read_bytes()) for folder in (one, two))
    changes = json.loads((two / CHANGES).read_bytes())
    assert (changes["after"]["sequence"], changes["difference"]["values"], changes["replay"]) == (1, [], None)
    assert second == first | {"sequence": 2, "notes": "", "changes": second["changes"]}
    restate(one, name="home")
    other = command("policy", "build", "--output", command.home / "three", "--after", one)
    assert other.code == Exit.UNREADABLE
    assert "of the policy `home`, not of `default`" in other.stderr
    (one / STATEMENT).write_bytes(b"{}")
    damaged = command("policy", "build", "--output", command.home / "three", "--after", one)
    assert damaged.code == Exit.POLICY_INVALID
    assert not (command.home / "three").exists()


@pytest.mark.full
def test_each_code_removed_since_the_previous_release_is_named(
    command: Command, build: Run, keys: Keys, tmp_path: Path
) -> None:
    """By the build of the next release and by its verification, though the inventory has dropped it too."""
    assert build.code == 0
    one, two, rego = command.home / "one", command.home / "two", tmp_path / "rego"
    shutil.copytree(Settings().rego, rego)
    inventory, dropped = rego / "inventory.yaml", drop_a_requirement(rego)
    kept = command("policy", "build", "--output", two, "--after", one, "--rego", rego)
    assert kept.code == Exit.POLICY_INVALID
    assert f"the code `{dropped}` of `source` must exist" in kept.stderr
    lines = inventory.read_text(encoding="utf-8").splitlines(keepends=True)
    inventory.write_text("".join(line for line in lines if line != f"  - {dropped}\n"), encoding="utf-8")
    built = command("policy", "build", "--output", two, "--after", one, "--rego", rego, "--author", "user:author")
    assert (built.code, built.stdout.splitlines()[-1]) == (0, f"removed  source: {dropped}")
    for folder in (one, two):
        assert command("policy", "approve", folder).code == 0
        assert command("policy", "sign", folder, "--key", keys.private).code == 0
    verified = command("policy", "verify", two, "--release-key", keys.public, "--after", one)
    assert (verified.code, verified.stdout.splitlines()[-1]) == (0, f"removed  source: {dropped}")
    assert "removed" not in command("policy", "verify", one, "--release-key", keys.public, "--after", two).stdout


@pytest.mark.full(after=2)
@pytest.mark.parametrize(
    "arguments",
    [
        ("--output", "x"),
        ("--output", "x", "--sequence", "1", "--after", "y"),
        ("--output", "x", "--sequence", "0"),
        ("--output", "x", "--sequence", "1", "--now", "today"),
        ("--sequence", "1"),
        ("--after", "y"),
    ],
)
def test_contradictory_or_invalid_build_options_are_refused(
    command: Command, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    run = command("policy", "build", *arguments, cwd=tmp_path)
    assert run.code == Exit.UNREADABLE
    assert not (tmp_path / "x").exists()


@pytest.mark.full
def test_keys_of_the_wrong_kind(command: Command, build: Run, keys: Keys, tmp_path: Path) -> None:
    assert build.code == 0
    folder = command.home / "one"
    assert command("policy", "approve", folder).code == 0
    for wrong in (keys.public, keys.encrypted, tmp_path / "none.pem"):
        run = command("policy", "sign", folder, "--key", wrong)
        assert run.code == Exit.UNREADABLE
        assert not (folder / SIGNATURES).exists()
    for wrong in (keys.private, tmp_path / "none.pem"):
        assert command("policy", "verify", folder, "--release-key", wrong).code == Exit.UNREADABLE
    assert command("policy", "verify", folder).code == Exit.UNREADABLE
