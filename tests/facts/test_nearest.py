"""Keys suggested for a spelling that a table does not have."""

from __future__ import annotations

import pytest

from engine.facts.text.nearest import did_you_mean, nearest

KEYS = ("MIT", "CC-BY-3.0", "CC-BY-4.0", "CC-BY-SA-4.0", "Apache-2.0", "GPL-3.0-only")
ALIASES = {"creative commons attribution 4.0": "CC-BY-4.0", "gplv3": "GPL-3.0-only", "llama9": "not-a-row"}


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("cc-by", ("CC-BY-4.0", "CC-BY-3.0", "CC-BY-SA-4.0")),
        ("CC BY 4.0 International", ("CC-BY-4.0",)),
        ("Creative Commons Attribution 4.0 Germany", ("CC-BY-4.0",)),
        ("CC BY 4 International", ("CC-BY-4.0", "CC-BY-3.0", "CC-BY-SA-4.0")),
        ("Apache 2", ("Apache-2.0",)),
        ("GPL v3", ("GPL-3.0-only",)),
        ("MTI-", ()),
        ("llama9", ()),
        ("proprietary", ()),
        ("", ()),
        ("---", ()),
        ("x" * 100_000, ()),
    ],
)
def test_the_nearest_license_keys_are_suggested(text: str, keys: tuple[str, ...]) -> None:
    assert nearest(text, KEYS, ALIASES) == keys


def test_suggestions_are_phrased_as_a_question() -> None:
    assert did_you_mean(("A", "B", "C")) == "did you mean `A`, `B` or `C`?"
    assert did_you_mean(("A",)) == "did you mean `A`?"
