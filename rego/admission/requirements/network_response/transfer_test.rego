package admission.requirements.network_response.transfer_test

import data.admission.requirements.network_response.transfer
import future.keywords.not

_clean := {"transfer": {"in_time": true, "connected": true, "secured": true, "well_formed": true}}

test_clean if {
	transfer.in_time with input as _clean
	transfer.connected with input as _clean
	transfer.secured with input as _clean
	transfer.well_formed with input as _clean
}

_without[name] := requests if {
	some name, _ in _clean.transfer
	requests := [
		object.union(_clean, {"transfer": {name: false}}),
		object.union(_clean, {"transfer": {name: "true"}}),
		json.remove(_clean, [concat("/", ["transfer", name])]),
		{},
	]
}

test_in_time if {
	every request in _without.in_time {
		not transfer.in_time with input as request
	}
}

test_connected if {
	every request in _without.connected {
		not transfer.connected with input as request
	}
}

test_secured if {
	every request in _without.secured {
		not transfer.secured with input as request
	}
}

test_well_formed if {
	every request in _without.well_formed {
		not transfer.well_formed with input as request
	}
}
