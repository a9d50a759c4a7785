"""The command `micronet`: one verb a file."""
