"""The page's components and where they stand."""
