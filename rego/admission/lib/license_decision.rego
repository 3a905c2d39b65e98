# The explicit license decision on exactly this content.
#
# A material has `license.decisions` and the recomputed `content.sha256`. Decisions on other content do not
# count, but must be complete: one without its hash or outcome could have been the refusal of this content.
package admission.lib.license_decision

import data.admission.lib.digest
import future.keywords.not

# Some decision names exactly this content.
present(material) if {
	some decision in material.license.decisions
	decision.sha256 == material.content.sha256
}

# Exactly one complete decision names exactly this content.
single(material) if {
	complete(material)
	count(_taken(material)) == 1
}

# Every decision, on this content or another, is complete.
complete(material) if {
	count(material.license.decisions) > 0
	every decision in material.license.decisions {
		digest.sha256(decision.sha256)
		decision.decision in {"accepted", "incompatible", "review_required", "unknown"}
		is_number(decision.decided_at)
		decision.decided_at > 0
	}
}

# There are decisions on exactly this content, and each has an admitted outcome.
every_decision_in(material, words) if {
	taken := _taken(material)
	count(taken) > 0
	every decision in taken { decision.decision in words }
}

# There are decisions on exactly this content, and each was taken before now.
taken_by(material, now) if {
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
#   proof: every caller requires a count of at least one, and `complete` refuses a decision without a hash
_taken(material) := [decision |
	some decision in material.license.decisions
	decision.sha256 == material.content.sha256
]
