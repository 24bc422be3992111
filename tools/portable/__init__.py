"""Portable arithmetic in other processes and on emulated processors."""
