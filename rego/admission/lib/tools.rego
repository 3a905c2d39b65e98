# What policy/tools.yaml states about a tool: whether it is known, visible and in the profile, and its outcome.
#
# A context has the tool policy and the profile, as in `input.context`.
package admission.lib.tools

import data.admission.lib.tool_rules as rules
import future.keywords.not

known(tool) if is_object(data.policy.tools.tools[tool])

# The tool policy exists, and the caller may use it.
policy_known(context) if is_object(data.policy.tools.policies[context.policy])

principal_admitted(context) if data.policy.tools.policies[context.policy].principals == "any"

principal_admitted(context) if {
	is_array(data.policy.tools.policies[context.policy].principals)
	input.caller.principal in data.policy.tools.policies[context.policy].principals
}

# What applies where no rule matches; without a policy that the caller may use, `deny_all`.
#
# METADATA
# custom:
#   proof: the strictest base applies if anything is missing
base(context) := stated if {
	principal_admitted(context)
	stated := data.policy.tools.policies[context.policy].base
	stated in {"confirm_all", "deny_all_visible"}
} else := "deny_all"

# The tool exists, and the base of the policy makes tools visible.
visible(context, tool) if {
	known(tool)
	base(context) in {"confirm_all", "deny_all_visible"}
}

# The profile includes the tool; a call without a profile has no tools.
in_profile(context, tool) if {
	known(tool)
	some selector in data.policy.tool_lookup.tools[tool].selectors
	data.policy.tool_lookup.profiles[context.profile][selector] == true
}

# The outcome of base, profile and the rules without conditions for a tool: `allow`, `confirm` or `deny`.
#
# METADATA
# custom:
#   proof: the strictest outcome applies if anything is missing
outcome_by_name(context, tool) := outcome if {
	in_profile(context, tool)
	principal_admitted(context)
	count(rules.matching(context.policy, tool, "deny", {"always"}, [])) == 0
	confirming := rules.matching(context.policy, tool, "confirm", {"always"}, [])
	outcome := _by_name(context, tool, count(confirming))
} else := "deny"

# METADATA
# custom:
#   proof: the count of confirm rules is 0 in each branch but the first
_by_name(context, tool, confirming) := "confirm" if {
	confirming > 0
} else := "allow" if {
	is_number(rules.allowing_by_name(context.policy, tool))
} else := "confirm" if {
	base(context) == "confirm_all"
}

# The explanation of the decision on the call, for people.
explanation := data.admission.lib.tool_explanation.explanation
