"""Sealed secrets: opened with one key, for one place, unchanged, and by adapters only."""

from __future__ import annotations

import ast
import base64
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, x25519
from pydantic import SecretStr

from admission_adapters.runner.sealed import Opener, SealedSecretError, seal
from engine.errors import GatherError
from tests.command import Command, Run
from tests.project.test_architecture import modules

SECRET, PLACE = "canary-provider-key", "secrets/PROVIDER_KEY"


def keys(folder: Path, name: str = "runner") -> tuple[Path, Path]:
    """A private and a public key, as openssl writes them."""
    key = x25519.X25519PrivateKey.generate()
    private, public = folder / f"{name}.pem", folder / f"{name}.pub.pem"
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    public.write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    return private, public


def test_a_sealed_secret_opens_with_its_key_at_its_place(tmp_path: Path) -> None:
    private, public = keys(tmp_path)
    one, other = seal(SECRET, PLACE, public), seal(SECRET, PLACE, public)
    assert one != other
    assert SECRET not in one
    opener = Opener(private)
    assert opener.open(SecretStr(one), PLACE) == SECRET
    assert opener.open(SecretStr(other), PLACE) == SECRET
    assert opener.open(SecretStr(seal("é\U0001f511", "trace", public)), "trace") == "é\U0001f511"
    for plain in (SECRET, "", "sealed:1:", "sealed:1:short", f" {one}", "sealed:2:" + "A" * 90):
        assert opener.open(SecretStr(plain), PLACE) == plain
        assert Opener(None).open(SecretStr(plain), PLACE) == plain


@pytest.mark.parametrize("wrong", ["no key", "another key", "another place", "changed", "shorter"])
def test_a_missing_or_wrong_key_place_or_ciphertext_reveals_nothing(tmp_path: Path, wrong: str) -> None:
    private, public = keys(tmp_path)
    text, place, key = seal(SECRET, PLACE, public), PLACE, private
    if wrong == "no key":
        opener = Opener(None)
    else:
        key = keys(tmp_path, "other")[0] if wrong == "another key" else private
        opener = Opener(key)
    place = "mcp_servers/evil/X-Key" if wrong == "another place" else PLACE
    if wrong == "changed":
        text = text[:40] + ("A" if text[40] != "A" else "B") + text[41:]
    if wrong == "shorter":
        text = text[:-8]
    with pytest.raises(SealedSecretError) as found:  # the class is what a failed call names
        opener.open(SecretStr(text), place)
    assert found.value.code == "engine.secret_sealed"
    assert SECRET not in str(found.value)
    assert text not in str(found.value)


def test_keys_of_another_kind_are_refused(tmp_path: Path) -> None:
    private, public = keys(tmp_path)
    curve = tmp_path / "curve.pem"
    curve.write_bytes(
        ec.generate_private_key(ec.SECP256R1()).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    text = tmp_path / "text.pem"
    text.write_text("nothing")
    for path in (public, curve, text, tmp_path / "missing.pem"):
        with pytest.raises(GatherError, match="private X25519 key"):
            Opener(path)
    for path in (private, curve, text, tmp_path / "missing.pem"):
        with pytest.raises(GatherError, match="public X25519 key"):
            seal(SECRET, PLACE, path)


def test_the_shortest_sealed_secret_is_recognized(tmp_path: Path) -> None:
    """The shortest one too: the facts and the adapter agree on the form."""
    private, public = keys(tmp_path)
    shortest = seal("x", "trace", public)
    assert len(base64.b64decode(shortest.removeprefix("sealed:1:") + "==", altchars=b"-_")) == 32 + 16 + 1
    assert Opener(private).open(SecretStr(shortest), "trace") == "x"


def test_the_command_seals_for_the_places_of_a_run_only(command: Command, tmp_path: Path) -> None:
    private, public = keys(tmp_path)

    def sealed(place: str) -> Run:
        return command("runner", "seal", place, "--public-key", public, stdin=f"{SECRET}\n")

    for place in ("tool_callback", "trace", "secrets/KEY", "mcp_servers/docs/X-Key"):
        assert Opener(private).open(SecretStr(sealed(place).stdout.strip()), place) == SECRET
    for place in ("tool-callback", "traces", "secrets", "secrets/", "mcp_servers/docs", ""):
        sealed(place).refused("holds no secret of a run; name `tool_callback`")


# covers: D32.1
def test_only_adapters_of_the_runner_open_secrets() -> None:
    """Nothing else has the code: neither the path of a decision nor the gate in front of a runner."""
    openers = {
        name
        for name, path in modules().items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and ast.unparse(node).endswith("opener.open")
    }
    assert openers == {"admission_adapters.runner.callback"}
