package admission.lib.input_files_test

import data.admission.lib.input_files
import data.admission.lib.sandbox_test
import future.keywords.not

# Limits of a profile are 10.
policy := object.union(sandbox_test.policy, {"code": {"inputs": {"files": 2, "bytes": 4}}})

_file(name, size) := {"id": name, "bytes": size, "sha256": "x"}

# regal ignore:with-outside-test-context
_within(files) if input_files.within("here", "solution") with input.files as files with data.policy as policy

test_within if {
	every files in [[], [_file("a", 4)], [_file("a", 0), _file("b", 4)]] { _within(files) }
	every files in [
		[_file("a", 5)], [_file("a", 2), _file("b", 3)], [_file("a", 0), _file("b", 0), _file("c", 0)],
		[_file("a", 1), _file("a", 1)], [_file("a", -1)], [_file("a", "1")], [_file(null, 1)], [{"id": "a", "bytes": 1}],
		[{"id": "a", "sha256": "x"}], [_file("a", 1), null], null, "", {},
	] {
		not _within(files)
	}
	not input_files.within("here", "solution") with input as {} with data.policy as policy
	not input_files.within("nowhere", "solution") with input.files as [] with data.policy as policy
}

# regal ignore:with-outside-test-context
_on_disk(bytes) if input_files.within("here", "solution") with input.files as [_file("a", 4)]
	with data.policy as object.union(policy, {"sandbox": {"profiles": {"here": {"limits": {"disk_bytes": bytes}}}}})

test_of_the_disk if {
	_on_disk(8)
	not _on_disk(7)
}

test_without_a_value if {
	every path in ["code/inputs/files", "code/inputs/bytes", "sandbox/profiles/here/limits/disk_bytes"] {
		not input_files.within("here", "solution") with input.files as []
			with data.policy as json.remove(policy, [path])
	}
}

test_granted if {
	input_files.granted("path") == [] with input.files as []
	input_files.granted("path") == [{"path": "a", "sha256": "x"}] with input.files as [_file("a", 4)]
	not input_files.granted("path") with input.files as [{"id": "a"}]
	not input_files.granted("path") with input.files as null
	not input_files.granted("path") with input as {}
}
