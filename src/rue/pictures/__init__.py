"""Pictures of runs, games and races."""
