"""A path has one reading or no parts; what it would have to be repaired to is nobody's business."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.points.skill_file import LONGEST, PathFacts, path_facts


def test_a_plain_path_has_parts() -> None:
    assert path_facts("scripts/run.sh") == PathFacts(
        canonical=True, absolute=False, dotdot=False, text="scripts/run.sh", segments=2, folder="scripts", name="run.sh"
    )
    assert path_facts("SKILL.md") == PathFacts(
        canonical=True, absolute=False, dotdot=False, text="SKILL.md", segments=1, folder=None, name="SKILL.md"
    )
    assert path_facts("assets/Grüße 1.txt").name == "Grüße 1.txt"
    assert path_facts("scripts/a..b/100%").segments == 3
    assert path_facts("a/" + "b" * (LONGEST - 2)).canonical


# covers: B34
@pytest.mark.parametrize(
    ("text", "absolute", "dotdot"),
    [
        ("", False, False),
        (".", False, False),
        ("..", False, True),
        ("/", True, False),
        ("/etc/passwd", True, False),
        ("//host/share", True, False),
        ("~/.ssh/id", True, False),
        ("~root/x", True, False),
        ("C:/x", True, False),
        ("c:x", True, False),
        ("\\\\host\\share", True, False),
        ("scripts\\run.sh", False, False),
        ("scripts\\..\\run.sh", False, True),
        ("scripts/../run.sh", False, True),
        ("scripts/..", False, True),
        ("../scripts/run.sh", False, True),
        ("scripts/./run.sh", False, False),
        ("./scripts/run.sh", False, False),
        ("scripts//run.sh", False, False),
        ("scripts/run.sh/", False, False),
        ("scripts/ run.sh", False, False),
        ("scripts /run.sh", False, False),
        ("scripts/run.sh\0", False, False),
        ("scripts/run.sh\n", False, False),
        ("scripts/\u202ehs.nur", False, False),
        ("scripts/\u200brun.sh", False, False),
        ("scripts%2frun.sh", False, False),
        ("scripts%2Frun.sh", False, False),
        ("scripts/%2e%2e/run.sh", False, False),
        ("scripts/%00", False, False),
        ("scripts\uff0frun.sh", False, False),
        ("scripts/\uff0e\uff0e", False, False),
        ("scripts/\u2024\u2024/run.sh", False, False),
        ("ﬁles/run.sh", False, False),
        ("scripts/u\u0308.txt", False, False),
        ("scripts/\ud800", False, False),
        ("a/" + "b" * (LONGEST - 1), False, False),
    ],
)
def test_a_non_canonical_path_has_no_parts(text: str, absolute: bool, dotdot: bool) -> None:  # noqa: FBT001
    assert path_facts(text) == PathFacts(canonical=False, absolute=absolute, dotdot=dotdot)


@given(st.text(st.sampled_from("./\\~ab%2f\0é\uff0f "), max_size=12))
def test_a_path_with_parts_is_canonical_and_relative(text: str) -> None:
    facts = path_facts(text)
    if facts.text is not None:
        parts = text.split("/")
        assert (facts.segments, facts.name) == (len(parts), parts[-1])
        assert facts.canonical
        assert not facts.absolute
        assert not facts.dotdot
