"""What the scripts of the page are told, as JSON."""
