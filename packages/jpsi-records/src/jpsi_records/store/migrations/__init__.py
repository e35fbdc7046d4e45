"""The migrations of the tables, for Alembic."""
