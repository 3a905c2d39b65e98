package admission.requirements.sandbox.material_test

import data.admission.lib.input_files_test
import data.admission.requirements.sandbox.material
import future.keywords.not

_policy := input_files_test.policy

_given(files) := {"profile": "here", "files": files}

test_files_within if {
	file := {"id": "src/a.py", "bytes": 4, "sha256": "x"}
	material.files_within with input as _given([]) with data.policy as _policy
	material.files_within with input as _given([file]) with data.policy as _policy
	not material.files_within with input as _given([object.union(file, {"bytes": 5})]) with data.policy as _policy
	not material.files_within with input as {"profile": "here"} with data.policy as _policy
	not material.files_within with input as {"files": []} with data.policy as _policy
	not material.files_within with input as _given([]) with data.policy as {}
}
