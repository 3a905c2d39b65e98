"""Keys made for one test run, releases of a small policy, and ways to do them harm."""

from __future__ import annotations

import io
import tarfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from cryptography.hazmat.primitives.serialization import PublicFormat as Public

from engine.documents.canonical import canonical, digest
from engine.opa.packed import MANIFEST, SIGNATURES, VALUES_DATA, pack, unpacked
from engine.opa.reply import RULES, VALUES
from engine.policy_bundle import archives
from engine.policy_bundle.build import PolicyBundle
from engine.policy_bundle.release import Authorship, approve_release, sign_release, write_release
from engine.policy_bundle.release_folder import (
    APPROVAL,
    CATALOGUE,
    STATEMENT,
    ReleaseApproval,
    Statement,
)
from tests.policy_bundle.trees import opa

MOMENT = datetime(2026, 11, 21, tzinfo=UTC)
AUTHOR, APPROVER = "author@example.org", "approver@example.org"


@dataclass(frozen=True, slots=True)
class Keys:
    """A private key with its public half, as PEM files; a second, encrypted form of the private one."""

    private: Path
    public: Path
    encrypted: Path

    @classmethod
    def make(cls, folder: Path, form: PrivateFormat = PrivateFormat.PKCS8) -> Keys:
        folder.mkdir(parents=True)
        key = ec.generate_private_key(ec.SECP256R1())
        keys = cls(folder / "private.pem", folder / "public.pem", folder / "encrypted.pem")
        keys.private.write_bytes(key.private_bytes(Encoding.PEM, form, NoEncryption()))
        keys.encrypted.write_bytes(key.private_bytes(Encoding.PEM, form, BestAvailableEncryption(b"secret")))
        keys.public.write_bytes(key.public_key().public_bytes(Encoding.PEM, Public.SubjectPublicKeyInfo))
        return keys


def released(bundle: PolicyBundle, folder: Path, keys: Keys | None, sequence: int = 1) -> Path:
    """A release of a policy that is approved, and signed where there are keys."""
    statement = write_release(bundle, folder, sequence, Authorship(AUTHOR, MOMENT), {"number": sequence})
    approve_release(folder, statement.digest, APPROVER, None, MOMENT)
    if keys is not None:
        sign_release(folder, keys.private, opa())
    return folder


def rewrite(archive: Path, changes: Mapping[str, bytes | None]) -> None:
    """Change, add or (None) remove members of an archive; whatever signature is in it stays."""
    files = {**unpacked(archive.read_bytes(), archive.name), **changes}
    archive.write_bytes(pack({name: data for name, data in files.items() if data is not None}))


def restate(folder: Path, **changes: object) -> None:
    """Make `release.json` say something else, in the form that the engine writes, and approve that."""
    statement = Statement.model_validate_json((folder / STATEMENT).read_bytes()).model_copy(update=changes)
    (folder / STATEMENT).write_bytes(statement.written)
    if (folder / APPROVAL).exists():
        approval = ReleaseApproval.model_validate_json((folder / APPROVAL).read_bytes())
        (folder / APPROVAL).write_bytes(approval.model_copy(update={"release": statement.digest}).written)


def forge_values(folder: Path, values: Mapping[str, object]) -> None:
    """Other values with the right revision everywhere, so that only signatures can tell."""
    data = canonical(dict(values))
    manifest, revision = archives.manifest({VALUES_DATA: data}, archives.VALUES_ROOT, {})
    rewrite(folder / VALUES, {VALUES_DATA: data, MANIFEST: manifest})
    restate(folder, values=revision)


def forge_rules(folder: Path, changes: Mapping[str, bytes | None]) -> None:
    """Other rules with the right revision everywhere."""
    files = unpacked((folder / RULES).read_bytes(), RULES)
    kept = {name: data for name, data in {**files, **changes}.items() if data is not None}
    content = {name: data for name, data in kept.items() if name not in {MANIFEST, SIGNATURES}}
    metadata = {"description": "A small policy", "name": "house", "owner": "compliance@example.org"}
    metadata[archives.WORDS] = digest((folder / CATALOGUE).read_bytes())
    manifest, revision = archives.manifest(content, archives.RULES_ROOT, metadata)
    rewrite(folder / RULES, {**changes, MANIFEST: manifest})
    restate(folder, rules=revision)


def forge_file(folder: Path, name: str, data: bytes) -> None:
    """Another catalogue.json or places.json with its digest wherever it is stated."""
    (folder / name).write_bytes(data)
    restate(folder, **{Path(name).stem: digest(data)})
    if name == CATALOGUE:
        forge_rules(folder, {})


def tar(members: Iterable[tuple[tarfile.TarInfo, bytes]], form: int = tarfile.USTAR_FORMAT) -> bytes:
    """An archive as tarfile writes it, with whatever members it is given."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=form) as writer:
        for member, data in members:
            member.size = len(data)
            writer.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def gzipped(data: bytes) -> bytes:
    return zlib.compress(data, 9, 31)
