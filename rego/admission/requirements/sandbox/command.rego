package admission.requirements.sandbox.command

import future.keywords.not

# METADATA
# title: The executable is on the allowlist
# description: A command is a list of arguments whose first item is a name in policy/sandbox.yaml. No shell is
#   involved.
# custom:
#   code: executable_not_allowlisted
#   waivable: false
#   remedy: Name an executable of policy/sandbox.yaml as the first word, without a path; to run any other program, send
#     the command as text to a profile under `shells` there
#   reads: ["sandbox.executables.{command.executable}"]
# labels:
#   row: B11
#   threat: ACE
executable_allowlisted if input.command.stated == false

executable_allowlisted if input.command.text == true

executable_allowlisted if {
	input.command.stated == true
	is_string(input.command.digest)
	is_string(data.policy.sandbox.executables[input.command.executable])
}

# METADATA
# title: A command given as text names a profile with a shell
# description: A shell starts any program of the sandbox. policy/sandbox.yaml has the shell of each profile that runs
#   texts; no other profile does.
# custom:
#   code: shell_not_permitted
#   remedy: Send the command as a list of arguments, or name a profile under `shells` in policy/sandbox.yaml
#   reads: ["sandbox.shells.{profile}"]
#   after: [profile_unknown]
# labels:
#   row: B11
#   threat: ACE
shell_permitted if input.command.text == false

shell_permitted if {
	input.command.text == true
	is_string(input.command.digest)
	is_string(data.policy.sandbox.shells[input.profile])
}
