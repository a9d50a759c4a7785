"""The command `micronet`: one verb per file."""
