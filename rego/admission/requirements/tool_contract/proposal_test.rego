package admission.requirements.tool_contract.proposal_test

import data.admission.requirements.tool_contract.proposal
import future.keywords.not

_policy := {"proposals": {"roles": ["designer"]}}

_proposals := {
	"clean": {"id": "a", "role": "designer", "complete": true},
	"other role": {"id": "a", "role": "coder", "complete": true},
	"no role": {"id": "a", "complete": true},
	"role is a list": {"id": "a", "role": ["designer"], "complete": true},
	"too large": {"id": "a", "role": "designer", "complete": false},
	"no word on its size": {"id": "a", "role": "designer"},
}

test_role_admitted if {
	held := {name | some name, one in _proposals; proposal.role_admitted(one) with data.policy as _policy}
	held == {"clean", "too large", "no word on its size"}
}

test_looked_through if {
	held := {name | some name, one in _proposals; proposal.looked_through(one)}
	held == {"clean", "other role", "no role", "role is a list"}
}

test_values_missing if {
	every policy in [{}, {"proposals": {}}, {"proposals": {"roles": []}}] {
		not proposal.role_admitted(_proposals.clean) with data.policy as policy
	}
}
