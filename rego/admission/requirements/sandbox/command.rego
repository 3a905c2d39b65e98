package admission.requirements.sandbox.command

import future.keywords.not

# METADATA
# title: The executable is on the allowlist
# description: A command is a list of arguments whose first item is a name in policy/sandbox.yaml. No shell is
#   involved.
# custom:
#   code: executable_not_allowlisted
#   waivable: false
#   remedy: Name an executable of policy/sandbox.yaml as the first word, without a path
#   reads: ["sandbox.executables.{command.executable}"]
# labels:
#   row: B11
#   threat: ACE
executable_allowlisted if input.command.stated == false

executable_allowlisted if {
	input.command.stated == true
	is_string(input.command.digest)
	is_string(data.policy.sandbox.executables[input.command.executable])
}
