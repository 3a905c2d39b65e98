# What may be exported: exactly these samples, with their provenance and the treatment that is due.
package admission.limits.export

import data.admission.lib.export
import future.keywords.not

# METADATA
# custom:
#   proof: the samples are counted, so one that is incomplete leaves the rule undefined
limits := {"samples": samples} if {
	is_array(input.samples)
	samples := [_exported(sample) | some sample in input.samples]
	count(samples) > 0
	count(samples) == count(input.samples)
}

# METADATA
# custom:
#   proof: the records are counted, so one that is incomplete leaves it undefined
_exported(sample) := {
	"id": sample.id,
	"kind": sample.kind,
	"treatment": _treatment(sample),
	"digest": sample.digest,
	"provenance": provenance,
} if {
	provenance := [{"source": one.source, "record": one.record, "kind": one.kind, "sha256": one.sha256} |
		some one in sample.provenance
		is_string(one.kind)
		is_string(one.sha256)
	]
	count(provenance) > 0
	count(provenance) == count(sample.provenance)
}

# METADATA
# custom:
#   proof: without a treatment nothing that needs one is allowed
_treatment(sample) := sample.treatment if {
	export.treated(sample)
} else := null
