"""Signatures are OPA's: it makes them, it verifies them, and no other token passes for one."""

from __future__ import annotations

import base64
import hmac
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from engine.errors import GatherError
from engine.opa.command import OpaCommand
from engine.opa.packed import SIGNATURES, pack
from engine.policy_bundle.signing import complaint, public_key, sign
from tests.expect import there
from tests.policy_bundle.releases import Keys
from tests.policy_bundle.trees import opa

FILES = {".manifest": b'{"roots": ["a"]}', "a/x.rego": b"package a.x\n\ny := 1\n", "words.json": b'{"a": 1}'}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys.make(tmp_path_factory.mktemp("keys") / "one")


@pytest.fixture(scope="module")
def token(keys: Keys) -> bytes:
    return sign(FILES, keys.private, OpaCommand(opa().path))


def said(files: dict[str, bytes], keys: Keys) -> str | None:
    return complaint(pack(files), public_key(keys.public), OpaCommand(opa().path))


def test_a_signed_archive_is_accepted(keys: Keys, token: bytes) -> None:
    assert said({**FILES, SIGNATURES: token}, keys) is None


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_both_forms_of_private_keys_sign(form: PrivateFormat, tmp_path: Path) -> None:
    keys = Keys.make(tmp_path / "keys", form)
    assert said({**FILES, SIGNATURES: sign(FILES, keys.private, OpaCommand(opa().path))}, keys) is None


def test_nothing_of_the_private_key_is_in_the_signature(keys: Keys, token: bytes) -> None:
    lines = keys.private.read_bytes().splitlines()
    assert not any(line in token for line in lines)
    header, payload, _ = json.loads(token)["signatures"][0].split(".")
    assert json.loads(_decoded(header)) == {"alg": "ES256", "typ": "JWT"}
    assert sorted(one["name"] for one in json.loads(_decoded(payload))["files"]) == sorted(FILES)


# covers: H13
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({SIGNATURES: None}, "bundle missing .signatures.json file"),
        ({"a/x.rego": b"package a.x\n\ny := 2\n"}, "a/x.rego: digest mismatch"),
        ({"words.json": b'{"a": 2}'}, "words.json: digest mismatch"),
        ({".manifest": b'{"roots": ["a", "b"]}'}, ".manifest: digest mismatch"),
        ({"a/z.rego": b"package a.z\n"}, "not included in bundle signature"),
        ({"words.json": None}, "not found in the target bundle"),
        ({SIGNATURES: b'{"signatures": []}'}, "missing JWT"),
        ({SIGNATURES: b"{}"}, "bundle missing .signatures.json file"),
        ({SIGNATURES: b""}, ""),
    ],
)
def test_a_changed_signed_archive_is_refused(
    changes: dict[str, bytes | None], reason: str, keys: Keys, token: bytes
) -> None:
    files = {**FILES, SIGNATURES: token, **changes}
    found = there(said({name: data for name, data in files.items() if data is not None}, keys))
    assert reason in found


# covers: H13
def test_a_signature_of_another_key_is_refused(token: bytes, tmp_path: Path) -> None:
    found = there(said({**FILES, SIGNATURES: token}, Keys.make(tmp_path / "other")))
    assert "failed to verify JWT signature" in found


# covers: H13
@pytest.mark.parametrize("algorithm", ["HS256", "none", "ES384"])
def test_a_signature_of_another_algorithm_is_refused(algorithm: str, keys: Keys, token: bytes) -> None:
    """Also not the one for which the public key would be the secret."""
    payload = json.loads(token)["signatures"][0].split(".")[1].encode()
    signed = _encoded(json.dumps({"alg": algorithm, "typ": "JWT"}).encode()) + b"." + payload
    secret = keys.public.read_bytes()
    mac = {"HS256": hmac.digest(secret, signed, "sha256"), "none": b"", "ES384": bytes(96)}[algorithm]
    forged = json.dumps({"signatures": [(signed + b"." + _encoded(mac)).decode()]}).encode()
    assert said({**FILES, SIGNATURES: forged}, keys) is not None


def test_a_malformed_archive_is_refused(keys: Keys) -> None:
    assert complaint(b"no archive", public_key(keys.public), OpaCommand(opa().path)) is not None


def _rsa() -> bytes:
    key = rsa.generate_private_key(65537, 2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def test_keys_that_cannot_sign(keys: Keys, tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    parameters = b"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
    for data in (b"", b"secret", keys.public.read_bytes(), keys.encrypted.read_bytes(), _rsa(), parameters):
        path.write_bytes(data)
        with pytest.raises(GatherError) as caught:
            sign(FILES, path, OpaCommand(opa().path))
        assert "openssl genpkey" in caught.value.remedy
    with pytest.raises(GatherError, match="no such file"):
        sign(FILES, tmp_path / "none.pem", OpaCommand(opa().path))


def test_keys_that_are_not_public(keys: Keys, tmp_path: Path) -> None:
    """A private key would verify too, and must not lie where releases are served."""
    with pytest.raises(GatherError, match="contains a private key"):
        public_key(keys.private)
    for data in (b"", b"secret", b"ssh-ed25519 AAAA"):
        (tmp_path / "key.pem").write_bytes(data)
        with pytest.raises(GatherError, match="no PEM public key"):
            public_key(tmp_path / "key.pem")
    with pytest.raises(GatherError, match="no such file"):
        public_key(tmp_path / "none.pem")


def _encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")
