"""The steps of the migrations, one file each; Alembic runs them in the order of their numbers."""
