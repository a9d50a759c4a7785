"""`micronet page`: a model as one HTML file that needs no network."""

from pathlib import Path

from micronet_lm.cli.output import print_report
from micronet_lm.cli.packed import wanted_model
from micronet_lm.cli.parsers import Arguments, Verbs, add_verb

_EXAMPLE = """examples:
  micronet page -o page.html
  micronet page runs/demo -o demo.html

The file holds the engine (WebAssembly) and the model. Open it in a browser from 2023 or later:
it suggests words while you type, colours a text by how likely each word was, and writes on.
"""


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = add_verb(
        verbs,
        "page",
        _run,
        help="write one HTML file that runs a model offline",
        description="Write one HTML file that runs a packed model in a browser, without a network.",
        epilog=_EXAMPLE,
    )
    parser.add_argument(
        "model",
        type=Path,
        nargs="?",
        metavar="MODEL",
        help="a packed file or the folder of a run (default: model.safetensors, else the demo)",
    )
    parser.add_argument(
        "-o", "--out", type=Path, required=True, metavar="FILE", help="the HTML file to write"
    )


def _run(arguments: Arguments) -> int:
    from micronet_lm.page import write_page
    from micronet_lm.runtime.places import file_to_open

    model = file_to_open(wanted_model(arguments.model))
    size = write_page(model, arguments.out)
    report = {"model": str(model), "page": str(arguments.out), "bytes": size}
    shown = [f"{arguments.out}: {size:,} bytes; open it in a browser"]
    return print_report(report, shown, as_json=arguments.json)
