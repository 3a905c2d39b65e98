"""Signatures of archives, made and verified by OPA itself: `opa sign`, and a build that demands one.

The signature is a JSON Web Token (ES256) over the digest of every file, in the file
`.signatures.json` of the archive; an OPA started with the public key verifies it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from engine.documents.files import printable, read_bytes
from engine.errors import GatherError
from engine.opa.command import OpaCommand
from engine.opa.packed import SIGNATURES, pack
from engine.policy_bundle.scratch import scratch

ALGORITHM = "ES256"

SIGNATURE_BYTES = 4 << 20
"""Of one `.signatures.json`: about 200 for each file that is signed, of which there are at most 5,000."""

_KEY_BYTES = 16 << 10
"""A key of this kind has about 200 bytes."""
_PRIVATE, _PUBLIC = b"PRIVATE KEY-----", b"-----BEGIN PUBLIC KEY-----"
_MAKE_KEY = "make one: `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out private.pem`"
_MAKE_PUBLIC = "take the public half: `openssl pkey -in private.pem -pubout -out public.pem`"


def public_key(path: Path) -> bytes:
    """The public key in PEM that releases must be signed with. Raises GatherError, also for a private key."""
    pem = read_bytes(path, _KEY_BYTES)
    if _PRIVATE in pem:
        raise GatherError(f"`{printable(str(path))}` contains a private key", remedy=_MAKE_PUBLIC)
    if not pem.lstrip().startswith(_PUBLIC):
        raise GatherError(f"`{printable(str(path))}` contains no PEM public key", remedy=_MAKE_PUBLIC)
    return pem


def sign(files: Mapping[str, bytes], key: Path, opa: OpaCommand) -> bytes:
    """What `.signatures.json` must be for these files. Raises GatherError for a key that cannot sign."""
    if _PRIVATE not in read_bytes(key, _KEY_BYTES):
        raise GatherError(f"`{printable(str(key))}` contains no PEM private key", remedy=_MAKE_KEY)
    with scratch() as folder:
        (folder / "unsigned.tar.gz").write_bytes(pack(files))
        signing = ("--signing-key", str(key.absolute()), "--signing-alg", ALGORITHM)
        finished = opa.run("sign", *signing, "--output-file-path", ".", "--bundle", "unsigned.tar.gz", cwd=folder)
        if finished.code != 0:
            reason = _first_line(finished.stdout or finished.stderr)
            raise GatherError(f"cannot sign with `{printable(str(key))}`: {reason}", remedy=_MAKE_KEY)
        return read_bytes(folder / SIGNATURES, SIGNATURE_BYTES, SIGNATURES)


def complaint(archive: bytes, key: bytes, opa: OpaCommand) -> str | None:
    """Why OPA refuses the signature of this archive with this key; None if it accepts it. Raises DecideError."""
    with scratch() as folder:
        (folder / "archive.tar.gz").write_bytes(archive)
        (folder / "public.pem").write_bytes(key)
        demand = ("--verification-key", "public.pem", "--signing-alg", ALGORITHM)
        finished = opa.run("build", *demand, "--bundle", "archive.tar.gz", "--output", "verified.tar.gz", cwd=folder)
        if finished.code == 0 and (folder / "verified.tar.gz").is_file():
            return None
        return _first_line(finished.stdout or finished.stderr)


def _first_line(output: bytes) -> str:
    text = output.decode("utf-8", "replace").strip().removeprefix("error: ")
    lines = text.removeprefix("load error: ").removeprefix("bundle archive.tar.gz: ").splitlines()
    return printable(lines[0] if lines else "OPA gives no reason")
