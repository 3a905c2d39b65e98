"""Plain search for words finds every place where a pattern of secrets matches."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from itertools import product

import pytest

from engine.secrets import headers, passwords, personal
from engine.secrets.forms import Form, SecretForms
from engine.secrets.lines import Lines, Matches, Span, folded
from tests.conftest import FORMS
from tests.secrets.test_redaction import ORDINARY, SECRETS

SEARCHES: dict[str, tuple[re.Pattern[str], Matches]] = {
    "header": (headers._HEADER, headers._HEADERS),
    "bearer": (headers._BEARER, headers._BEARERS),
    "basic": (headers._BASIC, headers._BASICS),
    "assignment": (passwords.ASSIGNED, passwords._ASSIGNMENTS),
    "option": (passwords.NAMED_OPTION, passwords._NAMED_OPTIONS),
    "password in words": (passwords._SPOKEN, passwords._PASSWORDS),
    "statement": (passwords.STATED, passwords._STATEMENTS),
    "netrc": (passwords._NETRC, passwords._NETRCS),
    "data source": (passwords.DATA_SOURCE, passwords._SOURCES),
    "user": (passwords.USERINFO, passwords._USERS),
    "number behind a word": (personal._SAID, personal._NUMBERS_SAID),
}
PIECES = (
    *SECRETS.values(),
    *ORDINARY,
    *(" ", "\n", "\t", "=", " = ", ": ", '"', "'", "\\", "-", "_", ".", "/", "@", "x", "7", "é", "\u017f", "\u212a"),
    *("password", "DB_PASSWORD", "COMPASS", "apiKey", "secret_key", "set-cookie:", "proxy-", "name: a_token, value: "),
    *("tel. 030 1234567", "Téléphone:", "http://a:b@c://d:e@", "default login a password b", "--db-pass x", "a:b@tcp("),
)


def texts() -> Iterable[str]:
    chance = random.Random(3)  # noqa: S311
    yield from PIECES
    for _ in range(1_500):
        yield "".join(chance.choices(PIECES, k=chance.randrange(2, 12)))


@pytest.mark.parametrize("name", SEARCHES)
def test_a_pattern_matches_where_its_words_are(name: str) -> None:
    pattern, matches = SEARCHES[name]
    found = 0
    for text in texts():
        spans = [match.span() for match in matches(Lines(text))]
        assert sorted(spans) == [match.span() for match in pattern.finditer(text)], text
        found += len(spans)
    assert found > 0


FORMS_OF_ALL_KINDS = SecretForms(
    frozenset(
        {
            Form(("ab", "long-prefix-of-a-key-"), "[0-9]{6,}"),
            Form(("q~",), "[a-z~]{9,12}[/]{1}[0-9]{2,}", inside_words=True),
            Form(("token is ",), "[0-9a-f]{4}-[0-9a-f]{8,}"),
            Form(("k-",), "[A-Za-z0-9_-]{13,}", digit=True),
        }
    ),
    frozenset({("tool", "-p *"), ("tool login", "--key=*")}),
)
OWN_PIECES = (
    *("ab123456", "xab123456", "long-prefix-of-a-key-1234567", "zq~abcdefghi~/12", "q~", "token is 0a1b-01234567"),
    *("k-abcdefghijklm", "k-abcdefghijkl7_k-", "tool -p x", "tool login --key=abc", " ", "\n", "-", "é", "_", "."),
)


@pytest.mark.parametrize(("forms", "pieces"), [(FORMS, PIECES), (FORMS_OF_ALL_KINDS, OWN_PIECES)])
def test_a_form_matches_where_its_prefix_is(forms: SecretForms, pieces: tuple[str, ...]) -> None:
    chance = random.Random(4)  # noqa: S311
    found = 0
    for _ in range(1_500):
        text = "".join(chance.choices(pieces, k=chance.randrange(1, 9)))
        spans = set(forms.spans(text))
        assert spans == {*_in_every_line(forms, text)}, text
        found += len(spans)
    assert found > 0


def _in_every_line(forms: SecretForms, text: str) -> Iterable[Span]:
    at = 0
    for line in text.split("\n"):
        for pattern, digit in (*product(forms._plain, [False]), (forms._with_digit, True)):
            for match in pattern.finditer(line):
                if not digit or any(letter in "0123456789" for letter in match[0]):
                    yield at + match.start(), at + match.end()
        at += len(line) + 1


def test_a_letter_is_folded_as_patterns_that_ignore_case_read_it() -> None:
    every = "".join(map(chr, range(0x110000)))
    for match in re.finditer("(?i)[a-z]", every):
        assert re.fullmatch(f"(?i){folded(match[0]).decode()}", match[0]), hex(match.start())
    assert len(folded(every)) == len(every)
