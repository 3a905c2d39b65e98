package admission.lib.environment_test

import data.admission.lib.environment
import future.keywords.not

_policy := {"environments": {"environments": {"contacts_sqlite": {"holds": "contacts"}}}}

test_row if {
	environment.row == {"holds": "contacts"} with input as {"environment": "contacts_sqlite"} with data.policy as _policy
	not environment.row with input as {"environment": "other"} with data.policy as _policy
	not environment.row with input as {} with data.policy as _policy
	not environment.row with input as {"environment": "contacts_sqlite"} with data.policy as {}
}
