"""Private data: mail addresses, payment cards, phone numbers, IBANs, and United States social security numbers.

Forms: E.164 of the ITU with its usual separators; national numbers as they are written in North America and Europe,
or behind a word for a phone; the registry of ISO 13616 with its lengths and check digits; the
areas, groups and serials that the Social Security Administration assigns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.secrets.finder import Finder
from engine.secrets.lines import Lines, Span, beginning
from engine.secrets.randomness import HARMLESS, blanked
from engine.secrets.stand_ins import NOBODY

_PHONE = re.compile(r"\+(?<![\w+.]\+)[1-9][0-9]{0,2}(?:[ .\-/]?\(?[0-9]{1,4}\)?){2,6}(?!\w)", re.ASCII)
_MOST_DIGITS = 15
_FEWEST_DIGITS, _FEWEST_TOGETHER = 8, 10
"""Of a number with separators, and of one without: shorter ones are amounts."""

_SSN = re.compile(r"[0-8](?<![\w\-].)[0-9]{2}(?<!000|666)-(?!00)[0-9]{2}-(?!0000)[0-9]{4}(?![\w\-])", re.ASCII)
_NATIONAL_BEGIN = re.compile(r"[0-9(](?<![\w.,:+/\-].)(?=[0-9 ()./\-]{9})", re.ASCII)
_NATIONAL = re.compile(
    r"(?:"
    r"(?:1[ \-])?(?:\([2-9][0-9]{2}\) ?|[2-9][0-9]{2}-)[2-9][0-9]{2}-[0-9]{4}|[2-9][0-9]{2}\.[2-9][0-9]{2}\.[0-9]{4}"
    r"|(?<!\b[0-9]{2} )0[1-9](?:(?: [0-9]{2}){4}|(?:\.[0-9]{2}){4})"
    r"|(?=\(?0[1-9])(?=(?:[ ()/]*[0-9]){10,11}(?![ /]?[0-9]))"
    r"(?:\(0[1-9][0-9]{1,3}\)|0[1-9][0-9]{1,3}) ?[ /] ?[0-9]{2,8}(?: [0-9]{2,4}){0,3}"
    r"|00[1-9][0-9]{1,2} [1-9][0-9]{1,4}(?: [0-9]{2,8}){1,4}"
    r")(?![\w:\-/]| [0-9])",
    re.ASCII,
)
"""(415) 555-0132, 415-555-0132; 01 23 45 67 89; 020 7946 0958, 0171/2345678; 0049 30 1234567. Order numbers with
hyphens, dates, times and amounts have other groups."""

_SAID = re.compile(
    r"(?i)\b(?:cell|fax|handy|mobile?|phone|tel|telefone?|telefono|telephone|teléfono|tél|téléphone|whatsapp)\b"
    r"(?:[\s.:#]|no|nr|number|is){1,12}?"
    r"(?![0-9]{4}-[0-9]{2}-[0-9]{2})((?:\([0-9]{1,5}\) ?)?[0-9]{1,15}(?:[ /\-]{1,3}[0-9]{1,8}){0,6})(?![.,]*\w)"
)
"""A number behind a word that says what it is."""

_NUMBERS_SAID = beginning(_SAID, (b"cell", b"fax", b"handy", b"mobil", b"phone", b"tel", b"t?l", b"whatsapp"))

_IBAN_BEGIN = b" aa00"
_SHAPE = bytes(48 if chr(byte).isdigit() else 97 if chr(byte).isalpha() else 32 for byte in range(128)).ljust(256)
"""Letters, digits, and what is between words."""
_IBAN = re.compile(r"(?=(([A-Z]{2})[0-9]{2}(?:[ \-]?[A-Z0-9]){11,28}))", re.ASCII | re.IGNORECASE)
"""One may begin within what looks like another."""

_COUNTRIES = {
    15: "NO",
    16: "BE",
    18: "DK FI FO GL NL",
    19: "MK SI",
    20: "AT BA EE KZ LT LU XK",
    21: "CH HR LI LV",
    22: "BG BH CR DE GB GE IE ME RS VA",
    23: "AE GI IL IQ TL",
    24: "AD CZ ES MD PK RO SA SE SK TN VG",
    25: "LY PT ST",
    26: "IS TR",
    27: "FR GR IT MC MR SM",
    28: "AL AZ BY CY DO GT HU LB PL SV",
    29: "BR EG PS QA UA",
    30: "JO KW MU",
    31: "MT SC",
    32: "LC",
}
"""By the length of their IBANs."""

_IBAN_LENGTHS = {country: length for length, countries in _COUNTRIES.items() for country in countries.split()}

_MAIL_NAME = re.compile(r"[^\s@<>\"'(),:;\[\]\\/=?&|`${}^*]{1,64}\Z")
MAIL_HOST = re.compile(r"@(?:[^\s@<>\"'(),:;\[\]\\/=?&|.!`${}^*]{1,63}\.){1,8}[^\W\d_][\w-]{0,61}\w")
_CARD_BEGIN = re.compile(r"[2-6](?<![A-Za-z0-9.].)(?=[0-9 -]{12})")
_CARD = re.compile(
    r"(?=((?:[2-6][0-9]{12,18}|[2-6][0-9]{3}(?:[ -][0-9]{4}){3}|3[0-9]{3}[ -][0-9]{6}[ -][0-9]{4,5})"
    r"(?![A-Za-z0-9])(?!\.[0-9])))(?=(\1[ -][0-9]{1,3}(?![A-Za-z0-9])(?!\.[0-9]))?)"
)
"""A number, and the same with a last group that may be of it, a code or a date. One may begin within another."""
SHORTEST_CARD = 13
_CARD_PREFIX = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})|(?:5[1-5]|2[2-7])[0-9]{14}|3[47][0-9]{13}|3[0689][0-9]{12}"
    r"|(?:6011|64[4-9][0-9]|65[0-9]{2}|35[2-8][0-9])[0-9]{12}|62[0-9]{14,17}"
)


def find_mails(lines: Lines) -> Iterator[Span]:
    """Spans of mail addresses."""
    text = lines.text
    for match in MAIL_HOST.finditer(text):
        begin = max(0, match.start() - 64)
        name = _MAIL_NAME.search(text[begin : match.start()])
        if name is not None and name[0] != NOBODY:
            yield begin + name.start(), match.end()


def find_cards(lines: Lines) -> Iterator[Span]:
    """Spans of numbers of payment cards."""
    if _CARD_BEGIN.search(lines.text) is None:
        return
    text = blanked(HARMLESS, lines.text)
    for begin in _CARD_BEGIN.finditer(text):
        if (match := _CARD.match(text, begin.start())) is not None:
            for group in (1, 2):
                if is_card((match[group] or "").replace(" ", "").replace("-", "")):
                    yield match.span(group)


def is_card(digits: str) -> bool:
    """Whether digits have the prefix, length and check digit (ISO/IEC 7812, Luhn) of a payment card."""
    if not _CARD_PREFIX.fullmatch(digits):
        return False
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(map(int, digits[-1::-2])) + sum(doubled)) % 10 == 0


def find_numbers(lines: Lines) -> Iterator[Span]:
    """Spans of phone numbers, social security numbers and IBANs, unordered and possibly overlapping."""
    text = lines.text
    for match in _PHONE.finditer(text):
        digits = sum(map(str.isdigit, match[0]))
        if (_FEWEST_TOGETHER if match[0][1:].isdigit() else _FEWEST_DIGITS) <= digits <= _MOST_DIGITS:
            yield match.span()
    for begin in _NATIONAL_BEGIN.finditer(text):
        if (number := _NATIONAL.match(text, begin.start())) is not None:
            yield number.span()
    for match in _NUMBERS_SAID(lines):
        if _FEWEST_DIGITS <= sum(map(str.isdigit, match[1])) <= _MOST_DIGITS:
            yield match.span(1)
    yield from (match.span() for match in _SSN.finditer(text))
    yield from _ibans(text)


def _ibans(text: str) -> Iterator[Span]:
    shape = b" " + text.encode("ascii", "replace").translate(_SHAPE)
    at = shape.find(_IBAN_BEGIN)
    while at >= 0:
        if (match := _IBAN.match(text, at)) is not None:
            found, length = match[1], _IBAN_LENGTHS.get(match[2].upper(), 0)
            places = [at for at, one in enumerate(found) if one not in " -"][:length]
            number = "".join(found[at] for at in places)
            if length and len(number) == length and _checks(number):
                end = match.start() + places[-1] + 1
                if number.isupper() or not text[end : end + 1].isalnum():
                    yield match.start(), end
        at = shape.find(_IBAN_BEGIN, at + 1)


def _checks(iban: str) -> bool:
    return int("".join(str(int(one, 36)) for one in iban[4:] + iban[:4])) % 97 == 1


MAILS = Finder((b"@",), find_mails, None)
CARDS = Finder((), find_cards, None, SHORTEST_CARD)
