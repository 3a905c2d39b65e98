# When an approval by a person satisfies a confirm: each condition by itself, and all of them.
package admission.lib.approval

import future.keywords.not

valid(approval) if {
	granted(approval)
	for_this_input(approval)
	under_this_policy(approval)
	in_time(approval)
	by_another(approval)
}

granted(approval) if approval.state == "granted"

for_this_input(approval) if {
	is_string(approval.input_digest)
	approval.input_digest == approval.expected.input_digest
}

under_this_policy(approval) if {
	is_string(approval.rules)
	is_string(approval.values)
	approval.rules == approval.expected.rules
	approval.values == approval.expected.values
}

in_time(approval) if {
	is_number(approval.expires_at)
	is_number(input.now)
	input.now < approval.expires_at
}

by_another(approval) if differ(approval.requester, approval.approver)

by_another(approval) if {
	unnamed_requester(approval)
	plain_name(approval.approver)
}

differ(requester, approver) if {
	is_string(requester)
	is_string(approver)
	plain_name(requester)
	plain_name(approver)
	requester != approver
}

# A caller without a name cannot be shown to differ from the approver; policy/approvals.yaml lists accepted ways.
unnamed_requester(approval) if {
	approval.requester_named == false
	approval.requester_via in data.policy.approvals.unnamed_requesters
}

# Visible characters with single spaces between them, so that names that differ also look different in lists.
plain_name(name) if regex.match(`^[^\pZ\pC]+( [^\pZ\pC]+)*$`, name)
