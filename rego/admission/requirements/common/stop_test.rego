package admission.requirements.common.stop_test

import data.admission.requirements.common.stop
import future.keywords.not

at(point) := {"point": point}

of(scope, name) := {"id": "s1", "scope": scope, "name": name, "principal": "bot", "tool": "http_get"}

test_a_stop_of_everything_leaves_the_way_to_lift_it if {
	every point in ["administration", "runner_bind"] {
		stop.not_stopped(of("all", "")) with input as at(point)
	}
	every point in ["license", "tool_call", "record_read", "", null] {
		not stop.not_stopped(of("all", "")) with input as at(point)
	}
}

test_a_stop_of_a_tool_is_for_this_tool_alone if {
	not stop.not_stopped(of("tool", "http_get")) with input as at("tool_call")
	stop.not_stopped(of("tool", "http_post")) with input as at("tool_call")
	stop.not_stopped(object.union(of("tool", "http_get"), {"tool": ""})) with input as at("license")
}

test_a_stop_of_a_principal_is_for_this_principal_alone if {
	not stop.not_stopped(of("principal", "bot")) with input as at("administration")
	stop.not_stopped(of("principal", "Bot")) with input as at("license")
	stop.not_stopped(object.union(of("principal", "bot"), {"principal": ""})) with input as at("license")
}

test_what_is_missing_or_mistyped_stops if {
	every scope in ["tool", "principal"] {
		other := of(scope, "another")
		not stop.not_stopped(object.union(other, {"name": ""})) with input as at("license")
		every field in ["scope", "name", scope] {
			not stop.not_stopped(object.remove(other, [field])) with input as at("license")
			every wrong in [null, true, 0, [], {}] {
				not stop.not_stopped(object.union(other, {field: wrong})) with input as at("license")
			}
		}
	}
	not stop.not_stopped(of("everyone", "another")) with input as at("license")
	not stop.not_stopped(of("all", "")) with input as {}
}
