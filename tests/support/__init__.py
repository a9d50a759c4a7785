"""What several tests share: shapes, corpora, recipes, processes and independent definitions."""
