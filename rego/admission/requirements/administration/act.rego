package admission.requirements.administration.act

import data.admission.lib.administration
import data.admission.lib.approval
import future.keywords.not

# METADATA
# title: The caller may perform this act
# description: The ways to connect are listed for each act in policy/administration.yaml. A token also needs the
#   scope to approve at the decision point of the act.
# custom:
#   code: act_out_of_scope
#   fixed: true
#   remedy: Act by a command on the engine's machine, or with a token issued with --approve for the point of the act
#   reads: ["administration.acts.{act}"]
# labels:
#   row: H08, H09, D31
act_in_scope if {
	input.caller.via in {"process", "control"}
	input.caller.via in data.policy.administration.acts[input.act]
}

act_in_scope if {
	input.caller.via == "token"
	"token" in data.policy.administration.acts[input.act]
	administration.approving_at in input.caller.approves
}

# METADATA
# title: The caller has a name
# description: The record names the person who acted. A name has no surrounding spaces and no invisible characters.
# custom:
#   code: actor_unnamed
#   fixed: true
#   remedy: Act as a user of this machine, or with a token
# labels:
#   row: H08, H09, D31
actor_named if {
	is_string(input.caller.principal)
	approval.plain_name(input.caller.principal)
}

# METADATA
# title: The act is complete
# description: An act on an approval, a token, a prefix, a stop, an agent or an agreement names it by id; what is
#   new is described. A stop of everything has no name, any other stop has one.
# custom:
#   code: act_incomplete
#   fixed: true
#   remedy: State the act, the id and what is to be issued, approved or stopped, and nothing else
# labels:
#   row: H08, H09, D31, C68
act_complete if {
	is_string(input.id)
	administration.gives_nothing
}

act_complete if {
	is_string(input.id)
	input.act == "issue_token"
	is_object(input.scope)
}

act_complete if {
	is_string(input.id)
	input.act == "approve_prefix"
	is_object(input.prefix)
}

act_complete if {
	is_string(input.id)
	input.act == "approve_release"
	is_string(input.release.digest)
	is_string(input.release.name)
	is_number(input.release.sequence)
}

act_complete if {
	is_string(input.id)
	input.act == "stop"
	input.stop.scope == "all"
	input.stop.name == ""
}

act_complete if {
	is_string(input.id)
	input.act == "stop"
	input.stop.scope in {"tool", "principal"}
	is_string(input.stop.name)
	input.stop.name != ""
}

# METADATA
# title: The act has a reason
# description: Acts that need none are listed in policy/administration.yaml.
# custom:
#   code: reason_missing
#   remedy: State the reason, in one line
#   reads: [administration.reason_optional]
# labels:
#   row: H08, H09, D31
reason_stated if {
	is_string(input.reason)
	input.reason != ""
}

reason_stated if input.act in data.policy.administration.reason_optional
