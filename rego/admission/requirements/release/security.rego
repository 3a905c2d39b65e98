package admission.requirements.release.security

import future.keywords.not

# METADATA
# title: The stage is known
# description: Stages are values in policy/release.yaml.
# custom:
#   code: stage_unknown
#   remedy: Use a stage of policy/release.yaml
#   reads: [release.stages, "release.stages.{stage}"]
# labels:
#   row: E28
stage_known if is_object(data.policy.release.stages[input.stage])

# METADATA
# title: The feature is known
# description: Features that a version may enable are values in policy/release.yaml.
# custom:
#   code: feature_unknown
#   each: features
#   empty: allowed
#   remedy: Use a feature of policy/release.yaml, or list it there
#   reads: [release.features]
# labels:
#   row: E29
feature_known(feature) if is_object(data.policy.release.features[feature.id])

# METADATA
# title: The security test is known, in its category
# description: A test that policy/release.yaml does not list could stand for one that is missing.
# custom:
#   code: security_test_unknown
#   each: security
#   empty: allowed
#   remedy: List the test in policy/release.yaml, with the category of its marker
#   reads: [release.security_tests]
# labels:
#   row: E27
listed(test) if {
	is_string(test.category)
	test.category == data.policy.release.security_tests[test.id]
}

# METADATA
# title: The security test passed
# description: A test that failed or was skipped on this machine shows no defense.
# custom:
#   code: security_test_failed
#   fixed: true
#   each: security
#   empty: allowed
#   remedy: Correct the defense, and run the security tests again on a machine with every facility they need
# labels:
#   row: E28, E29
succeeded(test) if test.passed == true

# METADATA
# title: Every security test was run, if the stage or a feature requires it
# description: The tests, and the stages and features that require them, are values in policy/release.yaml.
# custom:
#   code: security_test_missing
#   fixed: true
#   after: [stage_unknown, feature_unknown]
#   remedy: Run the security tests that policy/release.yaml lists, such as by `scripts/test security`, and name their
#     report
#   facts: {tests: security}
#   reads: [release.security_tests, release.stages, release.features]
#   proof: every listed test must be there by its id; else the stage and every feature must say that they are optional
# labels:
#   row: E28, E29
tests_complete if {
	count(data.policy.release.security_tests) > 0
	every id, category in data.policy.release.security_tests {
		[id, category] in {[test.id, test.category] | some test in input.security}
	}
}

tests_complete if {
	data.policy.release.stages[input.stage].security_tests == "optional"
	is_array(input.features)
	every feature in input.features {
		data.policy.release.features[feature.id].security_tests == "optional"
	}
}
