"""Releases: what was built and signed is served without its sources, and nothing else is."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from engine import __version__
from engine.documents.canonical import canonical, digest
from engine.errors import DecideError, GatherError, PolicyError
from engine.opa.command import OpaCommand
from engine.opa.packed import MANIFEST, PACKED_BYTES, SIGNATURES, VALUES_DATA, pack, unpacked
from engine.opa.reply import RULES, VALUES
from engine.policy_bundle import archives
from engine.policy_bundle import release as releases
from engine.policy_bundle.build import PolicyBundle
from engine.policy_bundle.release import (
    Authorship,
    Release,
    approve_release,
    load_release,
    sign_release,
    verify_release,
    write_release,
)
from engine.policy_bundle.release_folder import APPROVAL, CATALOGUE, CHANGES, PLACES, STATEMENT, read
from engine.policy_bundle.signing import sign
from tests.opa.served import DENIED, DOCUMENT, files, policy_of, serving
from tests.policy_bundle.releases import (
    APPROVER,
    AUTHOR,
    MOMENT,
    Keys,
    forge_file,
    forge_rules,
    forge_values,
    gzipped,
    released,
    restate,
    rewrite,
)
from tests.policy_bundle.trees import opa, policy, source

SIGNED = (APPROVAL, CATALOGUE, CHANGES, PLACES, RULES, STATEMENT, VALUES, SIGNATURES)
LAX = {"levels": {"levels": {}}, "licenses": {"licenses": {"MIT": "admit"}, "most": 9, "note": None}}
RULE = "admission/requirements/source/license.rego"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys.make(tmp_path_factory.mktemp("keys") / "one")


@pytest.fixture(scope="module")
def other_keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys.make(tmp_path_factory.mktemp("keys") / "other")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> PolicyBundle:
    return policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory, bundle: PolicyBundle, keys: Keys, other_keys: Keys) -> Path:
    """Signed releases that the tests copy: with our key, with another, and a later one of another policy."""
    folder = tmp_path_factory.mktemp("releases")
    released(bundle, folder / "ours", keys, 7)
    released(bundle, folder / "foreign", other_keys, 7)
    changed = policy(folder / "changed", {"policy/licenses.yaml": "licenses: {}\nmost: 9\n"})
    released(changed, folder / "later", keys, 8)
    return folder


@pytest.fixture
def release(originals: Path, tmp_path: Path) -> Path:
    """A release signed with our key, to be harmed."""
    return Path(shutil.copytree(originals / "ours", tmp_path / "release"))


def loaded(folder: Path, keys: Keys | None, tmp_path: Path) -> Release:
    return load_release(folder, None if keys is None else keys.public, opa(), tmp_path / "cache", None)


def refused(folder: Path, keys: Keys | None, tmp_path: Path) -> str:
    """All that is said of a release that is verified. One that is loaded is refused too, and nothing of it is kept."""
    with pytest.raises(PolicyError) as caught:
        loaded(folder, keys, tmp_path)
    assert not (tmp_path / "cache").exists()
    assert all(problem.remedy for problem in caught.value.problems)
    if keys is not None:
        with pytest.raises(PolicyError) as verified:
            verify_release(folder, keys.public, opa())
        said = str(verified.value)
        assert said.startswith(str(caught.value))  # it says more where the archives have another signature too
        return said
    return str(caught.value)


def serve(policy: PolicyBundle, key: Path | None) -> str:
    """What an OPA with this key does with these archives: the outcome of a clean request, or why it does not start."""
    try:
        with serving(files(policy, key)) as server:
            return str(server.ask("decision", source()).result["outcome"])
    except DecideError as error:
        return error.message


def test_a_loaded_release_equals_the_build(release: Path, bundle: PolicyBundle, keys: Keys, tmp_path: Path) -> None:
    got = loaded(release, keys, tmp_path)
    assert (got.name, got.revisions, got.catalogue) == (bundle.name, bundle.revisions, bundle.catalogue)
    assert (got.data, got.places, got.metadata) == (bundle.data, bundle.places, bundle.metadata)
    assert got.level("source", "admitted") == bundle.level("source", "admitted")
    assert got.module("source") == bundle.module("source")
    assert str(got.where("rego/admission/requirements/source/license.rego", 3)) == (
        "rego/admission/requirements/source/license.rego:3"
    )
    assert str(got.row(("licenses", "licenses", "MIT")).where) == "policy/licenses.yaml:2 (licenses.MIT)"
    for archive, built in ((got.rules, bundle.rules), (got.values, bundle.values)):
        files = archives.read(archive.path)
        assert files.pop(SIGNATURES)
        assert files == archives.read(built.path)
        assert archive.path.is_relative_to(tmp_path / "cache")


# covers: H13
def test_a_signed_release_is_served_by_an_opa_with_the_key(release: Path, keys: Keys, tmp_path: Path) -> None:
    assert serve(loaded(release, keys, tmp_path), keys.public) == "allow"


# covers: H13.4
def test_opa_itself_takes_no_unsigned_archive(bundle: PolicyBundle, keys: Keys) -> None:
    """The control: the same archives are served where no key is demanded."""
    assert "signature" in serve(bundle, keys.public)
    assert serve(bundle, None) == "allow"


# covers: H13
def test_opa_itself_takes_no_archive_of_another_key(
    originals: Path, keys: Keys, other_keys: Keys, tmp_path: Path
) -> None:
    got = loaded(originals / "foreign", other_keys, tmp_path)
    assert "signature" in serve(got, keys.public)
    assert serve(got, other_keys.public) == "allow"


def test_the_same_policy_gives_the_same_release(bundle: PolicyBundle, tmp_path: Path) -> None:
    """But for the time when it was built."""

    def files(moment: datetime) -> dict[str, bytes]:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        write_release(bundle, folder, 3, Authorship(AUTHOR, moment))
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    first, later = files(MOMENT), files(datetime(2027, 1, 1, tzinfo=UTC))
    assert files(MOMENT) == first
    assert {name for name, data in later.items() if first[name] != data} == {STATEMENT}
    statement = json.loads(first[STATEMENT])
    assert statement["catalogue"] == digest(first[CATALOGUE])
    assert statement["places"] == digest(first[PLACES])
    assert {name: statement[name] for name in ("format", "name", "sequence", "created_at", "engine")} == {
        "format": 1,
        "name": "house",
        "sequence": 3,
        "created_at": "2026-11-21T00:00:00Z",
        "engine": __version__,
    }
    assert (statement["rules"], statement["values"]) == (bundle.rules.revision, bundle.values.revision)


def test_signing_changes_no_revision_and_may_be_repeated(
    release: Path, bundle: PolicyBundle, other_keys: Keys, keys: Keys, tmp_path: Path
) -> None:
    before = (release / STATEMENT).read_bytes()
    sign_release(release, other_keys.private, opa())
    assert (release / STATEMENT).read_bytes() == before
    assert sorted(path.name for path in release.parent.iterdir()) == ["release"]
    assert loaded(release, other_keys, tmp_path).revisions == bundle.revisions
    with pytest.raises(PolicyError, match="is not valid"):
        verify_release(release, keys.public, opa())


def _strip_all(folder: Path) -> None:
    (folder / SIGNATURES).unlink()
    for name in (RULES, VALUES):
        rewrite(folder / name, {SIGNATURES: None})


def _of_other_release(name: str) -> Callable[[Path, Path], None]:
    def change(folder: Path, originals: Path) -> None:
        shutil.copyfile(originals / "later" / name, folder / name)

    return change


def _catalogue(folder: Path) -> None:
    text = (folder / CATALOGUE).read_bytes()
    forge_file(folder, CATALOGUE, text.replace(b"What must hold", b"Nothing at all"))


def _values_without_signature(folder: Path) -> None:
    forge_values(folder, LAX)
    rewrite(folder / VALUES, {SIGNATURES: None})


ATTACKS: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "unsigned": (_strip_all, ("missing .signatures.json",)),
    "stripped_of_the_folder": (lambda f: (f / SIGNATURES).unlink(), ("missing .signatures.json",)),
    "stripped_of_an_archive": (lambda f: rewrite(f / RULES, {SIGNATURES: None}), (RULES, "missing .signatures.json")),
    "other_values": (lambda f: forge_values(f, LAX), (VALUES, "digest mismatch")),
    "other_values_unsigned": (_values_without_signature, (VALUES, "missing .signatures.json")),
    "other_rule": (
        lambda f: forge_rules(f, {RULE: b"package admission.requirements.source.license\n"}),
        (RULES, "digest mismatch"),
    ),
    "added_rule": (
        lambda f: forge_rules(f, {"admission/added/a.rego": b"package admission.added.a\n"}),
        (RULES, "digest mismatch"),
    ),
    "removed_rule": (lambda f: forge_rules(f, {RULE: None}), (RULES, "digest mismatch")),
    "other_words": (_catalogue, ("digest mismatch",)),
    "other_places": (lambda f: forge_file(f, PLACES, b"[[],[]]"), ("digest mismatch",)),
    "other_sequence": (lambda f: restate(f, sequence=8), ("digest mismatch",)),
    "other_name": (lambda f: restate(f, name="home"), ("digest mismatch",)),
    "other_time": (lambda f: restate(f, created_at="2027-01-01T00:00:00Z"), ("digest mismatch",)),
    "signature_of_an_archive": (
        lambda f: (f / SIGNATURES).write_bytes(unpacked((f / RULES).read_bytes(), RULES)[SIGNATURES]),
        ("digest mismatch",),
    ),
}


# covers: H13
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_a_change_with_matching_digests_fails_the_signature(
    attack: tuple[Callable[[Path], object], tuple[str, ...]], release: Path, keys: Keys, tmp_path: Path
) -> None:
    """Every digest fits, so without a key it would be served: that is the control."""
    harm, words = attack
    harm(release)
    told = refused(release, keys, tmp_path)
    assert "the signature is not valid" in told
    assert all(word in told for word in words), told
    assert loaded(release, None, tmp_path).statement.format == 1


# covers: H13.4
def test_a_release_signed_by_another_key_is_refused(release: Path, other_keys: Keys, tmp_path: Path) -> None:
    told = refused(release, other_keys, tmp_path)
    assert told.count("failed to verify JWT signature") == 3


# covers: H13
@pytest.mark.parametrize("name", [RULES, VALUES, SIGNATURES])
def test_one_part_of_another_key(name: str, release: Path, originals: Path, keys: Keys, tmp_path: Path) -> None:
    shutil.copyfile(originals / "foreign" / name, release / name)
    assert "the signature is not valid" in refused(release, keys, tmp_path)


# covers: H13
@pytest.mark.parametrize("name", [RULES, VALUES])
def test_an_archive_of_another_key_under_a_valid_signature(
    name: str, release: Path, originals: Path, keys: Keys, tmp_path: Path
) -> None:
    """It can be loaded, and OPA does not serve it."""
    shutil.copyfile(originals / "foreign" / name, release / name)
    signed = {one: (release / one).read_bytes() for one in SIGNED if one != SIGNATURES} | releases._ALL
    (release / SIGNATURES).write_bytes(sign(signed, keys.private, OpaCommand(opa().path)))
    with pytest.raises(PolicyError, match="the signature is not valid"):
        verify_release(release, keys.public, opa())
    assert "the signature of the policy is not valid" in serve(loaded(release, keys, tmp_path), keys.public)


# covers: H13
@pytest.mark.parametrize("name", [name for name in SIGNED if name not in {RULES, CATALOGUE}])
def test_one_part_of_another_release_of_the_same_key(
    name: str, release: Path, originals: Path, keys: Keys, tmp_path: Path
) -> None:
    assert verify_release(originals / "later", keys.public, opa()).statement.sequence == 8
    shutil.copyfile(originals / "later" / name, release / name)
    refused(release, keys, tmp_path)


# covers: H13
@pytest.mark.parametrize("name", SIGNED)
def test_every_changed_or_missing_file_of_a_release_is_refused(
    name: str, release: Path, keys: Keys, tmp_path: Path
) -> None:
    good = (release / name).read_bytes()
    for at in range(0, len(good), max(len(good) // 6, 1)):
        (release / name).write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        refused(release, keys, tmp_path)
    longer = () if name == SIGNATURES else (good + b"x",)  # what stands after the signature says nothing
    for harmed in (b"", good[:-10], good[: len(good) // 2], *longer):
        (release / name).write_bytes(harmed)
        refused(release, keys, tmp_path)
    (release / name).unlink()
    assert str(release) in refused(release, keys, tmp_path)
    (release / name).write_bytes(good)
    assert loaded(release, keys, tmp_path).statement.sequence == 7


@pytest.mark.parametrize("name", ["extra.rego", "data.json", ".manifest", "release.json.bak", "a\nb"])
def test_a_file_too_many(name: str, release: Path, keys: Keys, tmp_path: Path) -> None:
    (release / name).write_bytes(b"{}")
    told = refused(release, keys, tmp_path)
    assert "does not belong to the release" in told
    assert "a\nb" not in told


def test_links_pipes_and_folders(release: Path, keys: Keys, tmp_path: Path) -> None:
    path = release / VALUES
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert "this is a link" in refused(release, keys, tmp_path)
    path.unlink()
    os.mkfifo(path)
    assert "not a regular file" in refused(release, keys, tmp_path)
    path.unlink()
    path.mkdir()
    refused(release, keys, tmp_path)


def test_a_missing_release_is_refused(keys: Keys, tmp_path: Path) -> None:
    assert "not a release" in refused(tmp_path / "none", keys, tmp_path)
    (tmp_path / "file").write_bytes(b"")
    assert "not a release" in refused(tmp_path / "file", keys, tmp_path)
    (tmp_path / "empty").mkdir()
    assert "the file is missing" in refused(tmp_path / "empty", keys, tmp_path)


def test_too_large(release: Path, keys: Keys, tmp_path: Path) -> None:
    with (release / VALUES).open("r+b") as file:
        file.truncate(PACKED_BYTES + 1)
    assert f"larger than {PACKED_BYTES} bytes" in refused(release, keys, tmp_path)
    (release / VALUES).write_bytes(gzipped(bytes(80 << 20)))
    assert "unpacks to more than" in refused(release, keys, tmp_path)


def _signed(folder: Path, keys: Keys) -> None:
    """Sign what our own `sign_release` would refuse to sign, so that only the other checks are left."""
    from engine.opa.command import OpaCommand
    from engine.policy_bundle.signing import sign

    command = OpaCommand(opa().path)
    for name in (RULES, VALUES):
        files = unpacked((folder / name).read_bytes(), name)
        files.pop(SIGNATURES, None)
        (folder / name).write_bytes(pack({**files, SIGNATURES: sign(files, keys.private, command)}))
    (folder / SIGNATURES).unlink(missing_ok=True)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    manifest = {MANIFEST: canonical({"roots": ["release"]})}
    (folder / SIGNATURES).write_bytes(sign({**files, **manifest}, keys.private, command))


def _manifest(revision: str, root: str = "policy") -> bytes:
    return canonical({"roots": [root], "rego_version": 2, "revision": revision})


def _list_for_values(folder: Path) -> None:
    manifest, revision = archives.manifest({VALUES_DATA: b"[]"}, archives.VALUES_ROOT, {})
    rewrite(folder / VALUES, {VALUES_DATA: b"[]", MANIFEST: manifest})
    restate(folder, values=revision)


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "rules_revision": (lambda f: restate(f, rules="sha256:" + "0" * 64), "not the digest of its content"),
    "values_revision": (lambda f: restate(f, values="sha256:" + "0" * 64), "not the digest of its content"),
    "manifest_revision": (
        lambda f: rewrite(f / VALUES, {".manifest": _manifest("sha256:" + "0" * 64)}),
        "not the digest of its content",
    ),
    "no_manifest": (lambda f: rewrite(f / RULES, {".manifest": None}), "not the digest of its content"),
    "more_roots": (
        lambda f: rewrite(f / VALUES, {".manifest": _manifest("x", "policy/licenses")}),
        "not the digest of its content",
    ),
    "changed_values": (lambda f: rewrite(f / VALUES, {VALUES_DATA: b"{}"}), "not the digest of its content"),
    "rego_in_values": (
        lambda f: rewrite(f / VALUES, {"policy/a.rego": b"package policy.a\n"}),
        "contains something other than",
    ),
    "data_in_rules": (lambda f: forge_rules(f, {"admission/data.json": b"{}"}), "is not a rule file"),
    "wasm_in_rules": (lambda f: forge_rules(f, {"policy.wasm": b"\0asm"}), "`policy.wasm` is not a rule file"),
    "wasm_in_values": (lambda f: rewrite(f / VALUES, {"policy.wasm": b"\0asm"}), "contains something other than"),
    "rule_outside_its_root": (
        lambda f: forge_rules(f, {"policy/a.rego": b"package policy.a\n"}),
        "is not a rule file",
    ),
    "values_that_are_no_object": (_list_for_values, "not a JSON object"),
    "catalogue_digest": (lambda f: (f / CATALOGUE).write_bytes(b"{}"), "its digest is not the one"),
    "places_digest": (lambda f: (f / PLACES).write_bytes(b"[[]]"), "its digest is not the one"),
    "catalogue_of_another_engine": (lambda f: forge_file(f, CATALOGUE, b'{"points":{},"new":1}'), "cannot read it"),
    "places_of_another_engine": (lambda f: forge_file(f, PLACES, b"[[1]]"), "cannot read it"),
    "statement_with_a_key_twice": (
        lambda f: _edit(f, b'"name":"house"', b'"name":"home","name":"house"'),
        "not in the form",
    ),
    "statement_with_more": (
        lambda f: _edit(f, b'"format":1', b'"format":1,"more":1'),
        "not a release statement",
    ),
    "statement_of_another_format": (
        lambda f: _edit(f, b'"format":1', b'"format":2'),
        "not a release statement",
    ),
    "statement_with_odd_name": (
        lambda f: _edit(f, b'"house"', b'"../house"'),
        "not a release statement",
    ),
    "sequence_zero": (lambda f: _edit(f, b'"sequence":7', b'"sequence":0'), "not a release statement"),
    "sequence_as_text": (
        lambda f: _edit(f, b'"sequence":7', b'"sequence":"7"'),
        "not a release statement",
    ),
}


def _edit(folder: Path, old: bytes, new: bytes) -> None:
    data = (folder / STATEMENT).read_bytes()
    assert old in data
    (folder / STATEMENT).write_bytes(data.replace(old, new))


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_signature_alone_is_not_enough(
    wrong: tuple[Callable[[Path], object], str], release: Path, keys: Keys, tmp_path: Path
) -> None:
    harm, words = wrong
    harm(release)
    _signed(release, keys)
    assert words in refused(release, keys, tmp_path)
    assert words in refused(release, None, tmp_path)
    with pytest.raises(PolicyError):
        sign_release(release, keys.private, opa())


def test_the_signing_helper_of_these_tests_is_accepted(release: Path, keys: Keys, tmp_path: Path) -> None:
    """The control of the test above."""
    _signed(release, keys)
    assert loaded(release, keys, tmp_path).statement.sequence == 7


# covers: H13
def test_a_release_swapped_after_verification_is_not_served(
    release: Path, bundle: PolicyBundle, originals: Path, keys: Keys, tmp_path: Path
) -> None:
    got = loaded(release, keys, tmp_path)
    shutil.rmtree(release)
    shutil.copytree(originals / "later", release)
    assert serve(got, keys.public) == "allow"
    assert got.revisions == bundle.revisions
    assert got.data == bundle.data
    assert loaded(release, keys, tmp_path).revisions != bundle.revisions


def test_a_kept_release_that_was_changed_is_not_served(
    release: Path, originals: Path, keys: Keys, tmp_path: Path
) -> None:
    """Damage is mended, and so is a change whose note was changed with it."""
    got = loaded(release, keys, tmp_path)
    good, other = got.values.path.read_bytes(), (originals / "later" / VALUES).read_bytes()
    got.values.path.write_bytes(other)
    assert loaded(release, keys, tmp_path).values.path.read_bytes() == good
    note = got.values.path.with_name("note.json")
    digests = json.loads(note.read_bytes())
    got.values.path.write_bytes(other)
    note.write_text(json.dumps(digests | {VALUES: sha256(other).hexdigest()}), encoding="utf-8")
    assert loaded(release, keys, tmp_path).values.path.read_bytes() == good


def test_an_old_cached_release_is_used_again(release: Path, keys: Keys, tmp_path: Path) -> None:
    got = loaded(release, keys, tmp_path)
    os.utime(got.values.path.parent, (1, 1))
    assert loaded(release, keys, tmp_path).values.path.read_bytes() == got.values.path.read_bytes()


# covers: H13
def test_a_rollback_is_refused(release: Path, originals: Path, keys: Keys, tmp_path: Path) -> None:
    def after(folder: Path, last: Release) -> Release:
        return load_release(folder, keys.public, opa(), tmp_path / "cache", last.statement.last)

    older, later = loaded(release, keys, tmp_path), loaded(originals / "later", keys, tmp_path)
    assert after(release, older).revisions == older.revisions
    assert after(originals / "later", older).revisions == later.revisions
    with pytest.raises(PolicyError, match="rollback: release 7 is older than 8"):
        after(release, later)


def test_the_same_sequence_with_other_content(release: Path, keys: Keys, tmp_path: Path) -> None:
    last = loaded(release, keys, tmp_path).statement.last
    harms: tuple[Callable[[Path], object], ...] = (
        lambda folder: restate(folder, created_at="2027-01-01T00:00:00Z"),
        lambda folder: forge_values(folder, LAX),
    )
    for harm in harms:
        harm(release)
        sign_release(release, keys.private, opa())
        with pytest.raises(PolicyError, match="another release with the sequence 7"):
            load_release(release, keys.public, opa(), tmp_path / "cache", last)


def test_a_release_of_another_policy(release: Path, keys: Keys, tmp_path: Path) -> None:
    last = loaded(release, keys, tmp_path).statement.last
    restate(release, name="home", sequence=9)
    sign_release(release, keys.private, opa())
    with pytest.raises(PolicyError, match="of the policy `home`; `house` was served last"):
        load_release(release, keys.public, opa(), tmp_path / "cache", last)


def test_a_private_key_is_refused_where_releases_are_verified(release: Path, keys: Keys, tmp_path: Path) -> None:
    with pytest.raises(GatherError, match="contains a private key"):
        load_release(release, keys.private, opa(), tmp_path / "cache", None)
    with pytest.raises(GatherError, match="contains a private key"):
        verify_release(release, keys.private, opa())
    with pytest.raises(GatherError, match="contains no PEM private key"):
        sign_release(release, keys.public, opa())


def test_the_folder_of_a_new_release(bundle: PolicyBundle, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    released(bundle, tmp_path / "empty", None)
    released(bundle, tmp_path / "new" / "deep", None)
    before = {path.name: path.read_bytes() for path in (tmp_path / "empty").iterdir()}
    with pytest.raises(GatherError, match="cannot write the release"):
        released(bundle, tmp_path / "empty", None, 2)
    assert {path.name: path.read_bytes() for path in (tmp_path / "empty").iterdir()} == before
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(GatherError, match="cannot write the release"):
            released(bundle, path, None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file", "new"]


def test_an_unusable_cache_is_reported(release: Path, keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(b"")
    with pytest.raises(DecideError, match="cannot be used"):
        loaded(release, keys, tmp_path)


def test_a_real_policy_fits(keys: Keys, cache: Path, tmp_path: Path) -> None:
    """The repository's own policy, far below every limit."""
    built = policy_of(cache)
    folder = released(built, tmp_path / "release", keys)
    got = loaded(folder, keys, tmp_path)
    assert (got.revisions, got.data, got.places) == (built.revisions, built.data, built.places)
    assert max(path.stat().st_size for path in folder.iterdir()) < PACKED_BYTES // 10
    with serving(files(got, keys.public)) as server:
        assert server.ask("decision", DOCUMENT).result == DENIED


def test_a_release_needs_an_approver_other_than_its_author(bundle: PolicyBundle, keys: Keys, tmp_path: Path) -> None:
    folder = tmp_path / "release"
    statement = write_release(bundle, folder, 1, Authorship(AUTHOR, MOMENT))
    with pytest.raises(PolicyError, match="has approved this release"):
        sign_release(folder, keys.private, opa())
    with pytest.raises(PolicyError, match="the approver is the author of the release"):
        approve_release(folder, statement.digest, AUTHOR, None, MOMENT)
    with pytest.raises(PolicyError, match="it approves another release"):  # the folder changed after it was looked at
        approve_release(folder, f"sha256:{'0' * 64}", APPROVER, None, MOMENT)
    assert not (folder / APPROVAL).exists()
    approval = approve_release(folder, statement.digest, APPROVER, "seen", MOMENT)
    assert (approval.release, approval.approver, approval.reason) == (statement.digest, APPROVER, "seen")
    sign_release(folder, keys.private, opa())
    assert loaded(folder, keys, tmp_path).release["approver"] == APPROVER


@pytest.mark.parametrize(
    "by", [Authorship("", MOMENT), Authorship(AUTHOR, MOMENT, "n" * 2_001)], ids=["author", "notes"]
)
def test_an_invalid_author_or_note_is_refused(bundle: PolicyBundle, tmp_path: Path, by: Authorship) -> None:
    with pytest.raises(GatherError, match=r"a release cannot state this as its (author|notes): string should have at "):
        write_release(bundle, tmp_path / "release", 1, by)
    assert not [*tmp_path.iterdir()]


def test_an_approval_counts_only_for_its_release_and_as_it_was_signed(
    release: Path, originals: Path, keys: Keys, tmp_path: Path
) -> None:
    (release / APPROVAL).write_bytes((originals / "later" / APPROVAL).read_bytes())
    assert "it approves another release" in refused(release, keys, tmp_path)
    for data in (b"", b"{}", b"null", b"[" * 1_000):
        (release / APPROVAL).write_bytes(data)
        assert "this is not an approval of a release" in refused(release, keys, tmp_path)
    other = Path(shutil.copytree(originals / "ours", tmp_path / "other"))
    approve_release(other, read(other).statement.digest, "other@example.org", None, MOMENT)
    (release / APPROVAL).write_bytes((tmp_path / "other" / APPROVAL).read_bytes())
    assert "the signature is not valid" in refused(release, keys, tmp_path)
    (release / APPROVAL).unlink()
    assert "has approved this release" in refused(release, keys, tmp_path)


def test_an_earlier_content_is_released_again_under_a_new_number(
    originals: Path, keys: Keys, bundle: PolicyBundle, tmp_path: Path
) -> None:
    """Signed archives lose the signature of before, and the content stays as it was."""
    again = tmp_path / "again"
    old = releases.policy_of(originals / "ours", read(originals / "ours"))
    statement = write_release(old, again, 9, Authorship(AUTHOR, MOMENT))
    approve_release(again, statement.digest, APPROVER, None, MOMENT)
    sign_release(again, keys.private, opa())
    later = loaded(originals / "later", keys, tmp_path).statement.last
    with pytest.raises(PolicyError, match="this is a rollback"):
        load_release(originals / "ours", keys.public, opa(), tmp_path / "cache", later)
    got = load_release(again, keys.public, opa(), tmp_path / "cache", later)
    assert (got.statement.sequence, got.revisions, got.data) == (9, bundle.revisions, bundle.data)
