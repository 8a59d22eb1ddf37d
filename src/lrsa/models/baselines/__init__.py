"""The published models, each with its own skeleton."""
