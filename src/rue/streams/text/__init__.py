"""Text in which a line is an example: what the compiled parsers share (`rue.streams.formats` has each of them).

- `lines`: the loop around a parser, and messages about bad lines;
- `numbers`: decimal numbers to the same bits as Python's `float`; `words`: the words of Vowpal Wabbit's text;
- `hashing`: words into slots; `csr`: the sparse rows that parsers write.
"""
