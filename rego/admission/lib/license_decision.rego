# The explicit decision that a person or process took on exactly this content.
#
# A material is anything with `license.decisions` and the recomputed `content.sha256`. Decisions on
# another content count for nothing, but have to be readable: one that lost its hash or its word
# could have been the refusal.
package admission.lib.license_decision

import data.admission.lib.digest
import future.keywords.not

# Some decision names exactly this content.
present(material) if {
	some decision in material.license.decisions
	decision.sha256 == material.content.sha256
}

# One complete decision names exactly this content, and no second one does.
single(material) if {
	readable(material)
	count(_taken(material)) == 1
}

# Every decision, on this content or another, is complete.
readable(material) if {
	count(material.license.decisions) > 0
	every decision in material.license.decisions {
		digest.sha256(decision.sha256)
		decision.decision in {"accepted", "incompatible", "review_required", "unknown"}
		is_number(decision.decided_at)
		decision.decided_at > 0
	}
}

# Every decision on exactly this content says one of the words; there is at least one.
within(material, words) if {
	taken := _taken(material)
	count(taken) > 0
	every decision in taken { decision.decision in words }
}

# Every decision on exactly this content was taken by now; there is at least one.
until(material, now) if {
	is_number(now)
	taken := _taken(material)
	count(taken) > 0
	every decision in taken {
		is_number(decision.decided_at)
		decision.decided_at > 0
		decision.decided_at <= now
	}
}

# METADATA
# custom:
#   proof: every caller demands a count of at least one, and `readable` refuses a decision that lost its hash
_taken(material) := [decision |
	some decision in material.license.decisions
	decision.sha256 == material.content.sha256
]
