"""Seals: which recipes gave which pixels under which passport in this library itself."""

from alembic import op

revision = "m003"
down_revision = "m002"


def upgrade() -> None:
    """Make the table; of what was kept before, nobody knows where it was painted."""
    op.execute(
        """
        CREATE TABLE seals (
            recipe_id TEXT NOT NULL,
            passport_id TEXT NOT NULL,
            pixels_sha256 TEXT NOT NULL,
            seal TEXT NOT NULL,
            PRIMARY KEY (recipe_id, passport_id, pixels_sha256)
        ) STRICT
        """
    )
