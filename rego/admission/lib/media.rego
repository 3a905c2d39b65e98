# Where a piece of media comes from.
package admission.lib.media

import future.keywords.not

# The content came with the request, and was measured.
brought if input.media.source in {"base64", "file"}

by_file if input.media.source == "file"

# Something would have to be fetched.
by_url if input.media.source == "url"
