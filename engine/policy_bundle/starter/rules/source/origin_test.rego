package admission.added.source.origin_test

import future.keywords.not

import data.admission.added.source.origin

test_known_team if origin.origin_team_known({"origin_alias": "acme-recipes"})

test_unknown_team if not origin.origin_team_known({"origin_alias": "recipes"})

test_no_alias if not origin.origin_team_known({})
