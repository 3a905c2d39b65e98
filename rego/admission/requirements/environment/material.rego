package admission.requirements.environment.material

import data.admission.lib.environment
import future.keywords.not

# METADATA
# title: The environment is built from this kind of record
# description: Kinds of records of each environment are values in policy/environments.yaml.
# custom:
#   code: kind_not_admitted
#   each: records
#   after: [environment_unknown]
#   field: kind
#   facts: {kind: kind}
#   remedy: Use a record of an admitted kind, or ask for this kind in policy/environments.yaml
#   reads: ["environments.environments.{environment}.kinds"]
# labels:
#   row: A39
kind_admitted(record) if record.kind in environment.row.kinds

# METADATA
# title: The environment is built from this media type
# description: Media types of each environment are values in policy/environments.yaml.
# custom:
#   code: media_type_not_admitted
#   each: records
#   after: [environment_unknown]
#   field: media_type
#   facts: {media_type: media_type}
#   remedy: Use a record of an admitted media type, or another environment
#   reads: ["environments.environments.{environment}.media_types"]
# labels:
#   row: A39
media_type_admitted(record) if record.media_type in environment.row.media_types

# METADATA
# title: The material fits the schema of the environment
# description: Everything in it fits, or nothing is built. The engine reads the material itself, once it
#   was admitted.
# custom:
#   code: material_unfit
#   fixed: true
#   each: records
#   after: [content_changed, media_type_not_admitted]
#   remedy: Correct the material as docs/environments.md describes it, and have its license decided again
# labels:
#   row: A39
material_fits(record) if {
	record.material.fits == true
	is_number(record.material.rows)
	record.material.rows > 0
}

# METADATA
# title: No text of the material contains control or hidden characters
# description: Such characters deceive those who read the text. Tabs, ends of lines, and invisible
#   characters that a script or an emoji needs are allowed.
# custom:
#   code: control_character
#   each: records
#   after: [material_unfit]
#   facts: {texts: material.controls}
#   remedy: Remove these characters from the material, and have its license decided again
# labels:
#   row: A39
plain_text(record) if record.material.controls == 0

# METADATA
# title: No text of the material is a formula
# description: Spreadsheets run a text that begins with an equals sign, or with an at, plus or minus sign, as a
#   formula; phone numbers may begin with a plus sign.
# custom:
#   code: formula_in_text
#   each: records
#   after: [material_unfit]
#   facts: {texts: material.formulas}
#   remedy: Begin these texts with another character, such as an apostrophe, and have the license decided again
# labels:
#   row: A39
without_formulas(record) if record.material.formulas == 0

# METADATA
# title: No text of the material is too large
# description: The maximum size of one text is a value in policy/environments.yaml.
# custom:
#   code: text_too_large
#   each: records
#   after: [material_unfit]
#   facts: {bytes: material.longest}
#   remedy: Shorten the text, or ask for a larger limit in policy/environments.yaml
#   reads: ["environments.environments.{environment}.limits"]
# labels:
#   row: A39
text_within_limit(record) if {
	is_number(record.material.longest)
	is_number(environment.row.limits.text_bytes)
	record.material.longest <= environment.row.limits.text_bytes
}

# METADATA
# title: The material has no more rows than the environment may have
# description: The maximum number of rows is a value in policy/environments.yaml.
# custom:
#   code: too_many_rows
#   after: [environment_unknown]
#   facts: {rows: rows}
#   remedy: Use less material, or ask for a larger limit in policy/environments.yaml
#   reads: ["environments.environments.{environment}.limits"]
# labels:
#   row: A39
rows_within_limit if {
	is_number(input.rows)
	is_number(environment.row.limits.rows)
	input.rows <= environment.row.limits.rows
}
