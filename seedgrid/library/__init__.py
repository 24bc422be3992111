"""The library: every picture made, its lineage, and how nothing is lost."""
