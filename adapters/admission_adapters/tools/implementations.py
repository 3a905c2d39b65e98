"""Finds the source file of a function and its digest.

A digest describes a function only if the function is the one in the file. So the file is compiled
again and must contain exactly the function's code. Defaults, the state of an object, the variables
around it and its imports are not covered: the reviewer of the file checks them.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from admission_adapters.digests import digest
from engine.errors import WorkError

LARGEST = 4 << 20
"""Bytes of a source file; what people have read is smaller."""


def implementation_digest(implementation: Callable[..., Any]) -> str:
    """`sha256:` and hex of the source file of a function or method of this program.

    Raises WorkError `engine.tool_not_local` for a callable that is no plain function, is wrapped, has no
    source file, or differs from that file.
    """
    function = implementation.__func__ if isinstance(implementation, types.MethodType) else implementation
    if not isinstance(function, types.FunctionType):
        raise _not_local("is not a function with a source file")
    if hasattr(function, "__wrapped__"):
        raise _not_local("is wrapped by a decorator from another file")
    code = function.__code__
    try:
        with Path(code.co_filename).open("rb") as file:
            data = file.read(LARGEST + 1)
        compiled = compile(data, code.co_filename, "exec", dont_inherit=True)
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise _not_local("has no source file that can be read") from error
    if len(data) > LARGEST or not any(candidate == code for candidate in _codes(compiled)):
        raise _not_local("differs from its source file")
    return digest(data)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """All code in a compiled file, at any depth."""
    waiting = [code]
    while waiting:
        code_object = waiting.pop()
        yield code_object
        waiting += [inner for inner in code_object.co_consts if isinstance(inner, types.CodeType)]


def _not_local(what: str) -> WorkError:
    return WorkError(
        f"the implementation {what}",
        remedy="register a plain function or method of a module of this program",
        code="engine.tool_not_local",
    )
