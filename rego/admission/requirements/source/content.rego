package admission.requirements.source.content

import data.admission.lib.digest
import future.keywords.not

# METADATA
# title: The content of every record is in the source bundle
# description: Missing content cannot be hashed, and content without a hash cannot be admitted.
# custom:
#   code: content_missing
#   fixed: true
#   each: bundle.records
#   field: content
#   remedy: Put a regular file, not a link, at the record's path inside the source bundle
# labels:
#   row: A10
content_present(record) if digest.sha256(record.content.sha256)

# METADATA
# title: Every record states the hash of its content, in lower case
# description: The hash ties license decision, record and content together.
# custom:
#   code: content_hash_missing
#   fixed: true
#   each: bundle.records
#   field: sha256
#   facts: {computed: content.sha256}
#   remedy: Write the SHA-256 of the content file into the record, as 64 lower-case hex digits
# labels:
#   row: A10
hash_stated(record) if digest.sha256(record.sha256)

# METADATA
# title: The stated hash of every record is the hash of its content
# description: The engine hashes the content itself, every time.
# custom:
#   code: content_hash_mismatch
#   fixed: true
#   each: bundle.records
#   after: [content_missing, content_hash_missing]
#   field: sha256
#   facts: {stated: sha256, computed: content.sha256}
#   remedy: Restore the described content, or describe this content and have its license decided again
# labels:
#   row: A10
hash_matches(record) if {
	is_string(record.sha256)
	record.sha256 == record.content.sha256
}

# METADATA
# title: Every file of the source bundle is the content of a record
# description: A file that no record names has no license decision. Permitted extra files, such as a license text, are
#   values in policy/sources.yaml, and so are the names of files that editors and file managers have in any folder.
# custom:
#   code: content_not_declared
#   waivable: false
#   each: undeclared
#   empty: allowed
#   after: [bundle_missing]
#   remedy: Remove the file or folder, or describe it in a record; policy/sources.yaml lists permitted extra files
#   reads: [sources.extra_files, sources.system_files]
# labels:
#   row: A100
declared(member) if {
	member.regular == true
	member.id in data.policy.sources.extra_files
}

declared(member) if {
	member.regular == true
	count(member.names) > 0
	every name in member.names {
		some pattern in data.policy.sources.system_files
		glob.match(pattern, ["/"], name)
	}
}
