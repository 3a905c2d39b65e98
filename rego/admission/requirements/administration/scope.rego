package admission.requirements.administration.scope

import future.keywords.not

_issues_nothing if {
	input.act in {"grant_approval", "refuse_approval", "revoke_token", "approve_prefix", "revoke_prefix"}
}

# METADATA
# title: The principal of a new token cannot be taken for another one
# description: Printable ASCII without blanks at its ends. Letters of other alphabets can look alike, and names are
#   compared exactly.
# custom:
#   code: principal_ambiguous
#   fixed: true
#   remedy: Use a name of ASCII letters, digits and punctuation
principal_distinct if _issues_nothing

principal_distinct if {
	input.act == "issue_token"
	regex.match(`^[!-~]+( [!-~]+)*$`, input.scope.principal)
}

# METADATA
# title: A new token is for at least one point
# description: To ask about a point, or to approve there.
# custom:
#   code: token_without_point
#   fixed: true
#   remedy: Name the points it may ask about (--point), or at which it may approve (--approve)
token_has_point if _issues_nothing

token_has_point if {
	input.act == "issue_token"
	is_array(input.scope.points)
	count(input.scope.points) > 0
}

token_has_point if {
	input.act == "issue_token"
	is_array(input.scope.approves)
	count(input.scope.approves) > 0
}

# METADATA
# title: A new token holds no longer than tokens may
# description: The longest lifetime is a value in policy/administration.yaml.
# custom:
#   code: token_too_long
#   fixed: true
#   remedy: Issue it for fewer days
#   reads: [administration.token_seconds_max]
token_ends if _issues_nothing

token_ends if {
	input.act == "issue_token"
	is_number(input.scope.seconds)
	input.scope.seconds > 0
	input.scope.seconds <= data.policy.administration.token_seconds_max
}
