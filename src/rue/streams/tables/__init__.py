"""Formats of tables, with a header or a schema: CSV, JSON lines, Parquet, Arrow."""
