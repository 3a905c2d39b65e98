"""Releases: a built policy as a folder that is signed on one machine and served on others, without sources.

A release is read once into memory. Exactly the verified bytes are stored in a private
folder and served from there, so that they cannot be replaced in between.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from engine.binaries import Binary
from engine.documents.canonical import canonical, digest
from engine.documents.files import printable
from engine.errors import GatherError, Location, PolicyError, Problem, reason_of
from engine.opa.command import OpaCommand
from engine.opa.packed import MANIFEST, SIGNATURES, VALUES_DATA, pack, unpacked
from engine.opa.reply import RULES, VALUES
from engine.policy_bundle.build import Archive, PolicyBundle
from engine.policy_bundle.last_release import LastRelease
from engine.policy_bundle.release_folder import (
    APPROVAL,
    CATALOGUE,
    CHANGES,
    PLACES,
    STATEMENT,
    Contents,
    ReleaseApproval,
    Statement,
    check,
    read,
)
from engine.policy_bundle.signing import complaint, public_key, sign
from engine.policy_bundle.sources import PolicySources
from engine.policy_bundle.store import keep, kept
from engine.times import time_text
from engine.version import __version__

_ALL = {MANIFEST: canonical({"roots": ["release"]})}
"""Makes all files of the folder one bundle, for OPA to sign and verify; it is never loaded."""

_UNVERIFIED = "name the public key of its signer, or have it signed with this key: `engine policy sign`"


@dataclass(frozen=True, kw_only=True)
class Release(PolicyBundle):
    """A policy ready to be served that came as a release.

    Its sources are elsewhere: rules and values are named as in the tree they were built from.
    """

    statement: Statement
    approver: str | None
    files: Mapping[str, bytes]
    """By name, as they were read and verified."""

    @property
    def release(self) -> dict[str, Any]:
        """Its number, digest, author, approver and notes."""
        stated = self.statement.model_dump(include={"name", "sequence", "author", "notes"})
        return {**stated, "digest": self.statement.digest, "approver": self.approver}


@dataclass(frozen=True, slots=True)
class Authorship:
    """Who writes a release, when (UTC), and with which notes."""

    author: str
    at: datetime
    notes: str = ""


def write_release(built: PolicyBundle, folder: Path, sequence: int, by: Authorship, changes: Any = None) -> Statement:
    """Write a policy as a release without approval and signature; the folder is filled whole or not at all.

    `changes` is what the release changes, as JSON. The folder is new or empty. Raises GatherError when it cannot be
    written, PolicyError when it is too large to be read.
    """
    catalogue, places, changed = built.catalogue.written, built.written_places, canonical(changes)
    try:
        statement = Statement(
            name=built.name,
            sequence=sequence,
            created_at=time_text(by.at),
            engine=__version__,
            author=by.author,
            notes=by.notes,
            rules=built.rules.revision,
            values=built.values.revision,
            catalogue=digest(catalogue),
            places=digest(places),
            changes=digest(changed),
        )
    except ValidationError as error:
        first = error.errors()[0]
        message = f"a release cannot state this as its {'.'.join(map(str, first['loc']))}: {first['msg'].lower()}"
        raise GatherError(message, remedy="author and notes are text within these limits") from error
    files = {STATEMENT: statement.written, CATALOGUE: catalogue, PLACES: places, CHANGES: changed}
    files |= {name: _unsigned(one.path) for name, one in ((RULES, built.rules), (VALUES, built.values))}
    check(files, folder)
    target = folder.absolute()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as partial:
            made = Path(partial) / "release"
            made.mkdir()
            for name, data in files.items():
                (made / name).write_bytes(data)
            made.rename(target)
    except OSError as error:
        raise _unwritable(folder, error, "name a new folder, in a folder that you may write to") from error
    return statement


def approve_release(folder: Path, release: str, approver: str, reason: str | None, at: datetime) -> ReleaseApproval:
    """Write the approval of the release with this digest into its folder; a signature of before is no longer valid.

    Raises PolicyError for a folder with another release or none, and for its author; GatherError if it cannot be
    written.
    """
    contents = read(folder)
    approval = ReleaseApproval(release=release, approver=approver, reason=reason, approved_at=time_text(at))
    check({**contents.files, APPROVAL: approval.written}, folder)
    try:
        _replace(folder, APPROVAL, approval.written)
    except OSError as error:
        raise _unwritable(folder, error, "copy the release to a folder that you may write to") from error
    return approval


def policy_of(folder: Path, contents: Contents) -> PolicyBundle:
    """The policy of a release in its folder, to be compared or released again; its author is not verified."""
    return PolicyBundle(**_parts(folder, contents))


def sign_release(folder: Path, key: Path, binary: Binary) -> Statement:
    """Sign a release in its folder, or replace its signature; `key` is a private key in PEM (EC, P-256).

    Raises PolicyError for a folder without a release that another person has approved, GatherError for a key that
    cannot sign.
    """
    opa = OpaCommand(binary.path)
    contents = read(folder)
    _demand_approval(contents, folder)
    files = {name: data for name, data in contents.files.items() if name != SIGNATURES}
    for name, unsigned in ((RULES, contents.rules), (VALUES, contents.values)):
        files[name] = pack({**unsigned, SIGNATURES: sign(unsigned, key, opa)})
    files[SIGNATURES] = sign({**files, **_ALL}, key, opa)
    try:
        for name in (RULES, VALUES, SIGNATURES):
            _replace(folder, name, files[name])
    except OSError as error:
        raise _unwritable(folder, error, "copy the release to a folder that you may write to") from error
    return contents.statement


def verify_release(folder: Path, key: Path, binary: Binary) -> Contents:
    """Check a release in its folder: every file, every digest, its approval, and that everything is signed with `key`.

    Raises PolicyError with all problems, GatherError for a key that cannot be used.
    """
    public = public_key(key)
    contents = read(folder)
    _demand_approval(contents, folder)
    _verify(contents, folder, public, binary, (RULES, VALUES))
    return contents


def load_release(folder: Path, key: Path | None, binary: Binary, cache: Path, after: LastRelease | None) -> Release:
    """The policy of a release. `after` is the last served release: see engine.policy_bundle.last_release.

    With `key`, a public key in PEM, everything must be approved and signed with it; None is for development only.
    Start OPA with the same key: it verifies the signatures within the two archives, which are not looked at here.
    Raises PolicyError for a release that is not valid or is older than `after`, GatherError for a
    key that cannot be used, DecideError when OPA or the cache cannot be used.
    """
    public = None if key is None else public_key(key)
    contents = read(folder)
    if public is not None:
        _demand_approval(contents, folder)
        _verify(contents, folder, public, binary)
    statement = contents.statement
    if after is not None and (problem := after.refuses(statement.last)) is not None:
        raise PolicyError((Problem(Location(str(folder / STATEMENT)), *problem),))
    return Release(
        **_parts(_kept(contents, cache), contents),
        statement=statement,
        approver=None if contents.approval is None else contents.approval.approver,
        files=contents.files,
    )


def _parts(folder: Path, contents: Contents) -> dict[str, Any]:
    """The fields of a policy whose archives are in this folder."""
    statement = contents.statement
    return {
        "name": statement.name,
        "rules": Archive(folder / RULES, statement.rules),
        "values": Archive(folder / VALUES, statement.values),
        "catalogue": contents.catalogue,
        "written_values": contents.values[VALUES_DATA],
        "written_places": contents.files[PLACES],
        "sources": PolicySources(Path("rego"), Path("policy"), Path("bundles") / statement.name),
    }


def _unsigned(archive: Path) -> bytes:
    """The bytes of an archive, without the signature of an earlier release of it."""
    data = archive.read_bytes()
    files = unpacked(data, archive.name)
    return data if files.pop(SIGNATURES, None) is None else pack(files)


def _demand_approval(contents: Contents, folder: Path) -> None:
    if contents.approval is None:
        message = f"no other person than the author, {contents.statement.author}, has approved this release"
        remedy = "have another person approve it: `engine policy approve`"
        raise PolicyError((Problem(Location(str(folder / APPROVAL)), printable(message), remedy),))


def _verify(contents: Contents, folder: Path, key: bytes, binary: Binary, archives: tuple[str, ...] = ()) -> None:
    """Demand OPA's word for all files together, and for these archives by themselves. Raises PolicyError."""
    opa = OpaCommand(binary.path)
    signed = {"": pack({**contents.files, **_ALL})} | {name: contents.files[name] for name in archives}
    found = [
        Problem(Location(str(folder / name)), f"the signature is not valid: {reason}", _UNVERIFIED)
        for name, archive in signed.items()
        if (reason := complaint(archive, key, opa)) is not None
    ]
    if found:
        raise PolicyError(tuple(found))


def _kept(contents: Contents, cache: Path) -> Path:
    """The private folder with exactly the content in memory. Raises DecideError."""
    served = {name: contents.files[name] for name in (STATEMENT, CATALOGUE, PLACES, CHANGES, RULES, VALUES)}
    name = digest(canonical({name: digest(data) for name, data in served.items()})).removeprefix("sha256:")
    folder = cache / "policy" / "releases"
    return folder / name if kept(folder, name) == served else keep(folder, name, served)


def _replace(folder: Path, name: str, data: bytes) -> None:
    partial = folder.parent / f".{folder.name}.{name}.{os.getpid()}.partial"
    try:
        partial.write_bytes(data)
        partial.replace(folder / name)
    finally:
        partial.unlink(missing_ok=True)


def _unwritable(folder: Path, error: OSError, remedy: str) -> GatherError:
    reason = reason_of(error)
    return GatherError(f"cannot write the release `{printable(str(folder))}`: {reason}", remedy=remedy)
