package admission.requirements.tool_result.content_test

import data.admission.requirements.tool_result.content
import future.keywords.not

_policy(redact) := {"results": {
	"redact": redact,
	"hosts": ["https://docs.example.com"],
	"data_characters": {"image": 0, "link": 200, "text": 4000},
	"markers": {"phrases": [], "tokens": []},
}}

_requests := {
	"nothing found": {"status": "ok", "content": {"secrets": 0, "hidden": 0, "instructions": 0, "complete": true}},
	"all found": {"status": "ok", "content": {"secrets": 1, "hidden": 1, "instructions": 1, "complete": true}},
	"incomplete": {"status": "ok", "content": {"secrets": 0, "hidden": 0, "instructions": 0, "complete": false}},
	"null": {"status": "ok", "content": {"secrets": null, "hidden": null, "instructions": null, "complete": null}},
	"not looked at": {"status": "ok", "result": {"bytes": 1}},
	"no content": {"status": "ok", "content": {}},
	"error": {"status": "error", "error": {"kind": "other"}},
	"error with a result": {"status": "error", "result": {"bytes": 1}},
	"no status": {},
}

_taking_out := {"nothing found", "all found", "incomplete", "error"}

test_looked_at if {
	held := {name | some name, request in _requests; content.looked_at with input as request}
	held == {"nothing found", "all found", "error"}
}

test_secrets_taken_out if {
	refusing := {name |
		some name, request in _requests
		content.secrets_taken_out with input as request with data.policy as _policy([])
	}
	refusing == {"nothing found", "incomplete", "error"}
	held := {name |
		some name, request in _requests
		content.secrets_taken_out with input as request with data.policy as _policy(["secrets"])
	}
	held == _taking_out
}

test_hidden_taken_out if {
	refusing := {name |
		some name, request in _requests
		content.hidden_taken_out with input as request with data.policy as _policy([])
	}
	refusing == {"nothing found", "incomplete", "error"}
	held := {name |
		some name, request in _requests
		content.hidden_taken_out with input as request with data.policy as _policy(["hidden_characters"])
	}
	held == _taking_out
}

test_without_instructions if {
	held := {name |
		some name, request in _requests
		content.without_instructions with input as request with data.policy as _policy([])
	}
	held == {"nothing found", "incomplete", "error"}
	not content.without_instructions with input as _requests["nothing found"] with data.policy as {}
}

test_carries_nothing if {
	links := {
		"harmless": {"id": "0", "kind": "link", "data": 3, "open": false},
		"data": {"id": "1", "kind": "image", "data": 3, "open": false},
		"no id": {"kind": "image", "data": 3, "open": false},
	}
	refusing := {name | some name, link in links; content.carries_nothing(link) with data.policy as _policy([])}
	refusing == {"harmless"}
	held := {name | some name, link in links; content.carries_nothing(link) with data.policy as _policy(["links"])}
	held == {"harmless", "data"}
}
