# What a proposal delivers. Detectors report facts; values state in which form a mention delivers nothing.
package admission.requirements.tool_contract.delivery

import future.keywords.not

# METADATA
# title: The proposal contains no Python code
# description: A proposal only describes a tool. Mentions in sentences are admitted; see policy/proposals.yaml.
# custom:
#   code: "proposal_contains:python_code"
#   each: detected.python_code
#   empty: allowed
#   remedy: Describe what the tool does in words, and leave the code out
#   reads: [proposals.admitted.python_code]
# labels:
#   row: A70, A69, H15
python_free(hit) if hit.form in data.policy.proposals.admitted.python_code

# METADATA
# title: The proposal contains no shell command
# description: A proposal only describes a tool. Mentions in sentences are admitted; see policy/proposals.yaml.
# custom:
#   code: "proposal_contains:shell_command"
#   each: detected.shell_command
#   empty: allowed
#   remedy: Describe what the tool does in words, and leave the command out
#   reads: [proposals.admitted.shell_command]
# labels:
#   row: A71, A69, H15
command_free(hit) if hit.form in data.policy.proposals.admitted.shell_command

# METADATA
# title: The proposal names no package to install
# description: A proposal only describes a tool. Mentions in sentences are admitted; see policy/proposals.yaml.
# custom:
#   code: "proposal_contains:package_name"
#   each: detected.package_name
#   empty: allowed
#   remedy: Leave packages to the author of the tool
#   reads: [proposals.admitted.package_name]
# labels:
#   row: A72, A69, H15
package_free(hit) if hit.form in data.policy.proposals.admitted.package_name

# METADATA
# title: The proposal contains no executable handler
# description: A proposal only describes a tool. Mentions in sentences are admitted; see policy/proposals.yaml.
# custom:
#   code: "proposal_contains:executable_handler"
#   each: detected.executable_handler
#   empty: allowed
#   remedy: Leave the handler to the author of the tool
#   reads: [proposals.admitted.executable_handler]
# labels:
#   row: A73, A69, H15
handler_free(hit) if hit.form in data.policy.proposals.admitted.executable_handler

# METADATA
# title: The proposal contains no migration
# description: A proposal only describes a tool. Mentions in sentences are admitted; see policy/proposals.yaml.
# custom:
#   code: "proposal_contains:migration"
#   each: detected.migration
#   empty: allowed
#   remedy: Describe the data that the tool needs, and leave database changes out
#   reads: [proposals.admitted.migration]
# labels:
#   row: A74, A69, H15
migration_free(hit) if hit.form in data.policy.proposals.admitted.migration
