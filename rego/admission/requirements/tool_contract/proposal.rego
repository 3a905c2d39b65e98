package admission.requirements.tool_contract.proposal

import future.keywords.not

# METADATA
# title: The role may propose tools
# description: Roles are values in policy/proposals.yaml.
# custom:
#   code: role_not_admitted
#   each: proposals
#   empty: allowed
#   remedy: Use a role that is listed in policy/proposals.yaml
#   reads: [proposals.roles]
# labels:
#   row: A69
#   threat: injection
role_admitted(proposal) if proposal.role in data.policy.proposals.roles

# METADATA
# title: The contract is within the size limit
# description: Larger or more deeply nested contracts are not read completely.
# custom:
#   code: proposal_too_large
#   each: proposals
#   empty: allowed
#   remedy: Shorten the contract to what describes the tool
# labels:
#   row: A69, H15
#   threat: injection
looked_through(proposal) if proposal.complete == true
