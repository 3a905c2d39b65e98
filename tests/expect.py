"""What tests say again and again: that a value is there, what was found, and what is refused with which code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from engine.errors import EngineError
from engine.flow import Answer

T = TypeVar("T")


def there(value: T | None) -> T:
    """The value; the test fails where there is none."""
    assert value is not None
    return value


def of(kind: type[T], value: object) -> T:
    """The value as what it is; the test fails where it is of another kind."""
    assert isinstance(value, kind), value
    return value


def codes(answer: Answer) -> list[str]:
    """The codes of what was found, in its order."""
    return [finding.code for finding in answer.decision.findings]


@contextmanager
def refused(kind: type[EngineError], code: str) -> Iterator[None]:
    """Fail unless the block raises an error of this family with this code."""
    with pytest.raises(kind) as caught:
        yield
    assert caught.value.code == code
