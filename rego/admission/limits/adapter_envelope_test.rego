package admission.limits.adapter_envelope_test

import data.admission.limits.adapter_envelope
import future.keywords.not

_terms := [{"id": id} |
	some id in ["size", "fields", "format", "id", "manifest", "operation", "tool", "arguments", "approval"]
]

_input := {"end": "request", "envelope": "sha256:ee", "terms": _terms}

test_limits if {
	limits := adapter_envelope.limits with input as _input
	limits == {"end": "request", "envelope": "sha256:ee"}
}

test_incomplete if {
	every path in ["end", "envelope", "terms", "terms/0", "terms/3/id"] {
		not adapter_envelope.limits with input as json.remove(_input, [path])
	}
	not adapter_envelope.limits with input as object.union(_input, {"end": "result"})
	not adapter_envelope.limits with input as object.union(_input, {"end": "middle"})
}
