package admission.requirements.release.suite

import future.keywords.not

# METADATA
# title: The reports have every suite
# description: Suites are values in policy/release.yaml.
# custom:
#   code: suite_missing
#   remedy: Run the checks and tests that are missing, and name their reports; the suites of a project are a list in
#     policy/release.yaml
#   facts: {suites: suites}
#   reads: [release.suites]
#   proof: every listed suite must be there by its name
# labels:
#   row: D55, E28
complete if {
	count(data.policy.release.suites) > 0
	every name in data.policy.release.suites {
		name in {suite.id | some suite in input.suites}
	}
}

# METADATA
# title: The suite is known
# description: A suite that policy/release.yaml does not list could stand for one that is missing.
# custom:
#   code: suite_unknown
#   each: suites
#   remedy: Name only reports with suites of policy/release.yaml, or list the suite there
#   reads: [release.suites, release.further_suites]
# labels:
#   row: D55
known(suite) if suite.id in data.policy.release.suites

known(suite) if suite.id in data.policy.release.further_suites

# METADATA
# title: The suite ran and nothing in it failed
# description: A suite without a test, or with skipped tests alone, shows nothing.
# custom:
#   code: suite_failed
#   fixed: true
#   each: suites
#   remedy: Correct what failed, and run it again
#   facts: {tests: tests, failed: failed, skipped: skipped}
# labels:
#   row: D55, E28
passed(suite) if {
	is_number(suite.tests)
	is_number(suite.skipped)
	suite.failed == 0
	suite.tests > suite.skipped
}

# METADATA
# title: The report was made from this commit
# description: A report that is older than the commit shows something about other code, and one from the future would
#   count for every later commit.
# custom:
#   code: report_older_than_commit
#   each: suites
#   remedy: Commit first, then run the checks and tests; the suite in the report states its time with an offset, such
#     as `timestamp="2026-11-24T09:23:09+00:00"`, by a correct clock
# labels:
#   row: D55
current(suite) if {
	times := [input.change.committed_at, suite.made_at, input.now]
	every one in times { is_number(one) }
	times == sort(times)
}
