package admission.limits.tool_result_test

import data.admission.limits.tool_result
import future.keywords.not

_policy := {
	"tools": {"limits": {"result_bytes": 200000, "prompt_bytes": 400000}},
	"results": {"redact": ["secrets"], "hosts": [], "data_characters": {"image": 0, "link": 200, "text": 4000}},
}

_shown := {
	"ok": {"status": "ok", "error_mode": "safe"},
	"ok in debug": {"status": "ok", "error_mode": "debug"},
	"validation": {"status": "error", "error": {"kind": "validation"}, "error_mode": "safe"},
	"validation in debug": {"status": "error", "error": {"kind": "validation"}, "error_mode": "debug"},
	"other": {"status": "error", "error": {"kind": "other"}, "error_mode": "safe"},
	"other in debug": {"status": "error", "error": {"kind": "other"}, "error_mode": "debug"},
}

test_complete if {
	links := [{"id": "0", "kind": "image", "data": 1}]
	every name, request in _shown {
		asked := object.union(request, {"links": links})
		limits := tool_result.limits with input as asked with data.policy as _policy
		limits == {
			"max_bytes": 200000,
			"prompt_bytes": 400000,
			"redact_secrets": true,
			"redact_hidden": false,
			"redact_links": ["0"],
			"error_mode": request.error_mode,
			"show_message": name in {"validation", "validation in debug", "other in debug"},
			"record_side_effect": true,
		}
	}
}

test_incomplete if {
	requests := [
		{}, {"status": "ok"}, {"error_mode": "safe"}, {"status": "done", "error_mode": "safe"},
		{"status": "ok", "error_mode": "trace"}, {"status": "error", "error_mode": "safe"},
		{"status": "error", "error": {"kind": null}, "error_mode": "debug"},
	]
	every request in requests {
		asked := object.union(request, {"links": []})
		not tool_result.limits with input as asked with data.policy as _policy
	}
	not tool_result.limits with input as _shown.ok with data.policy as _policy
}

test_values_missing if {
	asked := object.union(_shown.ok, {"links": []})
	every name in ["result_bytes", "prompt_bytes"] {
		policy := json.remove(_policy, [concat("/", ["tools", "limits", name])])
		not tool_result.limits with input as asked with data.policy as policy
	}
}
