package admission.limits.memory_test

import data.admission.limits.memory
import future.keywords.not

_input := {
	"operation": "read",
	"caller": {"principal": "agent-7"},
	"written": [],
	"memories": [{"id": "m1", "digest": "d", "owner": "agent-7"}],
}

test_limits if {
	wanted := {"operation": "read", "owner": "agent-7", "written": [], "entries": [{"id": "m1", "digest": "d"}]}
	memory.limits == wanted with input as _input
	written := object.union(_input, {"operation": "write", "written": [{"digest": "e"}], "memories": []})
	memory.limits.written == ["e"] with input as written
	every path in ["operation", "caller", "written", "memories", "memories/0/digest", "memories/0/id"] {
		not memory.limits with input as json.remove(_input, [path])
	}
	not memory.limits with input as object.union(_input, {"written": [{"id": "0"}]})
}
