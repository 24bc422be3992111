"""Pictures, their recipes and passports."""

from alembic import op

revision = "m001"
down_revision = None

_STATEMENTS = (
    """
    CREATE TABLE recipes (
        recipe_id TEXT NOT NULL PRIMARY KEY,
        json TEXT NOT NULL CHECK (json_valid(json))
    ) STRICT
    """,
    """
    CREATE TABLE passports (
        passport_id TEXT NOT NULL PRIMARY KEY,
        json TEXT NOT NULL CHECK (json_valid(json))
    ) STRICT
    """,
    """
    CREATE TABLE pictures (
        number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        picture_id TEXT NOT NULL UNIQUE,
        recipe_id TEXT NOT NULL REFERENCES recipes,
        passport_id TEXT NOT NULL REFERENCES passports,
        parent_id TEXT,
        work_id TEXT NOT NULL,
        round_id TEXT NOT NULL,
        cell INTEGER NOT NULL,
        change TEXT NOT NULL,
        created_at TEXT NOT NULL,
        prompt TEXT NOT NULL,
        model TEXT NOT NULL,
        seed INTEGER NOT NULL,
        pixels_sha256 TEXT NOT NULL,
        file_sha256 TEXT NOT NULL UNIQUE,
        favourite INTEGER NOT NULL DEFAULT 0 CHECK (favourite IN (0, 1)),
        note TEXT NOT NULL DEFAULT '',
        trashed INTEGER NOT NULL DEFAULT 0 CHECK (trashed IN (0, 1)),
        lost INTEGER NOT NULL DEFAULT 0 CHECK (lost IN (0, 1)),
        row_sha256 TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX pictures_recipe ON pictures (recipe_id, passport_id)",
    "CREATE INDEX pictures_work ON pictures (work_id, trashed, number)",
    "CREATE INDEX pictures_round ON pictures (round_id)",
    "CREATE INDEX pictures_model ON pictures (model, number)",
    "CREATE INDEX pictures_seed ON pictures (seed, number)",
    "CREATE INDEX pictures_created ON pictures (created_at)",
    "CREATE INDEX pictures_favourite ON pictures (number) WHERE favourite = 1",
    "CREATE INDEX pictures_trashed ON pictures (number) WHERE trashed = 1",
)


def upgrade() -> None:
    """Make the tables."""
    for statement in _STATEMENTS:
        op.execute(statement)
