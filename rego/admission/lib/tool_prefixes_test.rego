package admission.lib.tool_prefixes_test

import data.admission.lib.tool_prefixes
import future.keywords.not

_policy := {"tools": {"tools": {
	"shell": {"side_effects": ["read", "execute"]},
	"files": {"side_effects": ["read"]},
}}}

_prefix := {
	"id": "p1",
	"tool": "shell",
	"principal": "agent",
	"cwd": "/work",
	"words": ["git", "status"],
	"approver": "ana",
	"expires_at": 200,
	"revoked": false,
}

_command := {"id": "c", "canonical": true, "words": ["git", "status", "-s"], "parts": 0}

_request := {
	"now": 100,
	"context": {"cwd": "/work"},
	"caller": {"principal": "agent"},
	"call": {"tool": "shell"},
	"commands": [_command],
	"command_parts": [],
	"prefixes": [_prefix],
}

_approved := tool_prefixes.approved(input.commands[0])

_with_prefix(change) := object.union(_request, {"prefixes": [object.union(_prefix, change)]})

_with_words(words) := object.union(_request, {"commands": [object.union(_command, {"words": words})]})

test_approved if {
	_approved == "p1" with input as _request with data.policy as _policy
	exactly := _with_words(["git", "status"])
	_approved == "p1" with input as exactly with data.policy as _policy
}

test_the_first_of_several if {
	two := object.union(_request, {"prefixes": [object.union(_prefix, {"id": "p2"}), _prefix]})
	_approved == "p1" with input as two with data.policy as _policy
}

test_what_a_command_can_do_beyond_the_approved_words if {
	part := {"command": "c", "kind": "option", "name": "-s", "program": "git status", "index": 2}
	with_part := object.union(_request, {"commands": [object.union(_command, {"parts": 1})], "command_parts": [part]})
	row := {"program_rows": {"git status": {"none": ["-s"]}}}
	_approved == "p1" with input as with_part with data.policy as object.union(_policy, row)
	not _approved with input as with_part with data.policy as _policy
	fewer := object.union(_request, {"commands": [object.union(_command, {"parts": 1})]})
	not _approved with input as fewer with data.policy as _policy
}

test_another_command if {
	every words in [["git"], ["git", "push"], ["/usr/bin/git", "status"], ["Git", "status"], ["git status"], [], null] {
		not _approved with input as _with_words(words) with data.policy as _policy
	}
	uncanonical := object.union(_request, {"commands": [object.union(_command, {"canonical": false})]})
	not _approved with input as uncanonical with data.policy as _policy
}

test_another_approval if {
	every change in [
		{"tool": "files"}, {"principal": "other"}, {"cwd": "/work/sub"}, {"revoked": true}, {"revoked": null},
		{"approver": "agent"}, {"approver": null}, {"expires_at": 100}, {"expires_at": "300"}, {"words": []},
		{"words": ["git", "status", "-s", "x"]}, {"words": "git"}, {"id": null},
	] {
		not _approved with input as _with_prefix(change) with data.policy as _policy
	}
}

test_only_tools_that_execute if {
	files := object.union(
		_request,
		{"call": {"tool": "files"}, "prefixes": [object.union(_prefix, {"tool": "files"})]},
	)
	not _approved with input as files with data.policy as _policy
}

test_facts_missing if {
	every lost in [
		"now", "context", "context/cwd", "caller", "caller/principal", "call", "call/tool", "commands", "prefixes",
		"prefixes/0/tool", "prefixes/0/principal", "prefixes/0/cwd", "prefixes/0/words", "prefixes/0/approver",
		"prefixes/0/expires_at", "prefixes/0/revoked", "prefixes/0/id", "commands/0/words", "commands/0/canonical",
	] {
		not _approved with input as json.remove(_request, [lost]) with data.policy as _policy
	}
	nobody := object.union(_request, {"caller": {"principal": null}, "prefixes": [object.union(
		_prefix,
		{"principal": null},
	)]})
	not _approved with input as nobody with data.policy as _policy
	nowhere := object.union(_request, {"context": {"cwd": null}, "prefixes": [object.union(_prefix, {"cwd": null})]})
	not _approved with input as nowhere with data.policy as _policy
}

test_a_clock_that_is_no_number_is_none if {
	every now in [null, false] {
		not _approved with input as object.union(_request, {"now": now}) with data.policy as _policy
	}
}

_named(command, index) := {"id": "h", "word": {"command": command, "index": index}}

test_a_word_is_named_by_a_beginning_of_its_own_command_that_reaches_it if {
	second := {"id": "d", "canonical": true, "words": ["ssh", "status"], "parts": 0}
	two := object.union(_request, {"commands": [_command, second]})
	held := {[command, index] |
		some command in ["c", "d", "e", null]
		some index in [0, 1, 2, null, "1"]
		tool_prefixes.approved_word(_named(command, index)) with input as two with data.policy as _policy
	}
	held == {["c", 0], ["c", 1]}
	other := _with_words(["git", "push"])
	not tool_prefixes.approved_word(_named("c", 1)) with input as other with data.policy as _policy
	not tool_prefixes.approved_word({"id": "h"}) with input as two with data.policy as _policy
}

test_values_missing if {
	every policy in [{}, {"tools": {}}, json.remove(_policy, ["tools/tools/shell"])] {
		not _approved with input as _request with data.policy as policy
	}
}
