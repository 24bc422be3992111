"""Verify: run a picture's recipe again and compare, with the reason for any difference."""
