"""Tags, and by what works are told to be alike: their recipes and pixels.

An older row without tags keeps its check sum: tags are in it only where there are some.
"""

from alembic import op

revision = "m004"
down_revision = "m003"

_STATEMENTS = (
    "ALTER TABLE pictures ADD COLUMN tags TEXT NOT NULL DEFAULT ''",
    "CREATE INDEX pictures_tags ON pictures (tags, number) WHERE tags != ''",
    "ALTER TABLE pictures ADD COLUMN likeness TEXT NOT NULL DEFAULT ''",
    "UPDATE pictures SET likeness = substr(recipe_id, 1, 16) || substr(pixels_sha256, 1, 8)",
    "DROP INDEX pictures_work",
    "CREATE INDEX pictures_work ON pictures (work_id, trashed, likeness, number, favourite)",
)


def upgrade() -> None:
    """Add the columns, and index them."""
    for statement in _STATEMENTS:
        op.execute(statement)
