"""What a piece of media is measured as, whom an address leads to, and that no other host is ever looked up."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from engine.cases.run import Runner
from engine.documents.validation import FieldsError, validate
from engine.drive import run
from engine.errors import GatherError
from engine.flow import Context, answer
from engine.model import Mode, Outcome
from engine.points import GatherContext
from engine.points.media import POINT, MediaInput, MediaRequest, gather
from engine.settings import ReadLimits
from tests.expect import of, there

WORLD = GatherContext(clock=lambda: 0, boundaries=lambda: ())
ON = {
    "media": {
        "allow_url_media_sources": True,
        "url": {"schemes": ["https"], "hosts": ["a.example.org"], "max_bytes": 9},
    }
}
URL = {"kind": "image", "source_type": "url", "url": "https://a.example.org/a.png", "media_type": "image/png"}


def wrong_fields(request: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(FieldsError) as refused:
        validate(MediaRequest, json.dumps(request).encode(), "point `media`", "correct it", ReadLimits())
    return dict(refused.value.fields)


# covers: B39
@pytest.mark.parametrize(
    ("source_type", "words"),
    [("url", "`url`, and `bytes` if known"), ("base64", "`data`"), ("file", "`path`")],
)
def test_media_with_fields_of_another_source_type_is_answered_with_its_own(source_type: str, words: str) -> None:
    for other in ({"url": "https://a.example.org/", "data": "aGk=", "path": "a.png"}, {}):
        problem = f"is refused: with `source_type: {source_type}`, send {words}, and no other source"
        assert wrong_fields({"kind": "image", "source_type": source_type, **other}) == {"": problem}
    assert wrong_fields({"kind": "", "source_type": "base64", "data": "aGk="}) == {
        "kind": "must have 1 or more characters"
    }


# The lists of facts/fetch.md, section 3: local, special, multicast, metadata, IPv4 inside of IPv6 in every dress.
BLOCKED = (
    *("0.0.0.0", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.1", "100.100.100.200"),  # noqa: S104
    "100.127.255.255",
    *("127.0.0.1", "127.255.255.254", "169.254.0.1", "169.254.169.254", "169.254.170.2", "172.16.0.1"),
    *("172.31.255.255", "192.0.0.1", "192.0.0.8", "192.0.0.192", "192.0.2.1", "192.31.196.1", "192.52.193.1"),
    *("192.88.99.1", "192.168.0.1", "192.168.255.255", "192.175.48.1", "198.18.0.1", "198.19.255.255"),
    *("198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
    *("168.63.129.16", "::", "::1", "::2", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:8.8.8.8"),
    *("::ffff:0:7f00:1", "::ffff:0:808:808", "64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::1", "100::1"),
    *("100:0:0:1::1", "1000::1", "1fff:ffff::1", "2001::1", "2001:0:7f00:1::1", "2001:2::1", "2001:4:112::1"),
    *("2001:10::1", "2001:20::1", "2001:1ff::1", "2001:db8::1", "2002:7f00:1::1", "2002:808:808::1"),
    *("2620:4f:8000::1", "3fff::1", "3fff:fff::1", "4000::1", "5f00::1", "8000::1", "fc00::1", "fd00::1"),
    *("fd00:ec2::254", "fd20:ce::254", "fe80::1", "fec0::1", "feff::1", "ff02::1", "ff0e::1"),
    *("2606:4700::5efe:a00:1", "2606:4700::200:5efe:a00:1", "2a00:1450:4001:1:0:5efe:7f00:1"),
)

ALLOWED = (
    *("1.0.0.1", "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "93.184.216.34", "100.63.255.255"),
    *("100.128.0.0", "126.255.255.255", "128.0.0.1", "151.101.1.69", "168.63.129.15", "168.63.129.17"),
    *("169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.1", "192.167.255.255"),
    *("192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "2000::1", "2001:200::1"),
    *("2001:4860:4860::8888", "2001:db7::1", "2001:db9::1", "2003::1", "2400:cb00::1", "2606:4700:4700::1111"),
    *("2620:4f:7fff::1", "2620:4f:8001::1", "2a00:1450:4001::1", "3ffe::1", "3fff:1000::1"),
)


def asked(runner: Runner, addresses: tuple[str, ...] | None, url: str = URL["url"]) -> Any:
    """The decision on a URL whose host has these addresses, and the hosts that were looked up."""
    engine = runner.engine(ON)
    assert engine.services is not None
    looked_up: list[str] = []

    def look(host: str) -> tuple[str, ...] | None:
        looked_up.append(host)
        return addresses

    parts = replace(engine.services, gather_context=replace(engine.services.gather_context, addresses=look))
    return run(answer(POINT, {**URL, "url": url}, Mode.CHECK, parts, Context())).decision, looked_up


# covers: B40
def test_every_address_that_is_not_public_is_refused_and_every_public_one_is_not(runner: Runner) -> None:
    assert len(BLOCKED) + len(ALLOWED) >= 90
    assert len(set(BLOCKED) | set(ALLOWED)) == len(BLOCKED) + len(ALLOWED)
    decision, _ = asked(runner, BLOCKED + ALLOWED)
    refused = [finding.subject.removeprefix("addresses/") for finding in decision.findings if finding.subject]
    assert {finding.code for finding in decision.findings} == {"address_not_public"}
    assert sorted(refused) == sorted(BLOCKED)
    decision, _ = asked(runner, ALLOWED)
    assert decision.outcome is Outcome.ALLOW
    assert sorted(decision.limits.destinations[0].addresses) == sorted(ALLOWED)


def test_many_blocked_addresses_are_global_to_the_standard_library() -> None:
    """The control: these addresses are no easy ones."""
    let_through = [text for text in BLOCKED if ipaddress.ip_address(text).is_global]
    assert len(let_through) > 10


def test_each_blocked_address_alone_refuses_its_host(runner: Runner) -> None:
    for text in BLOCKED:
        decision, _ = asked(runner, (text,))
        assert [finding.code for finding in decision.findings] == ["address_not_public"], text


# covers: B40
@pytest.mark.parametrize(
    ("url", "looked_up"),
    [
        ("https://a.example.org/a.png", ["a.example.org"]),
        ("https://secret-of-the-prompt.evil.example.com/", []),
        ("https://b.a.example.org/", []),
        ("https://A.example.org/", []),
        ("http://a.example.org/", []),
        ("https://a.example.org@evil.example.com/", []),
        ("https://127.0.0.1/", []),
    ],
)
def test_only_a_host_listed_in_the_policy_is_looked_up(runner: Runner, url: str, looked_up: list[str]) -> None:
    """A lookup sends the host name to its name server, so it could leak secrets."""
    assert asked(runner, ("8.8.8.8",), url)[1] == looked_up


def test_the_shipped_policy_looks_up_no_host(runner: Runner) -> None:
    engine = runner.engine({})
    hosts = ("a.example.org", "data.example.org", "localhost")
    assert not any(
        engine.opa.ask("lib/gathering/host_looked_up", {"media": {"url": {"host": host}}}).defined for host in hosts
    )


def test_path_and_query_appear_only_in_the_digest() -> None:
    facts = _facts({**URL, "url": "https://a.example.org/canary?key=canary"})
    assert "canary" not in facts.model_dump_json()
    other = _facts({**URL, "url": "https://a.example.org/canary?key=other"})
    assert there(facts.media.url).digest != there(other.media.url).digest


def test_an_invalid_media_type_is_not_shown() -> None:
    assert _facts({**URL, "media_type": "canary with spaces"}).media.media_type is None


# Content that is brought


def test_base64_content_is_decoded_and_measured() -> None:
    data = b"any\x00content"
    media = _facts(_base64(base64.b64encode(data).decode())).media
    assert (media.readable, media.size.stated, media.size.bytes) == (True, True, len(data))
    assert media.digest == "sha256:" + hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    ("data", "types"),
    [
        (b"\x89PNG\r\n\x1a\n....", ("image/png", "image/x-png")),
        (b"\xff\xd8\xff\xe0", ("image/jpeg", "image/jpg", "image/pjpeg")),
        (b"GIF89a..", ("image/gif",)),
        (b"RIFF\n\n\n\nWEBPVP8 ", ("image/webp",)),
        (b"RIFF\x00\x00\x00\x00WAVEfmt ", ("audio/wav", "audio/x-wav", "audio/vnd.wave")),
        (b"%PDF-1.7\n", ("application/pdf", "application/x-pdf")),
        (b"fLaC\x00", ("audio/flac", "audio/x-flac")),
        (b"OggS\x00", ("audio/ogg", "video/ogg")),
        (b"ID3\x03", ("audio/mpeg", "audio/mp3", "audio/x-mp3")),
        (b"\xff\xfb\x90", ("audio/mpeg", "audio/mp3", "audio/x-mp3")),
        (b"\x00\x00\x00\x20ftypM4A ", ("audio/mp4", "audio/x-m4a", "video/mp4")),
        (b"\x00\x00\x00\x20ftypisom", ("audio/mp4", "audio/x-m4a", "video/mp4")),
        (b"\x00\x00\x00\x20ftypheic", ()),
        (b"\x00\x00\x00\x20ftypavif", ()),
        (b"\x1aE\xdf\xa3", ("audio/webm", "video/webm")),
        ("text, größer\r\n\tand more\f".encode(), ("text/*",)),
        (b"GIF", ("text/*",)),
        (b"\xff\xfeh\x00i\x00", ()),
        (b"cut \xc3", ()),
        (b"nul \x00", ()),
        (b"\x7fELF", ()),
        (b" \x89PNG\r\n\x1a\n", ()),
    ],
)
def test_media_types_are_detected_from_the_content(tmp_path: Path, data: bytes, types: tuple[str, ...]) -> None:
    (tmp_path / "a").write_bytes(data)
    assert _facts(_base64(base64.b64encode(data).decode())).media.types == types
    assert _facts(_file("a"), replace(WORLD, root=tmp_path)).media.types == types


def test_a_text_file_is_inspected_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("ü".encode() * (1 << 20) + b"\x00")
    (tmp_path / "b").write_bytes(b"x" + "ü".encode() * (1 << 20))  # letters over the borders of chunks
    assert _facts(_file("a"), replace(WORLD, root=tmp_path)).media.types == ()
    assert _facts(_file("b"), replace(WORLD, root=tmp_path)).media.types == ("text/*",)


@pytest.mark.parametrize(
    "text",
    ["YQ", "YQ=", "YR==", "YQ==YQ==", "YQ==\n", " YQ==", "Y-_=", "YQ=\u200b=", "é", "====", "data:,YQ=="],
)
def test_base64_has_one_spelling(text: str) -> None:
    media = _facts(_base64(text)).media
    assert (media.readable, media.size.bytes, media.digest) == (False, None, None)


def test_the_size_and_digest_of_a_file_are_measured(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("a")
    for path, root in (("a", tmp_path), (f"{tmp_path}/a", None), ("link", tmp_path)):
        media = _facts(_file(path), replace(WORLD, root=root)).media
        assert (media.readable, media.size.bytes) == (True, 3)
        assert media.digest == "sha256:" + hashlib.sha256(b"abc").hexdigest()


def test_only_regular_files_inside_the_root_are_readable(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (root / "plain").write_text("plain")
    (root / "out").symlink_to("../secret")
    (root / "sub/up").symlink_to("../../secret")
    (root / "sub/in").symlink_to("../plain")
    (root / "all").symlink_to("/")
    os.mkfifo(root / "pipe")

    def seen(path: str, root: Path = root) -> tuple[bool | None, bool | None]:
        media = _facts(_file(path), replace(WORLD, root=root)).media
        return media.readable, media.inside

    for path in ("out", "../secret", str(tmp_path / "secret"), "/", "sub/up", "all/etc/passwd", "sub/../../secret"):
        assert seen(path) == (False, False), path
    for path in ("pipe", "none", "sub", "sub/none/x"):
        assert seen(path) == (False, True), path
    assert seen("sub/in") == seen("plain") == (True, True)
    assert seen("plain", Path(os.devnull)) == (False, False)


def test_hard_links_of_a_file_are_counted(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "root/copy").hardlink_to(tmp_path / "secret")
    assert _facts(_file("copy"), replace(WORLD, root=tmp_path / "root")).media.names == 2


def test_a_file_beyond_what_is_ever_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    with pytest.raises(GatherError, match="larger than 2 bytes"):
        _facts(_file("a"), replace(WORLD, root=tmp_path, read=ReadLimits(content_bytes=2)))


@pytest.mark.parametrize(
    "change",
    [
        {"data": "YQ=="},
        {"path": "a"},
        {"url": None},
        {"source_type": "base64"},
        {"source_type": "ftp"},
        {"bytes": -1},
        {"bytes": True},
        {"bytes": 1 << 60},
        {"kind": ""},
        {"source_type": "base64", "url": None, "data": ""},
        {"source_type": "base64", "url": None, "data": "\ud800"},
        {"width": 1},
    ],
)
def test_a_request_has_exactly_one_source(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        MediaRequest.model_validate({**URL, **change})


def _base64(text: str) -> dict[str, Any]:
    return {"kind": "image", "source_type": "base64", "data": text, "media_type": "image/png"}


def _file(path: str) -> dict[str, Any]:
    return {"kind": "image", "source_type": "file", "path": path, "media_type": "image/png"}


def _facts(request: dict[str, Any], context: GatherContext = WORLD) -> MediaInput:
    return of(MediaInput, gather(MediaRequest.model_validate(request), context).input)
