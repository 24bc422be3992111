"""Every word on the page, in each of its languages."""
