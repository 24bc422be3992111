"""What goes out: scripts, bundles, contact sheets."""
