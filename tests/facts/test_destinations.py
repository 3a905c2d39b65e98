"""Every place that text would lead to is found, and only its one spelling has an origin."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.facts.net.destinations import MOST, destinations, url_destinations, urls, without_urls
from engine.facts.net.hosts import PROGRAM_ENDINGS, host_origin, word_host
from engine.facts.net.urls import reached
from engine.facts.text.disguises import undisguised
from tests.expect import there
from tests.lanes import examples

A, B = "https://a.example.com", "https://b.example.com"

CANONICAL = {
    f"{A}/": [A],
    f"{A}/x?y=1": [A],
    f"{A}:8443/": [f"{A}:8443"],
    f"see {A}/x, and {B}/y.": [A, B],
    f"({A}/x)": [A],
    f"<{A}/>": [A],
    f"{A}/\n{B}/": [A, B],
    f"{A}/?u={B}/": [A, B],
    f"{A}/{B}/": [A, B],
    f"evil.example.org/?u={A}/": ["https://evil.example.org", A],
    "http://127.0.0.1:8080/x?y=1": ["http://127.0.0.1:8080"],
    "http://[::1]/": ["http://[::1]"],
    "docs.example.com": ["https://docs.example.com"],
    " docs.example.com\n": ["https://docs.example.com"],
    "docs.example.com:8443": ["https://docs.example.com:8443"],
    "docs.example.com/x?y=1": ["https://docs.example.com"],
    "xn--mnchen-3ya.example": ["https://xn--mnchen-3ya.example"],
    "localhost:8080": ["http://localhost:8080"],
    "127.0.0.1": ["http://127.0.0.1"],
    "[::1]:8080": ["http://[::1]:8080"],
    "::1": ["http://[::1]"],
    "http://evil.org/": ["http://evil.org"],
    f"{A}": [A],
    f"see {A}, or {B}.": [A, B],
    f"{A}/#x": [A],
    f"{A}?a[b]=c&d=\u00e9#e": [A],
    f"{A}/%2e%2e/": [A],
    "https://1.2.3.4/": ["https://1.2.3.4"],
    "https://[2001:db8::1]/": ["https://[2001:db8::1]"],
    "http://169.254.169.254/latest/meta-data": ["http://169.254.169.254"],
    "169.254.169.254": ["https://169.254.169.254"],
    "1.2.3.4:80": ["https://1.2.3.4:80"],
    "192.168.1.1/24": ["https://192.168.1.1"],
}

HIDDEN = [
    # another scheme, or a scheme written so that only some clients see it
    "ftp://a.example.com/",
    "ws://a.example.com/",
    "file:///etc/passwd",
    "gopher://x",
    "javascript:alert(1)",
    "data:text/html,x",
    "data:text/html;base64,eA==",
    "data:image/svg+xml;base64,eA==",
    "data:image/png,x",
    "x +//evil.org",
    "data:image/png;base64,eA==,x",
    "data:image/png;base64,eA==//evil.org",
    "mailto:bob@example.com",
    "https:evil.org",
    "https:/evil.org/",
    "https:/\\evil.org",
    "https:\\\\evil.org",
    "//evil.org/x",
    "\\\\evil.org\\share",
    "see //evil.org/x",
    "HTTPS://a.example.com/",
    "https://A.example.com/",
    "https://a.example.com./",
    "https://a.example.com:443/",
    "http://a.example.com:80/",
    "https://a.example.com:/",
    "https://[::ffff:1.2.3.4]/",
    "https://[::ffff:7f00:1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[2001:DB8::1]/",
    "https://[2001:db8:0::1]/",
    "https://[fe80::1%25eth0]/",
    "https://01.2.3.4/",
    "https://a.example.com/\u200b",
    # a user before the host, and hosts hidden by one
    "https://user:word@a.example.com/",
    "https://a.example.com@evil.org/",
    "https://a.example.com\\@evil.org/",
    "http://127.0.0.1@evil.org/",
    "user:word@evil.org",
    "user@evil.org/x",
    "git@evil.org:owner/name.git",
    # control characters, inside of what clients strip and what they keep
    "https://a.example.com\x00.evil.org/",
    "ht\ntps://evil.org/",
    "https:\r\n//evil.org/",
    "https:" + "\n" * 20 + "//evil.org/",
    "evil\n.org",
    # escapes
    "%68ttps://evil.org/",
    "https%3A%2F%2Fevil.org%2F",
    "https%253A%252F%252Fevil.org",
    "%2f%2fevil.org",
    "docs%2Eexample%2Ecom",
    "&#104;ttps://evil.org/",
    "https&colon;//evil.org/",
    "\\u0068ttps://evil.org/",
    "https:\\/\\/evil.org/",
    # other letters
    "\uff48\uff54\uff54\uff50\uff53\uff1a\uff0f\uff0fevil.org/",
    "\uff44ocs.example.com",
    "https://evil\u3002org/",
    "evil\u200b.org",
    "m\u00fcnchen.example",
    "Docs.Example.com",
    "docs.example.com.",
    # addresses
    "127.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "2001:db8::1",
    "::ffff:127.0.0.1",
    "fe80::1",
    "LOCALHOST",
    "localhost.",
    "evil.org/" + "a" * 3_000,
    "2852039166",
    "2852039166/x",
    "3232235521",
    "127.1:80/x",
    "0:80",
    "1.5/x",
    "::1/x",
    "root@::1",
    "build:8080",
    "build:80/x",
    "git@build:repository",
]

NOWHERE = [
    "",
    "notes.txt",
    "archive.tar.gz",
    "bob@example.com",
    "text/html",
    "and/or",
    "data: something",
    "data:image/png;base64,iVBORw0KGgo=",
    "![logo](data:image/jpeg;base64,/9j/4AAQ+//8=)",
    "iVBORw0K+//cd",
    "foo: bar",
    "key:value",
    "std::string",
    "12:30:45",
    "12:30",
    "2026/11/22",
    "3/4",
    "page:1",
    "10.1",
    "172.16",
    "secrets/key",
    "aa:bb:cc:dd:ee:ff",
    "1.5",
    "3.11",
    "1.2.3",
    "20261122",
    "0x1f4a9",
    "java.lang.NullPointerException: no value, see java.base/jdk.internal",
    "0815",
    "e.g.",
    "a//b",
    "// comment",
    "50% & more",
    "evil and good",
    "\uff26\uff55\uff4c\uff4c \uff57\uff49\uff44\uff54\uff48",
]


# covers: B07
@pytest.mark.parametrize("text", CANONICAL)
def test_a_destination_in_its_one_spelling_has_an_origin(text: str) -> None:
    assert [found.origin for found in destinations(text)] == CANONICAL[text]


@pytest.mark.parametrize("text", HIDDEN)
def test_a_destination_in_any_other_spelling_has_none(text: str) -> None:
    found = destinations(text)
    assert found
    assert not any(one.canonical or one.origin for one in found)


@pytest.mark.parametrize("text", [f"{A}\t.evil.org/", f"{A}\n.evil.org/"])
def test_a_host_continued_after_whitespace_is_found(text: str) -> None:
    assert [found.origin for found in destinations(text)] == [A, None]


@pytest.mark.parametrize("text", NOWHERE)
def test_ordinary_text_has_no_destination(text: str) -> None:
    assert destinations(text) == []


@pytest.mark.parametrize("hidden", [text for text in HIDDEN if urls(text)])
def test_a_canonical_url_does_not_hide_a_disguised_one(hidden: str) -> None:
    for text in (f"{A}/ {hidden}", f"{hidden} {A}/"):
        assert not all(found.canonical for found in destinations(text)), text


def test_the_url_of_an_escaped_query_is_found() -> None:
    assert [found.canonical for found in destinations(f"{A}/?u=https%3A%2F%2Fevil.org%2F")] == [True, False]
    assert [found.origin for found in url_destinations(f"{A}/?u={B}/")] == [A, B]


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        (f"{A}/?x=1", A),
        ("http://127.0.0.1:8080/?x=1", "http://127.0.0.1:8080"),
        ("http://127.0.0.1:8080/?x=<", None),
        ("http://127.0.0.1:8080/?", "http://127.0.0.1:8080"),
        ("http://127.0.0.1:8080/#x", "http://127.0.0.1:8080"),
        ("", None),
        ("docs.example.com", None),
    ],
)
def test_a_declared_url_is_one_url(text: str, origin: str | None) -> None:
    assert reached(text).origin == origin


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (A, "/"),
        (f"{A}?q", "/"),
        (f"{A}/v1/x?y#z", "/v1/x"),
        (f"{A}/a%20b", "/a%20b"),
        *[(f"{A}{path}", None) for path in (
            "/v1/../x", "/v1/%2e%2e/x", "/v1/%2E%2E/x", "/v1/..;/x", "/v1/.;a=b/x", "//v1/", "/v1//x", "/%76", "/a%2fb",
            "/a%2Fb", "/a%5Cb", "/a%252e", "/a%00", "/a[b]", "/\u00e9",
        )],
    ],
)  # fmt: skip
def test_the_path_of_a_url_is_known_only_in_one_reading(text: str, path: str | None) -> None:
    assert reached(text).canonical
    assert reached(text).path == path


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("docs.example.com", "https://docs.example.com"),
        ("docs.example.com:8443", "https://docs.example.com:8443"),
        ("localhost", "http://localhost"),
        ("127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("::1", "http://[::1]"),
        ("docs.example.com:443", None),
        ("docs.example.com/", None),
        ("bob@docs.example.com", None),
        ("docs", None),
        ("docs.example.com ", None),
        ("127.0.0.1:80", None),
        ("127.1", None),
        ("10.0.0.1", "https://10.0.0.1"),
        ("2130706433", None),
        ("", None),
        ("x" * 3_000, None),
    ],
)
def test_a_declared_host_is_one_host(text: str, origin: str | None) -> None:
    assert (host_origin(text).origin, host_origin(text).canonical) == (origin, origin is not None)


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("notes.pl", "https://notes.pl"),
        ("Notes.PL.", "https://notes.pl"),
        ("notes.txt:8443/x", "https://notes.txt:8443"),
        ("user@notes.pl:folder/file", "https://notes.pl"),
        ("notes.pl:443", "https://notes.pl"),
        ("docs.example.com", "https://docs.example.com"),
    ],
)
def test_a_word_may_be_a_host_with_an_origin(text: str, origin: str) -> None:
    found = there(word_host(text))
    assert (found.facts.origin, found.label, found.remote) == (origin, False, ":" in text or "@" in text)


@pytest.mark.parametrize(
    "text",
    ["evil", "EVIL", "evil:x", "evil::module", "user@evil", "@evil", "evil/x", "a_b.c", "v1.2", "1.5", "20261122",
     "3.11", "evil:99999", "user:word@evil", "evil-.org"],
)  # fmt: skip
def test_a_word_may_be_a_host_that_no_rule_can_state(text: str) -> None:
    found = there(word_host(text))
    assert (found.facts.canonical, found.label) == (False, True)


@pytest.mark.parametrize(
    "text",
    ["0", "0/x", "0:80", "127.1", "127.1:80/x", "2852039166", "2852039166/x", "0x7f.1", "10.1", "1.5/x", "1.5:80",
     "a@1.5", "::1", "::1/x", "root@fe80::1", "[::1]:80/x", "[::ffff:1.2.3.4]", "b\u00fccher.pl", "017700000001"],
)  # fmt: skip
def test_an_address_in_a_word_is_not_canonical(text: str) -> None:
    found = there(word_host(text))
    assert (found.facts.canonical, found.label) == (False, False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-x",
        "--all",
        ".",
        "..",
        "./x",
        "/etc",
        "~",
        "*.py",
        "HEAD~1",
        "5",
        "12:30",
        "2026/11",
        "a b",
        '{"a":1}',
        "+",
    ],
)
def test_ordinary_words_are_not_hosts(text: str) -> None:
    assert word_host(text) is None


def test_file_names_in_commands_are_not_hosts() -> None:
    assert destinations("setup.py", PROGRAM_ENDINGS) == []
    assert destinations("setup.py") != []
    assert destinations("evil.example.py", PROGRAM_ENDINGS) != []
    assert destinations("root@evil.org", PROGRAM_ENDINGS) != []


def test_urls_are_removed_from_text() -> None:
    assert without_urls(f"a {A}/b c {B}/d").split() == ["a", "c"]


@pytest.mark.parametrize("unit", ["https://", "a:/", "//a ", "http://a.example.com/ ", ":/", "%2f%2fa ", "h\nttps://"])
def test_the_number_of_destinations_is_bounded(unit: str) -> None:
    found = destinations(unit * 5_000)
    assert len(found) <= MOST + 2
    assert not found or not all(one.canonical for one in found)


@settings(max_examples=examples(300))
@given(st.text(max_size=60) | st.text(alphabet="htps:/\\.@%2fF a0\n\t\u3002\uff48[]#?&;", max_size=60))
def test_only_canonical_destinations_have_an_origin(text: str) -> None:
    for found in (*destinations(text), *destinations(text, PROGRAM_ENDINGS), reached(text), host_origin(text)):
        assert found.canonical is (found.origin is not None)
    found_word = word_host(text)
    assert found_word is None or found_word.facts.canonical is (found_word.facts.origin is not None)
    assert undisguised(undisguised(undisguised(text))) is not None


@given(st.text(alphabet="abc/?#@:. \n\t\"'%2f\\", max_size=30), st.text(alphabet="abc/?#@:. \n\t\"'%2f\\", max_size=30))
def test_a_host_that_is_not_admitted_is_never_lost(before: str, after: str) -> None:
    found = destinations(f"{before} https://evil.org/ {after}")
    assert any(one.origin == "https://evil.org" for one in found) or any(not one.canonical for one in found)
