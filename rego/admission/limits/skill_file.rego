# Which file of a skill may be read, and how much of it.
package admission.limits.skill_file

import future.keywords.not

limits := {"path": input.path.text, "max_bytes": data.policy.skills.max_bytes} if is_string(input.path.text)
