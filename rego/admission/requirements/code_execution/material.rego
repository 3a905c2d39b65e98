package admission.requirements.code_execution.material

import data.admission.lib.code_execution
import data.admission.lib.input_files
import future.keywords.not

# METADATA
# title: The output contract is known
# description: Contracts are rows in policy/code.yaml. A request that states none is not checked here.
# custom:
#   code: "invalid_request:contract_unknown"
#   remedy: Name a contract that is in policy/code.yaml
#   reads: [code.contracts, "code.contracts.{contract.value}"]
#   after: [language_denied_execution]
# labels:
#   row: C38
#   threat: ACE
contract_known if input.contract.stated == false

contract_known if is_object(data.policy.code.contracts[input.contract.value])

# METADATA
# title: The package environment is admitted
# description: Package environments are rows in policy/sandbox.yaml, each with the digest of all its files.
# custom:
#   code: packages_unknown
#   remedy: Build it with `engine sandbox env build NAME --lock FILE`, and have the row that it prints added to
#     policy/sandbox.yaml
#   reads: [sandbox.packages, "sandbox.packages.{packages.value}"]
#   after: [language_denied_execution]
# labels:
#   row: E08, H05
#   threat: ACE
packages_known if input.packages.stated == false

packages_known if is_string(data.policy.sandbox.packages[input.packages.value].tree)

# METADATA
# title: The packages on this machine are the admitted ones
# description: The engine computes the digest of all files; one changed file makes another environment.
# custom:
#   code: packages_changed
#   fixed: true
#   remedy: Build the environment again from its lock file with `engine sandbox env build`, and compare the digest
#   reads: ["sandbox.packages.{packages.value}"]
#   after: [packages_unknown]
# labels:
#   row: E08, H05
#   threat: ACE
packages_unchanged if input.packages.stated == false

packages_unchanged if {
	is_string(input.packages.tree)
	input.packages.tree == data.policy.sandbox.packages[input.packages.value].tree
}

# METADATA
# title: The input files are within their limits
# description: Their number and their size together are values in policy/code.yaml. They take at most half of what the
#   profile lets a program write.
# custom:
#   code: input_files_exceeded
#   remedy: Give fewer or smaller files, each with a name of its own. `inputs` in policy/code.yaml has both limits;
#     together, files also take at most half of `disk_bytes` of the profile in policy/sandbox.yaml
#   facts: {files: files}
#   reads: [code.inputs, sandbox.profiles]
#   after: [profile_below_floor]
# labels:
#   row: C12, C30
#   threat: DoS
files_within if input_files.within(code_execution.profile, input.role)
