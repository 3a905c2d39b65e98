package admission.requirements.release.change

import future.keywords.not

# METADATA
# title: The project has no uncommitted changes
# description: What is released is the commit, and the reports must be about exactly that.
# custom:
#   code: change_uncommitted
#   remedy: Commit or remove what `git status` lists, or have git ignore it, such as reports; then run the checks and
#     tests again
# labels:
#   row: D55
committed if input.change.clean == true

# METADATA
# title: The documentation changed with the code
# description: Which paths are documentation, and which need none, are values in policy/release.yaml.
# custom:
#   code: documentation_unchanged
#   remedy: Describe the change in the documentation or in the changelog
#   reads: [release.documentation]
#   proof: one path of the documentation is enough; else there must be paths, and every one begin like a listed one
# labels:
#   row: D55
documented if {
	some path in input.change.paths
	_begins(path, data.policy.release.documentation.paths)
}

documented if {
	count(input.change.paths) > 0
	every path in input.change.paths {
		_begins(path, data.policy.release.documentation.without)
	}
}

_begins(path, prefixes) if {
	some prefix in prefixes
	startswith(path, prefix)
}

# METADATA
# title: Enough of the code has docstrings
# description: The engine counts modules, classes and functions itself. The share is a value in policy/release.yaml.
# custom:
#   code: docstrings_missing
#   each: folders
#   remedy: Write the docstrings that are missing
#   reads: [release.docstrings]
#   facts: {total: total, documented: documented}
# labels:
#   row: D55
docstrings_written(folder) if {
	is_number(folder.total)
	is_number(folder.documented)
	is_number(data.policy.release.docstrings.minimum_percent)
	folder.documented * 100 >= folder.total * data.policy.release.docstrings.minimum_percent
}

docstrings_written(folder) if folder.id in data.policy.release.docstrings.left_out
