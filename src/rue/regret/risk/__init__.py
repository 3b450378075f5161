"""What the losses of one pass say about examples still to come; the price of mixing (docs/theory.md, B11 to B14)."""
