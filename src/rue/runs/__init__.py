"""One pass over a stream: predict, add up, update."""
