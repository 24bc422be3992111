"""Files that are there whole or not at all, and the cache folder."""
