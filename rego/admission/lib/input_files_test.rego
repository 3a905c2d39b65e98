package admission.lib.input_files_test

import data.admission.lib.input_files
import data.admission.lib.sandbox_test
import future.keywords.not

# Limits of a profile are 10.
policy := object.union(sandbox_test.policy, {"code": {"inputs": {"files": 2, "bytes": 4}}})

_file(name, size) := {"id": name, "bytes": size, "sha256": "x"}

test_within if {
	every files in [[], [_file("a", 4)], [_file("a", 0), _file("b", 4)]] {
		input_files.within("here", "solution") with input.files as files with data.policy as policy
	}
	every files in [
		[_file("a", 5)], [_file("a", 2), _file("b", 3)], [_file("a", 0), _file("b", 0), _file("c", 0)],
		[_file("a", 1), _file("a", 1)], [_file("a", 1), _file("", 1)],
		[_file("a", -1)], [_file("a", "1")], [_file(null, 1)], [{"id": "a", "bytes": 1}],
		[{"id": "a", "sha256": "x"}], [_file("a", 1), null], null, "", {},
	] {
		not input_files.within("here", "solution") with input.files as files with data.policy as policy
	}
	not input_files.within("here", "solution") with input as {} with data.policy as policy
	not input_files.within("nowhere", "solution") with input.files as [] with data.policy as policy
}

test_of_the_disk if {
	small := object.union(policy, {"sandbox": {"profiles": {"here": {"limits": {"disk_bytes": 7}}}}})
	not input_files.within("here", "solution") with input.files as [_file("a", 4)] with data.policy as small
	enough := object.union(policy, {"sandbox": {"profiles": {"here": {"limits": {"disk_bytes": 8}}}}})
	input_files.within("here", "solution") with input.files as [_file("a", 4)] with data.policy as enough
}

test_of_a_disk_in_words if {
	words := object.union(policy, {"sandbox": {"profiles": {"here": {"limits": {"disk_bytes": "much"}}}}})
	not input_files.within("here", "solution") with input.files as [_file("a", 4)] with data.policy as words
}

test_without_a_value if {
	every path in ["code/inputs/files", "code/inputs/bytes", "sandbox/profiles/here/limits/disk_bytes"] {
		not input_files.within("here", "solution") with input.files as []
			with data.policy as json.remove(policy, [path])
	}
}

test_described if {
	input_files.described == [] with input.files as []
	input_files.described == [_file("a", 4)] with input.files as [_file("a", 4)]
	every files in [[{"id": "a"}], [{"sha256": "x"}], [_file("a", 4), {"id": null, "sha256": "x"}], null, {"a": 1}] {
		not input_files.described with input.files as files
	}
	not input_files.described with input as {}
}
