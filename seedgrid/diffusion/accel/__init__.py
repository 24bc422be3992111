"""Quicker ways to the very same bits. Each file can be deleted without touching another."""
