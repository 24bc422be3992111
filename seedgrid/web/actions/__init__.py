"""The page's actions on clicks, keys and loads: each returns what changes on the page."""
