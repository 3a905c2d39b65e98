package admission.requirements.export.content

import data.admission.lib.export
import future.keywords.not

# METADATA
# title: The sample contains no secret
# description: The engine searches all texts of the sample for keys, tokens and passwords.
# custom:
#   code: secret_in_sample
#   fixed: true
#   each: samples
#   remedy: Remove the secret, and replace it where it is used
# labels:
#   row: A91
no_secret(sample) if {
	sample.secrets == 0
}

# METADATA
# title: All private data in the sample is treated
# description: The engine searches all texts for mail addresses, phone numbers,
#   and numbers of payment cards, bank accounts (IBAN) and social security.
# custom:
#   code: private_data_in_sample
#   each: samples
#   remedy: State a treatment that policy/export.yaml lists for the sources, or remove the private data
#   reads: [export.treatments]
# labels:
#   row: A91
no_private_data(sample) if {
	sample.private == 0
}

no_private_data(sample) if export.treated(sample)

# METADATA
# title: A sample from sensitive input is redacted or a generated fixture
# description: The engine notes when it admits a record whether its content has secrets or private data.
# custom:
#   code: sensitive_input_untreated
#   each: samples
#   after: [sample_source_unknown]
#   remedy: State a treatment that policy/export.yaml lists for the sources
#   reads: [export.treatments]
#   proof: every record must state false, and a list that is missing is empty, which fails
# labels:
#   row: A92
sensitive_treated(sample) if {
	count(sample.provenance) > 0
	every origin in sample.provenance {
		origin.sensitive == false
	}
}

sensitive_treated(sample) if export.treated(sample)

# METADATA
# title: The sample repeats no text of a source that must not be exported
# description: The text is compared with all sources that the engine has admitted. Limits are in policy/export.yaml.
# custom:
#   code: licensed_text_in_sample
#   each: samples
#   remedy: Write the sample in other words, or admit the source for export and name it in `provenance`
#   reads: [export.repeated_words]
#   proof: every shared record must be short or exportable, and the list itself must be there
# labels:
#   row: A91
no_licensed_text(sample) if {
	is_array(sample.shared)
	every one in sample.shared {
		_may_be_repeated(one)
	}
}

_may_be_repeated(one) if {
	one.export == true
	one.named == true
}

# Text that records for export have in common, such as a license header, needs one of them to be named.
_may_be_repeated(one) if {
	one.export == true
	one.apart == 0
}

_may_be_repeated(one) if {
	one.export == true
	one.whole == false
	is_number(one.apart)
	is_number(data.policy.export.repeated_words)
	one.apart <= data.policy.export.repeated_words
}

_may_be_repeated(one) if {
	one.whole == false
	is_number(one.words)
	is_number(data.policy.export.repeated_words)
	one.words <= data.policy.export.repeated_words
}

# METADATA
# title: The sample is within the size limit
# description: The size is a value in policy/export.yaml.
# custom:
#   code: sample_too_large
#   each: samples
#   remedy: Split the sample
#   reads: [export.sample_bytes]
# labels:
#   row: A91
small_enough(sample) if {
	is_number(sample.bytes)
	is_number(data.policy.export.sample_bytes)
	sample.bytes <= data.policy.export.sample_bytes
}
