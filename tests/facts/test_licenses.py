"""A label becomes the alternatives that its SPDX expression offers, and nothing that it does not say."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import chain, combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.facts.licenses import Alternatives, canonical_key, license_alternatives
from tests.expect import there
from tests.values.shipped import SHIPPED

READ: dict[str, Alternatives] = {
    "MIT": (("MIT",),),
    "  MIT \n": (("MIT",),),
    "mit": (("MIT",),),
    "apache-2.0": (("Apache-2.0",),),
    "(((MIT)))": (("MIT",),),
    # OR offers, AND demands and binds tighter, in any case
    "MIT OR Apache-2.0": (("Apache-2.0",), ("MIT",)),
    "MIT or Apache-2.0": (("Apache-2.0",), ("MIT",)),
    "MIT AND Apache-2.0": (("Apache-2.0", "MIT"),),
    "MIT OR ISC AND Zlib": (("ISC", "Zlib"), ("MIT",)),
    "MIT AND ISC OR Zlib": (("ISC", "MIT"), ("Zlib",)),
    "(MIT OR ISC) AND Zlib": (("ISC", "Zlib"), ("MIT", "Zlib")),
    "(MIT OR ISC) AND (Zlib OR 0BSD)": (("0BSD", "ISC"), ("0BSD", "MIT"), ("ISC", "Zlib"), ("MIT", "Zlib")),
    # said twice is said once
    "MIT AND mit": (("MIT",),),
    "MIT OR MIT": (("MIT",),),
    "MIT AND (ISC OR Zlib) AND (ISC OR Zlib)": (("ISC", "MIT"), ("ISC", "MIT", "Zlib"), ("MIT", "Zlib")),
    # a license WITH its exception is one key, and binds tightest
    "GPL-2.0-only WITH Classpath-exception-2.0": (("GPL-2.0-only WITH Classpath-exception-2.0",),),
    "gpl-2.0 with classpath-EXCEPTION-2.0": (("GPL-2.0-only WITH Classpath-exception-2.0",),),
    "MIT AND Apache-2.0 WITH LLVM-exception": (("Apache-2.0 WITH LLVM-exception", "MIT"),),
    "Apache-2.0 WITH AdditionRef-ours": (("Apache-2.0 WITH AdditionRef-ours",),),
    "Apache-2.0 WITH Nobody-knows-exception": (("Apache-2.0 WITH Nobody-knows-exception",),),
    # what SPDX renamed, and later versions
    "GPL-2.0": (("GPL-2.0-only",),),
    "GPL-2.0+": (("GPL-2.0-or-later",),),
    "LGPL-2.1+": (("LGPL-2.1-or-later",),),
    "GFDL-1.3": (("GFDL-1.3-only",),),
    "Apache-2.0+": (("Apache-2.0+",),),
    "GPL-2.0-with-classpath-exception": (("GPL-2.0-with-classpath-exception",),),
    # outside the SPDX list: as written
    "LicenseRef-Acme.contract-7": (("LicenseRef-Acme.contract-7",),),
    "licenseref-acme": (("licenseref-acme",),),
    "LicenseRef-MIT-Bootstrap": (("LicenseRef-MIT-Bootstrap",),),
    "DocumentRef-other:LicenseRef-acme": (("DocumentRef-other:LicenseRef-acme",),),
    "BigScience-RAIL": (("BigScience-RAIL",),),
    "Proprietary OR MIT": (("MIT",), ("Proprietary",)),
    "BSD": (("BSD",),),
    "GPL": (("GPL",),),
    # nothing is known, nothing is granted
    "NOASSERTION": (("NOASSERTION",),),
    "none": (("NONE",),),
}

UNREADABLE = [
    *[
        "MIT AND",
        "MIT AND MIT AND",
        "MIT OR MIT OR",
        "OR MIT",
        "AND",
        "MIT OR OR ISC",
        "MIT AND OR ISC",
        "MIT ISC",
        "MIT, ISC",
        "MIT/ISC",
        "MIT;",
    ],
    *["()", "(MIT", "MIT)", ")MIT(", "MIT()", "MIT (ISC)", "(MIT)(ISC)"],
    *["MIT OR (ISC) Zlib", "MIT AND (ISC) Zlib"],
    *["WITH LLVM-exception", "MIT WITH", "MIT WITH ISC", "MIT WITH MIT", "(MIT OR ISC) WITH LLVM-exception"],
    *["MIT WITH LLVM-exception WITH LLVM-exception", "MIT WITH (LLVM-exception)", "LLVM-exception"],
    "Classpath-exception-2.0 OR MIT",
    *["GPL-2.0-only+", "GPL-2.0-or-later+", "MIT++", "+", "-"],
    *["MIT OR NOASSERTION", "NONE AND MIT", "MIT WITH NONE OR ISC AND NOASSERTION"],
    *["NOT MIT", "!MIT", "MIT & ISC", "MIT | ISC", "MIT && ISC", "MIT ~ ISC"],
    *[
        "MIT\0",
        "M\u0131T",
        "\u212a",
        "MIT\u00a0OR\u00a0ISC",
        "MIT \u200b",
        "https://example.org/licenses/MIT",
        "MIT_License",
    ],
    "The MIT License",
]


@pytest.mark.parametrize("label", READ)
def test_label_is_read(label: str) -> None:
    assert license_alternatives(label) == READ[label]


@pytest.mark.parametrize("label", UNREADABLE)
def test_label_does_not_parse(label: str) -> None:
    assert license_alternatives(label) is None


# covers: A11
@pytest.mark.parametrize("label", ["", " ", "\t\r\n", "\u00a0", "\u3000"])
def test_a_blank_label_states_no_license(label: str) -> None:
    assert license_alternatives(label) is None


LIMITS: dict[str, tuple[Callable[[int], str], int]] = {
    "characters": (lambda count: "LicenseRef-".ljust(count, "a"), 1_000),
    "symbols of an AND": (lambda count: " AND ".join(f"L-{index}" for index in range(count)), 64),
    "symbols said twice": (lambda count: " AND ".join(["MIT"] * count), 64),
    "nesting": (lambda count: "(" * count + "MIT" + ")" * count, 32),
    "alternatives": (lambda count: " OR ".join(f"L-{index}" for index in range(count)), 64),
    "products": (lambda count: " AND ".join(f"(L-{index} OR M-{index})" for index in range(count)), 6),
    "keys of all alternatives": (
        lambda count: " AND ".join([*(f"(L-{at} OR M-{at})" for at in range(5)), *(f"N-{at}" for at in range(count))]),
        11,
    ),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_label_limits_are_exact(limit: str) -> None:
    label, most = LIMITS[limit]
    assert license_alternatives(label(most)) is not None
    assert license_alternatives(label(most + 1)) is None


@pytest.mark.parametrize(
    "label",
    [
        "(" * 500 + ")" * 499,
        "(MIT OR " * 120,
        " AND ".join(f"(a{index} OR b{index})" for index in range(32)),
        " AND ".join("(a OR b)" for _ in range(32)),
        "MIT OR " * 140 + "MIT",
        "a" * 10_000_000,
        "WITH " * 200,
    ],
    ids=range(7),
)
def test_hostile_labels_are_quick(label: str) -> None:
    license_alternatives("MIT")  # loads the library
    start = time.process_time()
    license_alternatives(label)
    assert time.process_time() - start < 0.5


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("MIT", "MIT"),
        ("mit", "MIT"),
        ("GPL-2.0", "GPL-2.0-only"),
        ("Apache-2.0+", "Apache-2.0+"),
        ("GPL-2.0-with-classpath-exception", "GPL-2.0-with-classpath-exception"),
        ("gpl-2.0-only WITH classpath-exception-2.0", "GPL-2.0-only WITH Classpath-exception-2.0"),
        ("LicenseRef-acme", "LicenseRef-acme"),
        ("LicenseRef-acme WITH AdditionRef-ours", "LicenseRef-acme WITH AdditionRef-ours"),
        *[
            (text, None)
            for text in ("", "NONE", "NOASSERTION", "none", "Proprietary", "licenseref-acme", "Nobody-1.0+")
        ],
        *[(text, None) for text in ("MIT OR ISC", "MIT AND ISC", "MIT WITH MIT", "MIT WITH Nobody-exception")],
        *[(text, None) for text in ("LLVM-exception", "GPL-2.0-only+", "LicenseRef-", "LicenseRef-a+", "MIT_License")],
    ],
)
def test_canonical_key(text: str, key: str | None) -> None:
    assert canonical_key(text) == key


# Expressions and what they mean, made together.
KEYS = ("MIT", "ISC", "0BSD", "Apache-2.0 WITH LLVM-exception", "LicenseRef-acme")
Meaning = Callable[[frozenset[str]], bool]


def _leaf(key: str) -> tuple[str, int, Meaning]:
    return key, 2, lambda granted: key in granted


def _node(parts: list[tuple[str, int, Meaning]], strength: int, more: bool) -> tuple[str, int, Meaning]:  # noqa: FBT001
    """Join by OR (strength 0) or AND (strength 1); parentheses where they are needed, or more."""
    texts = [f"({text})" if more or inner < strength else text for text, inner, _ in parts]
    fold = all if strength else any
    return (
        (" AND " if strength else " OR ").join(texts),
        strength,
        lambda granted: fold(meaning(granted) for _, _, meaning in parts),
    )


EXPRESSIONS = st.recursive(
    st.sampled_from(KEYS).map(_leaf),
    lambda inner: st.builds(_node, st.lists(inner, min_size=2, max_size=3), st.integers(0, 1), st.booleans()),
    max_leaves=12,
)
GRANTS = [frozenset(some) for some in chain.from_iterable(combinations(KEYS, size) for size in range(len(KEYS) + 1))]


def _offered(alternatives: Alternatives, granted: Iterable[str]) -> bool:
    return any(set(alternative) <= set(granted) for alternative in alternatives)


@given(EXPRESSIONS)
def test_alternatives_mean_what_the_expression_means(made: tuple[str, int, Meaning]) -> None:
    text, _, meaning = made
    alternatives = there(license_alternatives(text))
    assert [_offered(alternatives, granted) for granted in GRANTS] == [meaning(granted) for granted in GRANTS]


@given(EXPRESSIONS)
def test_alternatives_are_normalized_and_reparse_to_themselves(made: tuple[str, int, Meaning]) -> None:
    alternatives = there(license_alternatives(made[0]))
    assert list(alternatives) == sorted(set(alternatives))
    assert all(list(alternative) == sorted(set(alternative)) for alternative in alternatives)
    written = " OR ".join("(" + " AND ".join(alternative) + ")" for alternative in alternatives)
    assert license_alternatives(written) == alternatives


TOKENS = ("MIT", "ISC", "Zlib", "LLVM-exception", "AND", "OR", "WITH", "(", ")")


@given(st.lists(st.sampled_from(TOKENS), min_size=1, max_size=12))
@example(["(", "MIT", ")", "WITH", "LLVM-exception"])
def test_only_the_spdx_grammar_is_accepted(tokens: list[str]) -> None:
    """SPDX 3.0, annex B, read a second time by hand."""
    rest = list(tokens)
    try:
        wanted = _either(rest)
        assert not rest
    except (AssertionError, IndexError):
        wanted = None
    alternatives = license_alternatives(" ".join(tokens))
    assert alternatives == (None if wanted is None else tuple(sorted(tuple(sorted(keys)) for keys in wanted)))


def _either(rest: list[str]) -> set[frozenset[str]]:
    found = _all(rest)
    while rest[:1] == ["OR"]:
        rest.pop(0)
        found |= _all(rest)
    return found


def _all(rest: list[str]) -> set[frozenset[str]]:
    found = _one(rest)
    while rest[:1] == ["AND"]:
        rest.pop(0)
        more = _one(rest)
        found = {keys | others for keys in found for others in more}
    return found


def _one(rest: list[str]) -> set[frozenset[str]]:
    token = rest.pop(0)
    if token == "(":  # noqa: S105
        found = _either(rest)
        assert rest.pop(0) == ")"
        return found
    assert token in {"MIT", "ISC", "Zlib"}
    if rest[:1] == ["WITH"]:
        rest.pop(0)
        assert rest.pop(0) == "LLVM-exception"
        token += " WITH LLVM-exception"
    return {frozenset({token})}


@given(st.text(st.characters(codec="utf-8"), max_size=60) | st.text("()+-. ANDORWITHMIT\t", max_size=60))
def test_arbitrary_text_never_raises(text: str) -> None:
    found = license_alternatives(text)
    assert found is None or all(found)


ALIASES = {
    "gkee": "MIT",
    "odc-by": "ODC-By-1.0",
    "cc by 4.0": "CC-BY-4.0",
    "creativecommons.org/licenses/by/4.0": "CC-BY-4.0",
}


@pytest.mark.parametrize(
    ("label", "alternatives"),
    [
        ("ODC-BY", (("ODC-By-1.0",),)),
        ("  CC  BY 4.0 ", (("CC-BY-4.0",),)),
        ("https://creativecommons.org/licenses/by/4.0/", (("CC-BY-4.0",),)),
        ("http://www.creativecommons.org/licenses/BY/4.0", (("CC-BY-4.0",),)),
        (
            "(odc-by OR mit) AND https://creativecommons.org/licenses/by/4.0/",
            (("CC-BY-4.0", "MIT"), ("CC-BY-4.0", "ODC-By-1.0")),
        ),
        ("cc by 4.0 OR mit", None),  # an alias with spaces is a whole label only
        ("https://creativecommons.org/licenses/by/4.0/deed.de", (("CC-BY-4.0",),)),
        ("https://creativecommons.org/licenses/by/4.0/legalcode.en", (("CC-BY-4.0",),)),
        ("https://creativecommons.org/licenses/by/4.0/deed/us", None),
        ("https://spdx.org/licenses/mit.html", (("MIT",),)),
        ("https://spdx.org/licenses/nothing.html", None),
        ("https://choosealicense.com/licenses/apache-2.0/", (("Apache-2.0",),)),
        ("https://choosealicense.com/licenses/odc-by/", (("ODC-By-1.0",),)),
        ("https://choosealicense.com/licenses/other/", None),
        ("BSD 3 Clause", (("BSD-3-Clause",),)),
        ("GPL 3.0+", (("GPL-3.0-or-later",),)),
        ("Apache 2.0 license", None),
        ("odc-by-2.0", (("odc-by-2.0",),)),
        ("g\u212aee", None),  # a sign that becomes an ordinary letter in lower case
        ("", None),
    ],
)
def test_an_alias_is_resolved_to_its_license_id(label: str, alternatives: object) -> None:
    assert license_alternatives(label, ALIASES) == alternatives


@pytest.mark.parametrize(
    "label",
    [
        *("gemma", "pddl", "llama2", "llama3", "odc-by", "https://creativecommons.org/publicdomain/zero/1.0/"),
        *(
            "CC BY 4.0",
            "CC0 1.0",
            "ODbL 1.0",
            "Creative Commons Zero v1.0 Universal",
            "BSD 3-Clause License",
            "The Unlicense",
        ),
        *("GNU General Public License v3.0", "Mozilla Public License 2.0", "ISC License", "GPL v3", "ODC-By v1.0"),
        # PyPI, GitHub, Maven, Kaggle, data portals
        *("License :: OSI Approved :: MIT License", "License :: CC0 1.0 Universal (CC0 1.0) Public Domain Dedication"),
        *("The Apache License, Version 2.0", 'BSD 3-Clause "New" or "Revised" License', "3-Clause BSD License"),
        *("GNU Lesser General Public License v2 (LGPLv2)", "Mozilla Public License 2.0 (MPL 2.0)", "MIT Licence"),
        *("CC0: Public Domain", "Attribution 4.0 International (CC BY 4.0)", "ODC Attribution License (ODC-By)"),
        *("Creative Commons Attribution Share Alike 4.0 International", "U.S. Government Works", "lov2"),
        *("https://www.usa.gov/government-works", "https://cdla.dev/permissive-2-0/", "llama4"),
        *("Apache License v2.0", "GNU GPL v3", "LGPL v2.1+", "Open Database License (ODbL)", "ODC Attribution License"),
        *("US Government Work", "CC BY 4.0 International", "Historical Permission Notice and Disclaimer (HPND)"),
        # Debian, R, Fedora
        *("GPL-2+", "LGPL-3", "GPL (>= 2)", "MIT + file LICENSE", "BSD_3_clause + file LICENSE", "ASL 2.0", "MPLv2.0"),
        *("AFL-2.1", "GPL-1.0-or-later", "OFL-1.1-no-RFN", "CC-BY-3.0-US", "W3C-20150513", "Unicode-DFS-2016"),
    ],
)
def test_labels_of_data_sets_have_a_row(label: str) -> None:
    values = SHIPPED["licenses"]
    found = license_alternatives(label, values["aliases"])
    assert found is not None
    assert found[0][0] in values["licenses"]


@pytest.mark.parametrize(
    "label",
    [
        *("BSD License", "License :: OSI Approved :: BSD License", "Apache Software License", "GPL", "cc-by", "other"),
        *("Creative Commons Attribution", "Database: Open Database, Contents: © Original Authors", "PSF License"),
        *("Apache License", "GNU GPL", "LGPL", "CC BY International", "MIT/Apache-2.0", "MIT, Apache-2.0"),
    ],
)
def test_labels_that_leave_the_license_or_its_version_open_have_no_row(label: str) -> None:
    values = SHIPPED["licenses"]
    found = license_alternatives(label, values["aliases"])
    assert found is None or found[0][0] not in values["licenses"]
