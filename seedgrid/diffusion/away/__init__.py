"""Painting in another process, on a GPU lent by Hugging Face, or on another machine."""
