"""Run packed models without torch: the text-level API and the engines below it."""
