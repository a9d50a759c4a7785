"""The names of the files in a run's folder, each spelled once."""

RECIPE = "recipe.yaml"
"""The resolved recipe; a folder without it is not a run."""

BEST = "best.safetensors"
"""The model with the smallest validation loss."""

LAST = "last.safetensors"
"""The newest checkpoint, with all that training needs to resume."""

PRECISION = "precision.json"
"""The number format of its products, chosen when it began."""

METRICS = "metrics.jsonl"
"""What it reported, one JSON object per line."""

TENSORBOARD = "tensorboard"
"""The same as TensorBoard's events: a folder."""

RESULT = "result.json"
"""How the folder was made, if it was not by training."""

SEARCH = "search.json"
"""Every point that a search for cache parameters visited."""

PRUNING = "pruning.json"
"""Which matrices lose how many weights."""

STAGES = "stages"
"""The folder of a pipeline's records; a folder that has it is a pipeline's, not a run's."""

CORPUS = "corpus"
"""Names `corpus.json`, which says where the corpus is, and the folder of a corpus of its own."""

LABELS = "labels"
"""Names `labels.json`, which says where a distilled run's soft labels are."""

PACKED = "model.safetensors"
"""The packed model, in the folder of a pipeline's stage `packed`."""
