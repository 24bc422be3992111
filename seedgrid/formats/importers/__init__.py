"""Turns the settings in other tools' pictures into requests."""
