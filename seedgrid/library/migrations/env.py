"""What Alembic runs: the migrations, on the connection and in the transaction of database.py."""

from alembic import context

if hasattr(context, "config"):  # Only where Alembic runs it: any other import changes nothing.
    context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
    context.run_migrations()
