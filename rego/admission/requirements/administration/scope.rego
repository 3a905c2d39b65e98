package admission.requirements.administration.scope

import data.admission.lib.administration
import future.keywords.not

_issues_nothing if administration.gives_nothing

_issues_nothing if input.act in {"approve_prefix", "stop", "approve_release"}

# METADATA
# title: The principal of a new token is unambiguous
# description: Printable ASCII without surrounding blanks. Letters of other alphabets can look alike, and names are
#   compared exactly.
# custom:
#   code: principal_ambiguous
#   fixed: true
#   remedy: Use a name of ASCII letters, digits and punctuation
# labels:
#   row: D31
principal_distinct if _issues_nothing

principal_distinct if {
	input.act == "issue_token"
	regex.match(`^[!-~]+( [!-~]+)*$`, input.scope.principal)
}

# METADATA
# title: A new token has at least one decision point
# description: A token may ask at a point, or approve there.
# custom:
#   code: token_without_point
#   fixed: true
#   remedy: List decision points with --point (to ask) or --approve (to approve)
# labels:
#   row: D31
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
# title: Every decision point of a new token exists
# description: An unknown name may become a decision point later. The list contains the unknown names.
# custom:
#   code: token_point_unknown
#   each: unknown_points
#   empty: required
#   fixed: true
#   proof: the list contains only problems, so an empty list means that there are none
#   remedy: Use names of decision points from docs/requirements.md
# labels:
#   row: D31
points_known if input.unknown_points == []

# METADATA
# title: The id of a new token has 8 hexadecimal digits
# description: The id is part of the token, which is looked up by exactly these digits.
# custom:
#   code: token_id_invalid
#   fixed: true
#   remedy: Use 8 random digits, each 0-9 or a-f
# labels:
#   row: D31
token_id_fits if _issues_nothing

token_id_fits if {
	input.act == "issue_token"
	regex.match(`^[0-9a-f]{8}$`, input.id)
}

# METADATA
# title: The lifetime of a new token is within its limit
# description: The maximum lifetime is a value in policy/administration.yaml.
# custom:
#   code: token_too_long
#   fixed: true
#   remedy: Issue it for fewer days; token_seconds_max in policy/administration.yaml is the limit
#   reads: [administration.token_seconds_max]
# labels:
#   row: D31
token_ends if _issues_nothing

token_ends if {
	input.act == "issue_token"
	is_number(input.scope.seconds)
	input.scope.seconds > 0
	input.scope.seconds <= data.policy.administration.token_seconds_max
}
