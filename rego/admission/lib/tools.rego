# What policy/tools.yaml says of a tool by its name: known, shown, in the profile, and decided how.
package admission.lib.tools

import data.admission.lib.tool_rules as rules
import future.keywords.not

known(tool) if is_object(data.policy.tools.tools[tool])

# The policy that was asked for is one, and whoever asks may use it.
policy_known(asked) if is_object(data.policy.tools.policies[asked.policy])

principal_admitted(asked) if data.policy.tools.policies[asked.policy].principals == "any"

principal_admitted(asked) if {
	is_array(data.policy.tools.policies[asked.policy].principals)
	input.caller.principal in data.policy.tools.policies[asked.policy].principals
}

# What holds where no rule matches; without a policy that counts, `deny_all`.
#
# METADATA
# custom:
#   proof: the strictest base stands where anything is missing
base(asked) := found if {
	principal_admitted(asked)
	found := data.policy.tools.policies[asked.policy].base
	found in {"confirm_all", "deny_all_visible"}
} else := "deny_all"

# Whether the base of the policy shows tools, of those that there are.
shown(asked, tool) if {
	known(tool)
	base(asked) in {"confirm_all", "deny_all_visible"}
}

# Whether the profile has the tool; a call without a profile has none of them.
in_profile(asked, tool) if {
	known(tool)
	some selector in data.policy.tool_lookup.tools[tool].selectors
	data.policy.tool_lookup.profiles[asked.profile][selector] == true
}

# What base, profile and the rules without conditions say of a tool: `allow`, `confirm` or `deny`.
#
# METADATA
# custom:
#   proof: the strictest outcome stands where anything is missing
outcome_by_name(asked, tool) := outcome if {
	in_profile(asked, tool)
	principal_admitted(asked)
	count(rules.matching(asked.policy, tool, "deny", {"always"})) == 0
	confirming := rules.matching(asked.policy, tool, "confirm", {"always"})
	outcome := _by_name(asked, tool, count(confirming))
} else := "deny"

# METADATA
# custom:
#   proof: the count of rules that ask is 0 in each branch but the first
_by_name(asked, tool, confirming) := "confirm" if {
	confirming > 0
} else := "allow" if {
	is_number(rules.allowing_by_name(asked.policy, tool))
} else := "confirm" if {
	base(asked) == "confirm_all"
}

# What is told to people who ask why, for a call in the input.
explanation := data.admission.lib.tool_explanation.explanation
