"""The schema of the library's database, version by version; run by Alembic."""
