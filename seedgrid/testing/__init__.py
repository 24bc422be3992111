"""Stand-ins that ship with the package, for tests and for play."""
