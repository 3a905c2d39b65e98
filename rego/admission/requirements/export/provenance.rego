package admission.requirements.export.provenance

import data.admission.lib.license
import future.keywords.not

# METADATA
# title: Every sample has an id of its own
# description: Findings and limits name samples by id; two samples with one id would share them.
# custom:
#   code: sample_id_not_unique
#   fixed: true
#   each: samples
#   remedy: Give the sample a unique id
# labels:
#   row: A89
id_unique(sample) if {
	sample.occurrences == 1
	is_string(sample.id)
	sample.id != ""
}

# METADATA
# title: The sample names the records that it comes from
# description: Every exported sample keeps its provenance.
# custom:
#   code: sample_without_provenance
#   fixed: true
#   each: samples
#   remedy: Name at least one record of an admitted source bundle in `provenance`
# labels:
#   row: A89
stated(sample) if {
	is_array(sample.provenance)
	count(sample.provenance) > 0
}

# METADATA
# title: Every record of the provenance was admitted
# description: The engine knows the source bundles that it has admitted for use, by their digests.
# custom:
#   code: sample_source_unknown
#   fixed: true
#   each: samples
#   after: [sample_without_provenance]
#   remedy: Admit the source bundle with `engine source admit`, `engine build` or `Engine.admit`, and name its digest
#     and the id of the record
#   proof: a record of which the engine knows no content has no hash, and a list that is missing is empty, which fails
# labels:
#   row: A89
known(sample) if {
	count(sample.provenance) > 0
	every origin in sample.provenance {
		is_string(origin.sha256)
		is_string(origin.kind)
	}
}

# METADATA
# title: Every record of the provenance was admitted for export
# description: A source bundle states under which license its result is exported, and each record whether it may be.
# custom:
#   code: sample_source_not_for_export
#   each: samples
#   after: [sample_source_unknown]
#   remedy: State `export_license` in the source bundle and `allowed` in `export` of its records, and admit it again; or
#     leave the sample out
#   proof: every record must state true, and a list that is missing is empty, which fails
# labels:
#   row: A89, A14
for_export(sample) if {
	count(sample.provenance) > 0
	every origin in sample.provenance {
		origin.export == true
	}
}

# METADATA
# title: Every record of the provenance may still be kept
# description: A source bundle states the last day of each record; it ends at midnight UTC.
# custom:
#   code: sample_source_expired
#   each: samples
#   after: [sample_source_unknown]
#   remedy: Leave the sample out; or agree on a later day if this one has passed, and admit the source bundle again
#   proof: every record must state a later second, and a list that is missing is empty, which fails
# labels:
#   row: A13, A89
kept(sample) if {
	is_number(input.now)
	input.now > 0
	count(sample.provenance) > 0
	every origin in sample.provenance {
		is_number(origin.terms.kept_until)
		origin.terms.kept_until >= input.now
	}
}

# METADATA
# title: The license of every record of the provenance is still compatible with its purpose and export
# description: The current table in policy/licenses.yaml decides, not the one under which the record was admitted.
# custom:
#   code: sample_source_license_refused
#   each: samples
#   after: [sample_source_not_for_export]
#   remedy: Leave the sample out; or ask compliance about policy/licenses.yaml, and admit the source bundle again
#   proof: every license must have a verdict, and a list that is missing is empty, which fails
# labels:
#   row: A16, A89
licensed(sample) if {
	count(sample.provenance) > 0
	every origin in sample.provenance { _licensed(origin.terms) }
}

_licensed(terms) if {
	result := {"alternatives": terms.export_license}
	use := license.use({"purpose": terms.purpose, "exported": true, "export_license": result})
	license.best_verdict_in(terms.license, use, {"admit", "review"})
}

# METADATA
# title: The sample is of a kind that its sources may become
# description: Synthetic, transformed and external samples are distinguished by the records they come from.
# custom:
#   code: sample_kind_contradicted
#   each: samples
#   after: [sample_source_unknown]
#   facts: {kind: kind}
#   remedy: >-
#     State a kind that fits every record of the provenance: policy/export.yaml lists, for each kind, which `kind` they
#     may have in bundle.yaml
#   reads: ["export.kinds.{kind}"]
#   proof: the kind of every record must be in the list, and a list that is missing is empty, which fails
# labels:
#   row: A90
kind_fits(sample) if {
	is_string(sample.kind)
	count(sample.provenance) > 0
	is_array(data.policy.export.kinds[sample.kind])
	every origin in sample.provenance {
		origin.kind in data.policy.export.kinds[sample.kind]
	}
}
