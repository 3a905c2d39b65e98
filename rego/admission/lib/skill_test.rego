package admission.lib.skill_test

import data.admission.lib.skill
import future.keywords.not

_policy := {"skills": {"folders": ["scripts", "assets"], "depth": 1}}

_places := {
	"directly in a folder": {"segments": 2, "folder": "scripts", "name": "run.sh"},
	"in the other folder": {"segments": 2, "folder": "assets", "name": "run.sh"},
	"nested": {"segments": 3, "folder": "scripts", "name": "run.sh"},
	"another folder": {"segments": 2, "folder": "private", "name": "run.sh"},
	"a hidden folder": {"segments": 2, "folder": ".git", "name": "config"},
	"a hidden file": {"segments": 1, "name": ".env"},
	"another case": {"segments": 2, "folder": "Scripts", "name": "run.sh"},
	"the folder itself": {"segments": 1, "folder": "scripts", "name": "scripts"},
	"at the top": {"segments": 1, "name": "SKILL.md"},
	"no count": {"folder": "scripts", "name": "run.sh"},
	"count is null": {"segments": null, "folder": "scripts", "name": "run.sh"},
	"count is text": {"segments": "2", "folder": "scripts", "name": "run.sh"},
	"nothing": {},
}

test_readable if {
	held := {name | some name, place in _places; skill.readable(place) with data.policy as _policy}
	held == {"directly in a folder", "in the other folder"}
}

test_deeper if {
	deeper := {"skills": {"folders": ["scripts"], "depth": 2}}
	held := {name | some name, place in _places; skill.readable(place) with data.policy as deeper}
	held == {"directly in a folder", "nested"}
}

test_at_the_top if {
	top := {"skills": {"folders": [".", "scripts"], "depth": 1}}
	held := {name | some name, place in _places; skill.readable(place) with data.policy as top}
	held == {"directly in a folder", "at the top", "a hidden file", "the folder itself"}
}

test_any_folder if {
	any_folder := {"skills": {"folders": ["*"], "depth": 1}}
	held := {name | some name, place in _places; skill.readable(place) with data.policy as any_folder}
	held == {"directly in a folder", "in the other folder", "another folder", "another case"}
}

test_values_missing if {
	every values in [{}, {"folders": ["scripts"]}, {"depth": 1}, {"folders": [], "depth": 1}] {
		not skill.readable(_places["directly in a folder"]) with data.policy as {"skills": values}
	}
}
