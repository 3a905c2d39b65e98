# Files that a program finds when it starts.
package admission.lib.input_files

import data.admission.lib.sandbox
import future.keywords.not

# METADATA
# description: Each file is described and has a name of its own, and all are within the limits for programs in this role.
# custom:
#   proof: every file has a name, a size and a digest, or their sum is undefined; a limit of a profile is a number
within(profile, role) if {
	is_number(data.policy.code.inputs.files)
	is_number(data.policy.code.inputs.bytes)
	count(input.files) <= data.policy.code.inputs.files
	_bytes <= data.policy.code.inputs.bytes
	_bytes * 2 <= sandbox.most(profile, role, "disk_bytes")
	count({file.id | some file in input.files}) == count(input.files)
}

# METADATA
# description: The files as a permit names them.
# custom:
#   proof: a file that is incomplete is left out, and their number is compared
granted(name) := files if {
	is_array(input.files)
	files := [{name: file.id, "sha256": file.sha256} | some file in input.files]
	count(files) == count(input.files)
}

# METADATA
# description: Bytes of all files together.
# custom:
#   proof: a file without a size is no number, and a sum of other than numbers is undefined
_bytes := sum([file.bytes | some file in input.files]) if {
	is_array(input.files)
	every file in input.files { _described(file) }
}

_described(file) if {
	is_string(file.id)
	is_string(file.sha256)
	is_number(file.bytes)
	file.bytes >= 0
}
