"""Vendors' key formats, compiled from values: the prefix of a secret and the pattern after it.

A pattern is matched in linear time on any text: it is a sequence of characters and classes with
counts, in which no character could belong to two parts and only the last part has no upper bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, takewhile
from typing import Any

from engine.secrets.lines import Span, line_at, pieces_with_runs
from engine.secrets.stand_ins import stands_in

_PART = re.compile(
    r"(?:\[(?P<set>[A-Za-z0-9_~./+=:@? -]+)\]|(?P<one>[A-Za-z0-9_~/:@=-]))"
    r"(?:\{(?P<count>[0-9]{1,4}(?:,[0-9]{0,4})?)\})?"
)
_RANGE = re.compile(r"([A-Za-z0-9])-([A-Za-z0-9])|(.)")
_ALPHABETS = ("0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_START = 5
"""Characters of a prefix that are looked for, so that prefixes that begin alike are looked for once."""

_MOST = 256
"""Characters of a part, and of all parts before the last one together: what a failed attempt can cost."""

_LEAST = 8
"""Characters of a secret: what is shorter is a word."""

_LONG = 15
"""Characters of words that are looked at: hardly any word of a language is that long, and nearly every secret is."""

_WORD_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.~-")
_WORDS = bytes(65 if chr(byte) in _WORD_CHARACTERS else 32 for byte in range(256))
_EDGE = "[A-Za-z0-9]"
_BEFORE, _BEHIND = r"(?<![\w/+.~%-])", r"(?![\w/+=~%-]|\.\w)"
"""Where a word begins and ends that may be a key."""
_VALUE = r"(?![-$<{%*])[^\s\"'|;&<>]{1,256}"
_GAP = r"[^\n|;&\"]{0,200}?[ \t]"


@dataclass(frozen=True, slots=True)
class _Part:
    """A run of `least` to `most` of these characters; `most` None is unbounded."""

    characters: frozenset[str]
    least: int
    most: int | None


def least_length(pattern: str) -> int:
    """The length of the shortest match of a pattern. Raises ValueError for one that is not in the grammar."""
    parts = _parts(pattern)
    for part, following in pairwise(parts):
        if part.most is None:
            raise ValueError("only the last part of a pattern may be without an upper bound")
        if part.least != part.most and part.characters & following.characters:
            raise ValueError("a part of varying length must share no character with the part that follows it")
    if sum(part.most or 0 for part in parts[:-1]) > _MOST:
        raise ValueError(f"the parts before the last one may match {_MOST} characters at most")
    return sum(part.least for part in parts)


def _parts(pattern: str) -> list[_Part]:
    parts, position = [], 0
    while (match := _PART.match(pattern, position)) is not None:
        position = match.end()
        low, bounded, high = (match["count"] or "").partition(",")
        least = int(low) if low else 1
        most = (int(high) if high else None) if bounded else least
        if least > _MOST or (most is not None and not max(1, least) <= most <= _MOST):
            raise ValueError(f"a count is {{n}}, {{m,n}} with m not above n, or {{m,}}, at most {_MOST}")
        parts.append(_Part(frozenset(match["one"]) if match["one"] else _set(match["set"]), least, most))
    if position != len(pattern) or not parts:
        raise ValueError(
            f"not valid from character {position + 1}: a pattern is characters and classes such as `[A-Z0-9]`, "
            "each with a count such as `{20}`, `{20,40}` or `{20,}`"
        )
    return parts


def _set(text: str) -> frozenset[str]:
    found: set[str] = set()
    for match in _RANGE.finditer(text):
        first, last, single = match.groups()
        if single == "-" and 0 < match.start() < len(text) - 1:  # Python reads a range from the character before it
            raise ValueError("a class has `-` only in a range, or as its first or last character")
        if single:
            found.add(single)
            continue
        alphabet = next((letters for letters in _ALPHABETS if first in letters and last in letters), "")
        if not alphabet or first > last:
            raise ValueError(f"`{first}-{last}` is not a range of digits, upper-case or lower-case letters")
        found |= set(alphabet[alphabet.index(first) : alphabet.index(last) + 1])
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class Form:
    """Secrets with one of these prefixes, not in the middle of another word, followed by the pattern.

    With `digit`, they contain at least one digit; with `inside_words`, they may begin in the middle of a word.
    """

    prefixes: tuple[str, ...]
    rest: str
    digit: bool = False
    inside_words: bool = False

    @property
    def least(self) -> int:
        """The length of the shortest match of the form. Raises ValueError."""
        least = min(map(len, self.prefixes)) + least_length(self.rest)
        if least < _LEAST:
            raise ValueError(f"a form matches at least {_LEAST} characters, start included")
        return least


@dataclass(frozen=True)
class SecretForms:
    """All forms of a policy. `options` are command options with a secret as value: `-p *`, where `*` is the secret.

    `published` are values that look like secrets and are none, `ids` patterns of ids that only look random.
    """

    forms: frozenset[Form] = frozenset()
    options: frozenset[tuple[str, str]] = frozenset()
    published: frozenset[str] = frozenset()
    ids: frozenset[str] = frozenset()
    known: bool = True

    @classmethod
    def of(cls, values: Mapping[str, Any] | None) -> SecretForms:
        """The forms of policy/secrets.yaml; without it, `UNKNOWN_FORMS`."""
        if not values:
            return UNKNOWN_FORMS
        rows = values["forms"].values()
        forms = frozenset(
            Form(tuple(row["prefixes"]), row["rest"], row.get("digit", False), row.get("inside_words", False))
            for row in rows
        )
        options = values["options"].items()
        handed = frozenset((program, option) for program, names in options for option in names)
        ids = frozenset(values.get("ids", {}).values())
        return cls(forms, handed, frozenset(values.get("published", ())), ids)

    def __or__(self, other: SecretForms) -> SecretForms:
        """The forms of both, and what both know as published or as an id; known forms replace unknown ones."""
        if not (self.known and other.known):
            return self if self.known else other
        published, ids = self.published & other.published, self.ids & other.ids
        return SecretForms(self.forms | other.forms, self.options | other.options, published, ids)

    def unpublished(self, text: str) -> str:
        """The text with blanks in the place of published values that are no part of a longer word."""
        for value in self.published:
            if value in text:
                text = re.sub(f"{_BEFORE}{re.escape(value)}{_BEHIND}", " " * len(value), text)
        return text

    def without_ids(self, text: str) -> str:
        """The text with blanks in the place of ids that are no part of a longer word: what may look random."""
        return self._ids.sub(lambda match: " " * len(match[0]), text) if self.ids else text

    def spans(self, text: str) -> Iterator[Span]:
        """Spans of vendors' secrets and of secrets passed to programs; they may overlap."""
        if not self.known:
            yield from (match.span() for match in _TOKEN_LIKE.finditer(text))
        end = 0
        for at in sorted(self._places(text)):
            if at >= end:  # no form matches across a line end
                start, end = line_at(text, at, "\n")
                for pattern in self._plain:
                    yield from (one.span() for one in pattern.finditer(text, start, end) if not stands_in(one[0]))
                found = self._with_digit.finditer(text, start, end)
                yield from (one.span() for one in found if _DIGIT.search(one[0]))

    def handed(self, text: str) -> bool:
        """Whether a command passes a secret to a program in one of its options."""
        pattern = self._handed if self.known else _TOKEN_LIKE
        return pattern is not None and pattern.search(text) is not None

    def none_in(self, text: str) -> bool:
        """Whether `spans` finds nothing; cheap for texts without secrets."""
        return self.known and next(self.spans(text), None) is None

    def _places(self, text: str) -> Iterator[int]:
        """A place in each line that a form matches in."""
        done = 0
        for start, end in pieces_with_runs(text, _WORDS, _LONG):
            begins = self._begins.finditer(text, start, end) if start >= done else ()
            if any(self._words.match(text, begin.start()) for begin in begins):
                yield start
                done = line_at(text, start, "\n")[1]
        for word in self._starts:
            at = text.find(word) if word in text else -1
            while at >= 0:
                done = at + 1
                if self._others.match(text, at) is not None:
                    yield at
                    done = line_at(text, at, "\n")[1]
                at = text.find(word, done)

    @cached_property
    def _plain(self) -> tuple[re.Pattern[str], ...]:
        handed = () if self._handed is None else (self._handed,)
        return (_compiled([form for form in self.forms if not form.digit]), *handed)

    @cached_property
    def _with_digit(self) -> re.Pattern[str]:
        return _compiled([form for form in self.forms if form.digit])

    @cached_property
    def _handed(self) -> re.Pattern[str] | None:
        programs: dict[str, list[str]] = {}
        for program, option in sorted(self.options):
            programs.setdefault(program, []).append(_option(option))
        if not programs:
            return None
        each = (
            rf"{re.escape(program)[0]}(?<![\w.-].){re.escape(program)[1:]}(?![\w.-]){_GAP}(?:{'|'.join(names)})"
            for program, names in programs.items()
        )
        return re.compile("|".join(each))

    @cached_property
    def _ids(self) -> re.Pattern[str]:
        return re.compile(f"(?<![A-Za-z0-9+_.-])(?:{'|'.join(sorted(self.ids))})(?![A-Za-z0-9+_=-])")

    @cached_property
    def _begins(self) -> re.Pattern[str]:
        """Where a form of `_words` may begin."""
        forms, _ = self._single
        return _compiled(
            replace(form, prefixes=(prefix[0],), rest=f"(?={re.escape(prefix[1:])})")
            for form in forms
            for prefix in form.prefixes
        )

    @cached_property
    def _words(self) -> re.Pattern[str]:
        """The forms that are a long word from their first character on."""
        return _compiled(self._single[0])

    @cached_property
    def _starts(self) -> set[str]:
        """What a form of `_others` begins with."""
        begins = [*(form.prefixes[0] for form in self._single[1]), *(program for program, _ in self.options)]
        return {begin[:_START] for begin in begins}

    @cached_property
    def _others(self) -> re.Pattern[str]:
        """The other forms, and the options."""
        handed = "" if self._handed is None else f"|{self._handed.pattern}"
        return re.compile(_compiled(self._single[1]).pattern + handed)

    @cached_property
    def _single(self) -> tuple[list[Form], list[Form]]:
        """The forms with one prefix each: those that are a long word from their first character on, and the others."""
        forms = [replace(form, prefixes=(prefix,)) for form in self.forms for prefix in form.prefixes]
        words = [form for form in forms if _word_length(form) >= _LONG]
        return words, [form for form in forms if form not in words]


def _word_length(form: Form) -> int:
    """How many characters of a word a match has at least, from its first one on."""
    length = 0
    if _WORD_CHARACTERS.issuperset(form.prefixes[0]):
        length = len(form.prefixes[0])
        for part in takewhile(lambda part: part.characters <= _WORD_CHARACTERS, _parts(form.rest)):
            length += part.least
    return length


def _compiled(forms: Iterable[Form]) -> re.Pattern[str]:
    """One pattern for all forms, grouped by first letter, so that matching skips from one such letter to the next."""
    heads: dict[tuple[str, bool], list[tuple[str, str]]] = {}
    for form in forms:
        for start in form.prefixes:
            heads.setdefault((start[0], form.inside_words), []).append((start, form.rest))
    each = []
    for (first, inside_words), rows in sorted(heads.items()):
        edge = "" if inside_words else f"(?<!{_EDGE}{re.escape(first)})"
        longest = sorted(rows, key=lambda row: (-len(row[0]), row))
        each.append(f"{re.escape(first)}{edge}(?:{'|'.join(re.escape(start[1:]) + rest for start, rest in longest)})")
    return re.compile("|".join(each) or "(?!)")


def _option(option: str) -> str:
    words = re.escape(option).replace(r"\ ", r"[ \t]{1,4}")
    return words.replace(r"\*:\*", rf"[\"']?(?!\d+:\d+(?:\s|$))[^\s:\"']{{1,64}}:{_VALUE}").replace(
        r"\*", rf"[\"']?{_VALUE}"
    )


_DIGIT = re.compile(r"[0-9]")
_TOKEN_LIKE = re.compile(
    r"(?<![A-Za-z0-9_~-])(?!(?<!\.)(?:[0-9a-f]{32}|[0-9a-f]{64})(?![A-Za-z0-9_~-]))"
    r"(?=[A-Za-z_~-]*[0-9])(?=[0-9_~-]*[A-Za-z])[A-Za-z0-9_~-]{14,}"
    r"|(?<!\S)--?[A-Za-z][A-Za-z0-9_-]{0,40}[ \t=]{1,4}(?!-)\S+|(?<!\S)-[A-Za-z](?=[^\s-])\S{3,}"
)
UNKNOWN_FORMS = SecretForms(known=False)
"""Stands where no policy was loaded: any long word of letters and digits counts as a secret, and any option's value."""
