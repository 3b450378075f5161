"""Formats of text, one example a line, parsed by compiled parsers: svmlight and Vowpal Wabbit."""
