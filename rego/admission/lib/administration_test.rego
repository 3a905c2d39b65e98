package admission.lib.administration_test

import data.admission.lib.administration
import future.keywords.not

test_each_act_is_about_one_subject if {
	every_subject := {"approval", "token", "prefix", "stop", "agent", "release", "agreement"}
	every act, subject in administration.subjects {
		found := {one | some one in every_subject; administration.about(one) with input as {"act": act}}
		found == {subject}
	}
	every act in [null, true, 0, "", [], {}, "delete_record"] {
		not administration.about("approval") with input as {"act": act}
		not administration.gives_nothing with input as {"act": act}
	}
}

test_what_gives_something_out if {
	given := {act |
		some act, _ in administration.subjects
		not administration.gives_nothing with input as {"act": act}
	}
	given == {"issue_token", "approve_prefix", "stop", "approve_release"}
}

test_where_an_act_lets_something_happen if {
	administration.approving_at == "license" with input as {"act": "grant_approval", "approval": {"point": "license"}}
	administration.approving_at == "tool_call" with input as {"act": "approve_prefix"}
	administration.approving_at == "provisioning" with input as {"act": "end_agent"}
	every act in ["stop", "lift_stop", "approve_release", "leave_agreement"] {
		administration.approving_at == "administration" with input as {"act": act}
	}
	not administration.approving_at with input as {"act": "issue_token", "approval": {"point": "license"}}
	not administration.approving_at with input as {"act": "grant_approval"}
}
