package admission.requirements.release.change_test

import data.admission.requirements.release.change
import future.keywords.not

_policy := {"release": {
	"docstrings": {"minimum_percent": 60, "left_out": ["tests"]},
	"documentation": {"paths": ["docs/", "README.md"], "without": ["tests/"]},
}}

test_committed if {
	change.committed with input as {"change": {"clean": true}}
	every clean in [false, null, "true"] {
		not change.committed with input as {"change": {"clean": clean}}
	}
	not change.committed with input as {}
}

test_documented if {
	every paths in [["a/b.py", "docs/b.md"], ["README.md"], ["tests/b.py"]] {
		change.documented with input as {"change": {"paths": paths}} with data.policy as _policy
		not change.documented with input as {"change": {"paths": paths}} with data.policy as {}
	}
	every paths in [[], ["a/b.py"], ["a/b.py", "tests/b.py"], ["a/docs/b.md"], null] {
		not change.documented with input as {"change": {"paths": paths}} with data.policy as _policy
	}
	not change.documented with input as {} with data.policy as _policy
}

test_docstrings_written if {
	folders := {
		"enough": {"id": "a", "total": 10, "documented": 6},
		"nothing": {"id": "b", "total": 0, "documented": 0},
		"too few": {"id": "c", "total": 10, "documented": 5},
		"left out": {"id": "tests", "total": 10, "documented": 0},
		"not counted": {"id": "d", "total": 10},
	}
	held := {name | some name, one in folders; change.docstrings_written(one) with data.policy as _policy}
	held == {"enough", "nothing", "left out"}
	every one in folders {
		not change.docstrings_written(one) with data.policy as {}
	}
}
