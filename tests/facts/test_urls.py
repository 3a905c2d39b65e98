"""A URL is canonical in one spelling only, and then every parser sees the same parts."""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.facts.net.urls import LONGEST, UrlFacts, canonical_host, url_facts
from tests.lanes import examples

GOOD = {
    "https://data.example.org/": ("data.example.org", 443),
    "https://data.example.org/sets/2026/cities.csv": ("data.example.org", 443),
    "https://data.example.org:8443/sets": ("data.example.org", 8443),
    "https://data.example.org/search?q=a%20b&page=2": ("data.example.org", 443),
    "https://data.example.org/a%2Fb/~user/x,y;z=1": ("data.example.org", 443),
    "https://xn--mnchen-3ya.example/rathaus": ("xn--mnchen-3ya.example", 443),
    "https://a-1.b--2.3.example.org/": ("a-1.b--2.3.example.org", 443),
    "https://" + ".".join(["a" * 63] * 3) + ".example/": (".".join(["a" * 63] * 3) + ".example", 443),
    "https://data.example.org/?a?b=/c": ("data.example.org", 443),
    "https://example.xn--p1ai/": ("example.xn--p1ai", 443),
}

BAD = [
    # scheme
    "http://data.example.org/",
    "HTTPS://data.example.org/",
    "https:/data.example.org/",
    "https:data.example.org/",
    "//data.example.org/",
    "data.example.org/",
    "ftp://data.example.org/",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "https://",
    "",
    # user information, and hosts hidden behind it
    "https://good.example.org@evil.example.com/",
    "https://user:secret@data.example.org/",
    "https://@data.example.org/",
    "https://:@data.example.org/",
    "https://data.example.org%40evil.example.com/",
    "https://evil.example.com\\@data.example.org/",
    "https://evil.example.com\\.data.example.org/",
    # fragment, empty query, no path
    "https://data.example.org/#top",
    "https://data.example.org/#",
    "https://data.example.org#@evil.example.com/",
    "https://data.example.org",
    "https://data.example.org?x=1",
    "https://data.example.org/?",
    # host spelling
    "https://DATA.example.org/",
    "https://data.example.org./",
    "https://.data.example.org/",
    "https://data..example.org/",
    "https://-data.example.org/",
    "https://data-.example.org/",
    "https://da_ta.example.org/",
    "https://*.example.org/",
    "https://localhost/",
    "https://example/",
    "https://" + "a" * 64 + ".example.org/",
    "https://" + ".".join(["a" * 63] * 4) + ".example/",
    "https://da%74a.example.org/",
    "https://data%2eexample.org/",
    # addresses in any spelling
    "https://127.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://0177.0.0.1/",
    "https://0x7f000001/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[fe80::1%25eth0]/",
    "https://10.0.0.1.2/",
    # names that look alike or decode to something else
    "https://münchen.example/",
    "https://faß.example/",
    "https://127\u30020\u30020\u30021/",
    "https://\uff44\uff41\uff54\uff41.example.org/",
    "https://data.example.org\u3002evil.example/",
    "https://xn--a.example/",
    "https://xn--.example/",
    "https://xn--80ak6aa92e-.example/",
    "https://XN--MNCHEN-3YA.example/",
    "https://xn--zzzzzzzzzzzzzzzzzzzz99999.example/",
    # port
    "https://data.example.org:/",
    "https://data.example.org:443/",
    "https://data.example.org:0/",
    "https://data.example.org:080/",
    "https://data.example.org:08443/",
    "https://data.example.org:+8443/",
    "https://data.example.org:-1/",
    "https://data.example.org:65536/",
    "https://data.example.org:99999/",
    "https://data.example.org:\uff18\uff14\uff14\uff13/",
    "https://data.example.org:8443:8443/",
    "https://data.example.org:https/",
    # space, control bytes, quotes, brackets
    " https://data.example.org/",
    "https://data.example.org/ ",
    "https://data.example.org/\n",
    "https://data.exa\tmple.org/",
    "https://data.example.org/a b",
    "https://data.example.org/\r\nHost:evil.example.com",
    "https://data.example.org/\0",
    "https://data.example.org/\x7f",
    'https://data.example.org/"',
    "https://data.example.org/<script>",
    "https://data.example.org/{id}",
    "https://data.example.org/a|b",
    "https://data.example.org/a^b",
    "https://data.example.org/`id`",
    "https://data.example.org/a\\b",
    "https://data.example.org/[1]",
    "https://data.example.org/größe",
    # path and escapes
    "https://data.example.org/a/../b",
    "https://data.example.org/..",
    "https://data.example.org/./a",
    "https://data.example.org/a/.",
    "https://data.example.org/%2e%2e/secret",
    "https://data.example.org/%2E%2E/secret",
    "https://data.example.org/%41",
    "https://data.example.org/a%2fb",
    "https://data.example.org/a%",
    "https://data.example.org/a%2",
    "https://data.example.org/a%ZZ",
    "https://data.example.org/?q=%7e",
    "https://data.example.org/" + "a" * LONGEST,
]


@pytest.mark.parametrize(("text", "parts"), GOOD.items())
def test_a_canonical_url_has_parts(text: str, parts: tuple[str, int]) -> None:
    assert url_facts(text) == UrlFacts(canonical=True, scheme="https", host=parts[0], port=parts[1])


@pytest.mark.parametrize("text", BAD)
def test_a_non_canonical_url_has_no_parts(text: str) -> None:
    assert url_facts(text) == UrlFacts(canonical=False, scheme=None, host=None, port=None)


def test_the_longest_url_is_still_read() -> None:
    start = "https://data.example.org/"
    assert url_facts(start + "a" * (LONGEST - len(start))).canonical
    assert not url_facts(start + "a" * (LONGEST - len(start) + 1)).canonical


@pytest.mark.parametrize("host", ["data.example.org", "xn--mnchen-3ya.example", "example.xn--p1ai"])
def test_canonical_hosts(host: str) -> None:
    assert canonical_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "example",
        "Data.example.org",
        "data.example.org.",
        "data.example.org:8443",
        "10.0.0.1",
        "*.example.org",
        "data.example.org\n",
        "xn--a.example",
        "a..example",
        "data.example.org/",
        "user@data.example.org",
        "::1",
    ],
)
def test_invalid_hosts_are_not_canonical(host: str) -> None:
    assert not canonical_host(host)


ODD = st.sampled_from(list(".-_~:/?#[]@!$&'()*+,;=%\\\"<>^{|}` \t\n\0aAzZ09\u00df\u3002\uff0e\u2460\u0131\u017f\u212a"))
PIECES = st.sampled_from(
    [
        "https://",
        "data.example.org",
        "evil.example.com",
        "@",
        ":8443",
        ":443",
        "/",
        "//",
        "..",
        "%2E",
        "%2F",
        "%41",
        "xn--",
        "xn--mnchen-3ya",
        "127.0.0.1",
        "[::1]",
        "?",
        "#",
        "\\",
        "?q=1",
        "a",
        ".",
    ]
)
TEXTS = st.lists(st.one_of(ODD, PIECES), max_size=12).map("".join)


@settings(max_examples=examples(300))
@given(st.one_of(TEXTS, TEXTS.map("https://data.example.org/".__add__), TEXTS.map("https://".__add__)))
@example("https://evil.example.com\\@data.example.org/")
@example("https://data.example.org/%c3%a4")
def test_a_canonical_url_means_the_same_to_every_parser(text: str) -> None:
    facts = url_facts(text)
    if not facts.canonical:
        assert (facts.scheme, facts.host, facts.port) == (None, None, None)
        return
    httpx_sees, urllib_sees = httpx.URL(text), urlsplit(text)
    assert str(httpx_sees) == text == urllib_sees.geturl()
    assert facts.host is not None
    assert httpx_sees.raw_host.decode("ascii") == urllib_sees.hostname == facts.host
    assert (httpx_sees.port or 443) == (urllib_sees.port or 443) == facts.port
    assert canonical_host(facts.host)


def test_parsers_disagree_on_several_refused_urls() -> None:
    """The positive control: without the grammar, the two parsers would name different hosts or ports."""
    differing = [text for text in BAD if _host_by_httpx(text) != _host_by_urllib(text)]
    assert len(differing) >= 10


def _host_by_httpx(text: str) -> object:
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, ValueError):
        return None
    return url.raw_host.decode("ascii"), url.port


def _host_by_urllib(text: str) -> object:
    try:
        url, port = urlsplit(text), urlsplit(text).port
    except ValueError:
        return None
    return url.hostname or "", port
