"""Runs packed models without torch: the face by text, and the engines underneath."""
