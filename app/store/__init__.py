"""Everything that speaks SQL: the event log, projection tables, views, migrations, checks."""
