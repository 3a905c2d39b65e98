package admission.lib.fetch_test

import data.admission.lib.fetch
import future.keywords.not

test_status if fetch.status == 200
