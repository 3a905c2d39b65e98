package admission.requirements.skill_file.path_test

import data.admission.requirements.skill_file.path
import future.keywords.not

_policy := {"skills": {"folders": ["scripts"], "depth": 1}}

_path := {
	"canonical": true, "absolute": false, "dotdot": false,
	"text": "scripts/run.sh", "segments": 2, "folder": "scripts", "name": "run.sh",
}

_paths := {
	"clean": _path,
	"another folder": object.union(_path, {"folder": "private"}),
	"nested": object.union(_path, {"segments": 3}),
	"not canonical": object.union(_path, {"canonical": false}),
	"absolute": object.union(_path, {"absolute": true}),
	"with ..": object.union(_path, {"dotdot": true}),
	"no word on canonical": object.remove(_path, ["canonical"]),
	"no word on absolute": object.remove(_path, ["absolute"]),
	"no word on ..": object.remove(_path, ["dotdot"]),
	"no folder": object.remove(_path, ["folder"]),
	"no count": object.remove(_path, ["segments"]),
	"nothing": {},
}

test_path_allowed if {
	held := {name |
		some name, asked in _paths
		path.path_allowed with input as {"path": asked} with data.policy as _policy
	}
	held == {"clean"}
	not path.path_allowed with input as {} with data.policy as _policy
	not path.path_allowed with input as {"path": _path} with data.policy as {}
}

test_link_inside if {
	held := {link |
		some link in ["none", "inside", "escape", "", null]
		path.link_inside with input as {"file": {"link": link}}
	}
	held == {"none", "inside"}
	not path.link_inside with input as {"file": {}}
	not path.link_inside with input as {}
}

test_target_allowed if {
	path.target_allowed with input as {"file": {"real": _path}} with data.policy as _policy
	every real in [_paths.nested, _paths["another folder"], {}, null] {
		not path.target_allowed with input as {"file": {"real": real}} with data.policy as _policy
	}
	not path.target_allowed with input as {"file": {}} with data.policy as _policy
	not path.target_allowed with input as {"file": {"real": _path}} with data.policy as {}
}
