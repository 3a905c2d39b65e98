package admission.requirements.code_execution.material_test

import data.admission.lib.code_execution_test
import data.admission.requirements.code_execution.material
import future.keywords.not

_policy := code_execution_test.policy

_run := code_execution_test.run

_packages(change) := object.union(
	_run,
	{"packages": object.union({"stated": true, "value": "science", "tree": "sha256:t"}, change)},
)

_file(name, size) := {"id": name, "bytes": size, "sha256": "x"}

_files(files) := object.union(_run, {"files": files})

test_contract if {
	material.contract_known with input as _run with data.policy as _policy
	every name in ["facts", "free"] {
		known := object.union(_run, {"contract": {"stated": true, "value": name}})
		material.contract_known with input as known with data.policy as _policy
	}
	every contract in [{"stated": true, "value": "none"}, {"stated": true}, {"stated": null}] {
		unknown := object.union(_run, {"contract": contract})
		not material.contract_known with input as unknown with data.policy as _policy
	}
	not material.contract_known with input as {} with data.policy as _policy
}

test_packages_known if {
	material.packages_known with input as _run with data.policy as _policy
	material.packages_known with input as _packages({}) with data.policy as _policy
	every change in [{"value": "magic"}, {"value": null}, {"stated": null, "value": "magic"}] {
		not material.packages_known with input as _packages(change) with data.policy as _policy
	}
	not material.packages_known with input as {} with data.policy as _policy
	not material.packages_known with input as _packages({}) with data.policy as {}
}

test_packages_unchanged if {
	material.packages_unchanged with input as _run with data.policy as _policy
	material.packages_unchanged with input as _packages({}) with data.policy as _policy
	every change in [{"tree": "sha256:u"}, {"tree": null}, {"value": "magic"}, {"stated": null, "tree": "sha256:u"}] {
		not material.packages_unchanged with input as _packages(change) with data.policy as _policy
	}
	none := json.remove(_packages({}), ["packages/tree"])
	not material.packages_unchanged with input as none with data.policy as _policy
	not material.packages_unchanged with input as {} with data.policy as _policy
	not material.packages_unchanged with input as _packages({}) with data.policy as {}
}

test_files if {
	every files in [[], [_file("a", 4)], [_file("a", 0), _file("b", 4)]] {
		material.files_within with input as _files(files) with data.policy as _policy
	}
	every files in [
		[_file("a", 5)], [_file("a", 2), _file("b", 3)], [_file("a", 0), _file("b", 0), _file("c", 0)],
		[_file("a", 1), _file("a", 1)], [_file("a", -1)], [_file("a", "1")], [_file(null, 1)], null, "",
	] {
		not material.files_within with input as _files(files) with data.policy as _policy
	}
	small := object.union(_policy, {"sandbox": {"profiles": {"here": {"limits": {"disk_bytes": 7}}}}})
	not material.files_within with input as _files([_file("a", 4)]) with data.policy as small
	enough := object.union(small, {"sandbox": {"profiles": {"here": {"limits": {"disk_bytes": 8}}}}})
	material.files_within with input as _files([_file("a", 4)]) with data.policy as enough
	every path in ["code/inputs/files", "code/inputs/bytes", "sandbox/profiles/here/limits/disk_bytes"] {
		not material.files_within with input as _run with data.policy as json.remove(_policy, [path])
	}
}

test_of_another_type if {
	every wrong in [null, true, "", [], {}] {
		every name in ["files", "bytes"] {
			changed := [{"op": "replace", "path": concat("/", ["/code/inputs", name]), "value": wrong}]
			not material.files_within with input as _files([]) with data.policy as json.patch(_policy, changed)
		}
	}
	every wrong in [null, true, 0, [], {}] {
		changed := [{"op": "replace", "path": "/sandbox/packages/science/tree", "value": wrong}]
		policy := json.patch(_policy, changed)
		not material.packages_unchanged with input as _packages({"tree": wrong}) with data.policy as policy
	}
}
