"""With a verification key OPA serves what was signed with it, unchanged, and nothing else."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine.binaries import find_binary
from engine.errors import DecideError
from engine.opa import packed
from engine.opa.command import OpaCommand
from engine.opa.server import Served, Server
from engine.opa.supervisor import Supervisor
from engine.policy_bundle.build import Archive, PolicyBundle
from tests.expect import there
from tests.opa.served import DENIED, DOCUMENT, LIMITS, Events, files
from tests.policy_bundle.releases import Keys

Members = dict[str, bytes]


def members(archive: Path) -> Members:
    return packed.unpacked(archive.read_bytes(), archive.name)


def pack(found: Members, archive: Path) -> Path:
    """An archive of exactly these files."""
    archive.write_bytes(packed.pack(found))
    return archive


def signed(archive: Path, secret: Path, into: Path) -> Path:
    """The same archive with signatures, as `opa sign` makes them."""
    into.mkdir()
    options = ("--signing-alg", "ES256", "--signing-key", str(secret), "--output-file-path", str(into))
    done = OpaCommand(find_binary().path).run("sign", "--bundle", *options, str(archive))
    assert done.code == 0, done.stderr
    return pack({**members(archive), ".signatures.json": (into / ".signatures.json").read_bytes()}, into / "a.tar.gz")


@pytest.fixture(scope="module")
def release(policy: PolicyBundle, tmp_path_factory: pytest.TempPathFactory) -> Served:
    """A policy that was signed, and the key that says so."""
    folder = tmp_path_factory.mktemp("release")
    keys = Keys.make(folder / "keys")
    rules = signed(policy.rules.path, keys.private, folder / "rules")
    values = signed(policy.values.path, keys.private, folder / "values")
    return Served(rules, values, policy.revisions, keys.public)


def edited(release: Served, folder: Path, edit: Callable[[Members], object]) -> Served:
    found = members(release.values)
    edit(found)
    return replace(release, values=pack(found, folder / "edited.tar.gz"))


def tampered(release: Served, folder: Path) -> Served:
    def edit(found: Members) -> None:
        before = found["policy/data.json"]
        found["policy/data.json"] = before.replace(b"false", b"true", 1)
        assert found["policy/data.json"] != before

    return edited(release, folder, edit)


def added_to(release: Served, folder: Path) -> Served:
    return edited(release, folder, lambda found: found.update({"policy/more/data.json": b'{"more": true}'}))


def taken_from(release: Served, folder: Path) -> Served:
    return edited(release, folder, lambda found: found.pop("policy/data.json"))


def with_another_revision(release: Served, folder: Path) -> Served:
    """The revision stands in the manifest, and that is signed too."""

    def edit(found: Members) -> None:
        found[".manifest"] = found[".manifest"].replace(release.revisions.values.encode(), b"sha256:" + b"0" * 64)

    return edited(release, folder, edit)


def without_a_key(release: Served, folder: Path) -> Served:
    (folder / "empty.pem").write_bytes(b"")
    return replace(release, verification_key=folder / "empty.pem")


FAULTS = (tampered, added_to, taken_from, with_another_revision, without_a_key)


@pytest.mark.parametrize("fault", FAULTS)
def test_an_archive_without_a_valid_signature_is_refused(
    fault: Callable[[Served, Path], Served], release: Served, tmp_path: Path
) -> None:
    server = Server.start(find_binary(), fault(release, tmp_path), LIMITS)
    try:
        with pytest.raises(DecideError) as caught:
            server.ready()
        assert caught.value.code == "policy_unavailable"
        assert "the signature of the policy is not valid" in caught.value.message
        assert not server.alive
    finally:
        server.close()


def test_a_supervisor_keeps_to_its_key(policy: PolicyBundle, release: Served, tmp_path: Path) -> None:
    ours = replace(
        policy,
        rules=Archive(release.rules, policy.rules.revision),
        values=Archive(release.values, policy.values.revision),
    )
    public = Path(shutil.copyfile(there(release.verification_key), tmp_path / "key.pem"))
    events = Events()
    supervisor = Supervisor(find_binary(), ours, lambda one: files(one, public), LIMITS, events)
    try:
        with pytest.raises(DecideError) as caught:
            supervisor.activate(policy, lambda _: None)
        assert "signature" in caught.value.message
        assert supervisor.current.ask("decision", DOCUMENT).result == DENIED
        public.unlink()
        pid = there(supervisor.current.pid)
        os.kill(pid, signal.SIGKILL)
        events.wait("opa_restarted")  # with the key that it was started with
        assert supervisor.current.ask("decision", DOCUMENT).result == DENIED
        assert b"--verification-key" in Path(f"/proc/{supervisor.current.pid}/cmdline").read_bytes()
    finally:
        supervisor.close()
