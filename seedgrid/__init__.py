"""SeedGrid: a picture is a pure function of its recipe."""
