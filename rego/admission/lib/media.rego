# How a piece of media is passed.
package admission.lib.media

import future.keywords.not

# The content came with the request, and the engine measured it.
brought if input.media.source in {"base64", "file"}

by_file if input.media.source == "file"

# The content would have to be fetched.
by_url if input.media.source == "url"
