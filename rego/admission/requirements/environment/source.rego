package admission.requirements.environment.source

import data.admission.lib.environment
import future.keywords.not

# METADATA
# title: The source bundle was admitted
# description: An environment is built only while the engine holds the permit of point source. No request can state it.
# custom:
#   code: source_not_admitted
#   fixed: true
#   remedy: Run `engine build`, which first asks for a decision at point source
# labels:
#   row: A09
admitted if is_string(input.admitted.digest)

# METADATA
# title: The source bundle is unchanged since it was admitted
# description: The digest covers its document and all of its files.
# custom:
#   code: source_changed
#   fixed: true
#   after: [source_not_admitted]
#   remedy: Leave the source bundle unchanged while an environment is built, and repeat the request
# labels:
#   row: A09
unchanged if {
	is_string(input.admitted.digest)
	input.digest == input.admitted.digest
}

# METADATA
# title: The material of every record is the admitted content
# description: The engine hashes the bytes that it reads as material.
# custom:
#   code: content_changed
#   fixed: true
#   each: records
#   after: [source_changed, environment_unknown]
#   remedy: Leave the source bundle unchanged while an environment is built, and repeat the request
# labels:
#   row: A10
content_unchanged(record) if {
	is_string(record.sha256)
	record.sha256 == input.admitted.records[record.id]
}

# METADATA
# title: The environment is known
# description: Environments that may be built are values in policy/environments.yaml.
# custom:
#   code: environment_unknown
#   facts: {environment: environment}
#   remedy: Name an environment of policy/environments.yaml in the source bundle; without an environment, use `engine
#     source admit`
#   reads: [environments.environments, "environments.environments.{environment}"]
# labels:
#   row: A39
known if is_object(environment.row)
