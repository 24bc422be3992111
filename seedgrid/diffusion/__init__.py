"""Painting with torch and diffusers: loading models, calling pipelines, testing the lock."""
