"""What counts as a word where texts are compared word for word."""

from __future__ import annotations

import pytest

from engine.facts.text.quotes import longest_quote, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("My lowest price, 95_a!", ("my", "lowest", "price", "95_a")),
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
    assert longest_quote(words_of("他说最低价格是九十五。"), words_of("我的最低价格是九十五而且今天必须卖。")) == 8
