"""Facts about source bundles: folders and archives, read strictly and never unpacked."""
