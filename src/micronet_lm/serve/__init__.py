"""Packed models over HTTP: OpenAI's completions, the package's own questions, and a page."""
