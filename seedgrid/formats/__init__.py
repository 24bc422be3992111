"""Bytes in, bytes out: PNG, EXIF, links, and other tools' settings."""
