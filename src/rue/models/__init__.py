"""The model file: saved, loaded, resumed."""
