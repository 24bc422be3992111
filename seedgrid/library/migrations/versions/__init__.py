"""One file a version: m001, m002, …; each is tested from the one before."""
