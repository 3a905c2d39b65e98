"""What counts as a word where texts are compared word for word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.facts.text.quotes import Runs, words_of
from engine.points.transcript import Monologue, NewEntry, TranscriptRequest, quotes_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("My lowest price, 95_a!", ("my", "lowest", "price", "95", "a")),
        ("", ()),
        ("Straße ÀÉ", ("strasse", "àé")),
        ("\uff4d\uff59\u3000\uff50rice", ("my", "price")),
        ("lo\u200bwest\u00ad price", ("lowest", "price")),
        ("价格是95。", ("价", "格", "是", "95")),
        ("ﾈﾀﾞん々", ("ネ", "ダ", "ん", "々")),
        ("ราคา 95", ("ร", "า", "ค", "า", "95")),
        ("가격은 95", ("가격은", "95")),
    ],
)
def test_words_of_any_script(text: str, words: tuple[str, ...]) -> None:
    assert words_of(text) == words


def test_a_part_of_a_text_without_spaces_is_a_quote() -> None:
    assert Runs(words_of("他说最低价格是九十五。")).longest_in(words_of("我的最低价格是九十五而且今天必须卖。")) == 8


def _longest(text: str, source: str) -> int:
    """The same, by trying every run."""
    runs = [source[at:end] for at in range(len(source)) for end in range(at + 1, len(source) + 1)]
    return max((len(run) for run in runs if run in text), default=0)


@given(st.text("ab", max_size=12) | st.text("abc", max_size=9), st.text("abc", max_size=10))
def test_the_longest_run_equals_a_brute_force_search(text: str, source: str) -> None:
    assert Runs(text).longest_in(source) == _longest(text, source)


class _Counted(str):
    """A word that counts how often it is looked up."""

    __slots__ = ()
    hashed = 0

    def __hash__(self) -> int:
        _Counted.hashed += 1
        return super().__hash__()


@pytest.mark.parametrize("unit", ["a", "ab", "abc", "aab"])
def test_a_quote_is_found_in_linear_steps(unit: str) -> None:
    _Counted.hashed = 0
    text = [*map(_Counted, unit * (6_000 // len(unit)))]
    source = [*map(_Counted, (unit * (3_000 // len(unit)) + "x") * 2)]
    assert Runs(text).longest_in(source) == 3_000
    assert _Counted.hashed < 100_000


def test_quotes_are_unknown_beyond_the_comparison_limit() -> None:
    entry = NewEntry(actor="a", kind="dialogue", recipient=None, claimed_role=None, text="no less than 95")
    long = entry.model_copy(update={"text": "no " * 100_001})
    said = Monologue(actor="b", text="no " * 250_001)

    def compared(*entries: NewEntry) -> list[bool]:
        request = TranscriptRequest(episode="e-1", actors=(), entries=entries, monologues=(said,))
        return [quotes is not None for quotes in quotes_of(request)]

    assert compared(entry, entry) == [True, True]
    assert compared(entry, long) == [True, False]
    assert compared(*[entry] * 16) == [False] * 16
