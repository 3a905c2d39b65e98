package admission.added.lib.names_test

import data.admission.added.lib.names

test_team if names.team("acme-recipes-2026") == "acme"

test_alias_without_hyphen if names.team("acme") == "acme"
