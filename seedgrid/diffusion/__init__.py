"""Everything that touches torch and diffusers."""
