"""What a policy leaves open and what it says in vain: gaps, found by reading values and the record.

Nothing here decides: a gap is told to people and changes no answer. `tool_values` reads
policy/tools.yaml as rules that name tools, `of_values` and `of_definitions` compare values with each
other and with tools that exist, `usage` counts what recorded decisions used, `of_record` tells what
none of them did. Each is one pass over what it reads.
"""

from __future__ import annotations

from engine.coverage.gaps import Gap, Kind
from engine.coverage.of_definitions import definition_gaps
from engine.coverage.of_record import record_gaps
from engine.coverage.of_values import value_gaps
from engine.coverage.tool_values import ToolValues
from engine.coverage.usage import Usage, usage

__all__ = ["Gap", "Kind", "ToolValues", "Usage", "definition_gaps", "record_gaps", "usage", "value_gaps"]
