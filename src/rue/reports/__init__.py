"""What a person reads of a run or a model."""
