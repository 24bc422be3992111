"""Atomic writes, the cache folder, starts and masks, and safe decoding of pictures."""
