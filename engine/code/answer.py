"""What is said of a run that went well, made of validated output and of the request, never of raw output (C43).

The fields and the sentence are the contract's, a value of the policy; here they are only put together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_FIELD = re.compile(r"\{([a-z][a-z0-9_]*)\}")


def sentence(template: str, carried: Mapping[str, Any], metrics: Mapping[str, Any], measured: Mapping[str, Any]) -> str:
    """The contract's sentence with its fields filled in. A name that nobody knows stays as it is written.

    What the request states wins over what the program computed (C82).
    """
    known = {**metrics, **measured, **carried}

    def filled(match: re.Match[str]) -> str:
        name = match[1]
        return str(known[name]) if name in known else match[0]

    return _FIELD.sub(filled, template)
