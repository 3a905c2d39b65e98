"""Secrets and private data in text: all that can be found, and the formats of vendors that the policy states.

The forms of vendors are values (policy/secrets.yaml). What the engine writes is searched for all forms that any
policy of this process has stated so far; before the first one, any long word of letters and digits counts. The key of
the remote model counts whatever its form.

Every pattern reads text in linear time: bounded repeats, or repeats that cannot overlap what follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.secrets import headers, passwords, personal, randomness, seeds
from engine.secrets.finder import Finder
from engine.secrets.forms import UNKNOWN_FORMS, SecretForms
from engine.secrets.lines import Lines, Span
from engine.secrets.seen import readings

_NAMED = (*headers.FINDERS, *passwords.FINDERS, personal.MAILS)
_UNNAMED = (personal.CARDS, randomness.FINDER, seeds.FINDER)
_WORDS = frozenset(word for finder in _NAMED for word in finder.words)

_known = UNKNOWN_FORMS
_keys: frozenset[str] = frozenset()


def know(forms: SecretForms) -> None:
    """Add forms of secrets that this process redacts from now on; forms are never removed."""
    global _known  # noqa: PLW0603  (per process, like its log: secrets must be removed from everything that it writes)
    _known = _known | forms


def known_forms() -> SecretForms:
    """The forms of all policies that this process has loaded."""
    return _known


def know_key(key: str) -> None:
    """Take this text for a secret from now on, whatever its form and the policy; keys are never removed."""
    global _keys  # noqa: PLW0603  (as for `know`)
    _keys |= {key}


def known_keys(text: str) -> Iterator[Span]:
    """Spans of the keys that this process knows."""
    for key in _keys:
        at = text.find(key)
        while at >= 0:
            yield at, at + len(key)
            at = text.find(key, at + 1)


def find_secrets(text: str, forms: SecretForms | None = None) -> Iterator[Span]:
    """Spans of `text` that must not be written anywhere, unordered and possibly overlapping.

    Also as people see the text: invisible characters, full-width letters and escapes of JSON hide nothing.
    """
    known = _known if forms is None else forms
    for reading, placed in readings(known.unpublished(text)):
        yield from placed(known_keys(reading))
        yield from placed(known.spans(reading))
        lines = Lines(reading)
        for finder in _finders(lines):
            yield from placed(finder.all(lines))


def find_credentials(text: str, forms: SecretForms) -> Iterator[Span]:
    """Spans of keys, tokens and passwords, unordered and possibly overlapping.

    Narrower than `find_secrets`: mail addresses, card numbers, account names, digests, images and statements about
    passwords do not count.
    """
    for reading, placed in readings(forms.unpublished(text)):
        yield from placed(known_keys(reading))
        yield from placed(forms.spans(reading))
        lines = Lines(reading)
        for finder in _finders(lines):
            if finder is randomness.FINDER and next(lines.with_runs(), None):
                lines = Lines(forms.without_ids(reading))
            if finder.secrets is not None:
                yield from placed(finder.secrets(lines))


def is_secret(text: str, forms: SecretForms) -> bool:
    """Whether a text contains a key, token or password, as `find_credentials` finds them."""
    return next(find_credentials(text, forms), None) is not None


def find_private(text: str) -> Iterator[Span]:
    """Spans of mail addresses, numbers of payment cards and numbers of people, also as people see the text."""
    for reading, placed in readings(text):
        lines = Lines(reading)
        for find in (personal.find_mails, personal.find_cards, personal.find_numbers):
            yield from placed(find(lines))


def find_secrets_across(words: Sequence[str]) -> Iterator[Span]:
    """Spans, in the words joined by blanks, of secrets that only several words form together."""
    lines = Lines(" ".join(words))
    if any(word.startswith("-") for word in words):
        yield from _known.spans(lines.text)
        yield from passwords.named_options(lines)
    yield from seeds.find_seeds(lines)
    yield from passwords.spoken(lines)
    yield from passwords.netrcs(lines)


def _finders(lines: Lines) -> list[Finder]:
    """Those that may find something."""
    present, size = {word for word in _WORDS if word in lines.low}, len(lines.text)
    named = [finder for finder in _NAMED if not present.isdisjoint(finder.words)] if present else []
    return [*named, *(finder for finder in _UNNAMED if size >= finder.least)]
