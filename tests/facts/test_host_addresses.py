"""An address has one spelling; what no range of addresses can say is told beside it."""

from __future__ import annotations

import pytest

from engine.facts.net.addresses import HostAddress, host_addresses


@pytest.mark.parametrize(
    ("text", "family"),
    [("8.8.8.8", "ipv4"), ("2606:4700::1111", "ipv6"), ("::1", "ipv6"), ("::", "ipv6"), ("::ffff:8.8.8.8", "ipv6")],
)
def test_a_canonical_address_keeps_its_text_and_family(text: str, family: str) -> None:
    (facts,) = host_addresses((text,))
    assert (facts.id, facts.text, facts.family, facts.isatap, facts.scoped) == (text, text, family, False, False)


@pytest.mark.parametrize(
    "text",
    [
        *("010.0.0.1", "10.1", "0x7f000001", "2130706433", "127.0.0.1 ", " 127.0.0.1", "127.0.0.1\n", "127.0.0.1/8"),
        *("2606:4700:0::1", "2606:4700::ABCD", "::ffff:808:808", "[::1]", "", "localhost", "1.2.3.4.5", "\uff11.1.1.1"),
    ],
)
def test_a_non_canonical_address_has_no_text(text: str) -> None:
    (facts,) = host_addresses((text,))
    assert (facts.id, facts.text) == ("#0", None)


@pytest.mark.parametrize(
    ("text", "isatap"),
    [
        ("2606:4700::5efe:a00:1", True),
        ("2606:4700::200:5efe:a00:1", True),
        ("2606:4700:0:1:0:5efe:808:808", True),
        ("fe80::5efe:a00:1", True),
        ("2606:4700::5eff:a00:1", False),
        ("2606:4700::100:5efe:a00:1", False),
        ("2606:4700:5efe::a00:1", False),
        ("94.254.0.1", False),
    ],
)
def test_isatap_addresses_are_detected(text: str, isatap: bool) -> None:  # noqa: FBT001
    assert host_addresses((text,))[0].isatap is isatap


def test_a_scoped_address_is_flagged_and_has_no_text() -> None:
    assert host_addresses(("fe80::1%eth0", "2606:4700::1%2", "10.0.0.1%1")) == (
        HostAddress(id="#0", family="unknown", isatap=False, scoped=True),
        HostAddress(id="#1", family="ipv6", isatap=False, scoped=True),
        HostAddress(id="#2", family="ipv6", isatap=False, scoped=True),
    )


def test_the_order_and_number_of_answers_make_no_difference() -> None:
    assert host_addresses(("9.9.9.9", "8.8.8.8", "9.9.9.9")) == host_addresses(("8.8.8.8", "9.9.9.9"))
    assert host_addresses(()) == ()
