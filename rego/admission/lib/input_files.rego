# Files that a program finds when it starts.
package admission.lib.input_files

import data.admission.lib.sandbox
import future.keywords.not

# METADATA
# description: The files are within the limits for all of them, and within those for programs in this role.
within(profile, role) if {
	_admitted
	most := sandbox.most(profile, role, "disk_bytes")
	is_number(most)
	_bytes * 2 <= most
}

# METADATA
# description: All files, if each has a name and a digest.
# custom:
#   proof: a file that is incomplete is left out, and their number is compared
described := files if {
	is_array(input.files)
	files := [file | some file in input.files; _named(file)]
	count(files) == count(input.files)
}

# METADATA
# description: Each file has a name of its own, and all are within the limits in policy/code.yaml.
# custom:
#   proof: every file has a name, a size and a digest, or their sum is undefined
_admitted if {
	is_number(data.policy.code.inputs.files)
	is_number(data.policy.code.inputs.bytes)
	count(described) <= data.policy.code.inputs.files
	_bytes <= data.policy.code.inputs.bytes
	count({file.id | some file in described}) == count(described)
}

# METADATA
# description: Bytes of all files together.
# custom:
#   proof: a file without a size is no number, and a sum of other than numbers is undefined
_bytes := sum([file.bytes | some file in described]) if {
	is_array(described)
	every file in described { _sized(file) }
}

_named(file) if {
	is_string(file.id)
	file.id != ""
	is_string(file.sha256)
}

_sized(file) if {
	is_number(file.bytes)
	file.bytes >= 0
}
