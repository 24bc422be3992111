"""The state of a page, the visitors' libraries, and snapshots of both."""
