# How private data of samples is treated.
package admission.lib.export

import future.keywords.not

# METADATA
# custom:
#   proof: the kind of every record must list the treatment, and a list that is missing is empty, which fails
treated(sample) if {
	is_string(sample.treatment)
	count(sample.provenance) > 0
	every origin in sample.provenance {
		sample.treatment in data.policy.export.treatments[origin.kind]
	}
}
