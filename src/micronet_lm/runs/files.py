"""Names of the files in a run folder."""

RECIPE = "recipe.yaml"
"""The resolved recipe; a folder without it is not a run."""

BEST = "best.safetensors"
"""The model with the smallest validation loss."""

LAST = "last.safetensors"
"""The newest checkpoint, with all that training needs to resume."""

COUNTERS = "counters.safetensors"
"""Counters of the Hebbian update that a result took over from the run that it was made from."""

PRECISION = "precision.json"
"""The precision of its products, chosen when it began."""

METRICS = "metrics.jsonl"
"""Its metrics, one JSON object per line."""

TENSORBOARD = "tensorboard"
"""Folder with the same metrics as TensorBoard events."""

RESULT = "result.json"
"""How the folder was made, if not by training."""

SEARCH = "search.json"
"""Every point visited by a cache search."""

PRUNING = "pruning.json"
"""Number of weights pruned from each matrix."""

STAGES = "stages"
"""The folder of a pipeline's records; a folder that has it is a pipeline's, not a run's."""

CORPUS = "corpus"
"""Name of `corpus.json`, which has the path of the corpus, and of the folder of its own corpus."""

LABELS = "labels"
"""Name of `labels.json`, which has the path of a distilled run's soft labels."""

PACKED = "model.safetensors"
"""The packed model, in the folder of a pipeline's stage `packed`."""
