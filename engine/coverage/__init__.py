"""Policy coverage: gaps and unused rules, found in the values and the record.

Nothing here decides: a gap is reported to people and changes no answer. `tool_values` reads
policy/tools.yaml as rules that name tools, `value_gaps` compares values with each other and with tools
that exist, `record_gaps` counts what recorded decisions used and reports what none of them did, `waivers`
counts what each waiver let through.
Each is one pass over what it reads.
"""

from engine.coverage.record_gaps import Usage, record_gaps, usage
from engine.coverage.tool_values import Gap, Kind, ToolValues
from engine.coverage.value_gaps import definition_gaps, value_gaps

__all__ = ["Gap", "Kind", "ToolValues", "Usage", "definition_gaps", "record_gaps", "usage", "value_gaps"]
