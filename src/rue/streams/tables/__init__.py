"""Tables, which have named columns: what CSV, JSON lines, Parquet and Arrow share (`rue.streams.formats` has each).

- `table`: an opened file with columns; `batches`: those that Arrow reads; `records`: those that are text, in pieces of
  whole records;
- `columns`: which column is what, decided by the first rows; `spelling`, `suspicious`: numbers and dates written as
  text;
- `encoding`: batches to examples; `assembly` has the compiled part of it, `dates` and `tokens` the features of moments
  and of words.
"""
