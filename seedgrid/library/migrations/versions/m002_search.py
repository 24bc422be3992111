"""An index of the prompts by three-letter pieces: finds parts of words, in any script."""

from alembic import op

revision = "m002"
down_revision = "m001"

_STATEMENTS = (
    """
    CREATE VIRTUAL TABLE words
    USING fts5 (prompt, content = 'pictures', content_rowid = 'number', tokenize = 'trigram')
    """,
    """
    CREATE TRIGGER words_insert AFTER INSERT ON pictures BEGIN
        INSERT INTO words (rowid, prompt) VALUES (new.number, new.prompt);
    END
    """,
    """
    CREATE TRIGGER words_delete AFTER DELETE ON pictures BEGIN
        INSERT INTO words (words, rowid, prompt) VALUES ('delete', old.number, old.prompt);
    END
    """,
    """
    CREATE TRIGGER words_update AFTER UPDATE OF prompt ON pictures BEGIN
        INSERT INTO words (words, rowid, prompt) VALUES ('delete', old.number, old.prompt);
        INSERT INTO words (rowid, prompt) VALUES (new.number, new.prompt);
    END
    """,
    "INSERT INTO words (words) VALUES ('rebuild')",
)


def upgrade() -> None:
    """Make the index, fill it, and keep it in step."""
    for statement in _STATEMENTS:
        op.execute(statement)
