"""Finds, downloads, checks and describes models. Needs no torch, except to make a scheduler."""
