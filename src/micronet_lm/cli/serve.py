"""`micronet serve`: models over HTTP, with a page to try them."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from micronet_lm.cli.output import harmless, tell
from micronet_lm.cli.packed import wanted_model
from micronet_lm.cli.parsers import (
    Arguments,
    Verbs,
    add_engine,
    add_folder,
    add_number,
    add_verb,
    real,
    refuse,
    whole,
)
from micronet_lm.errors import UsageError

if TYPE_CHECKING:
    from micronet_lm.serve.shelf import Shelf

KEY = "MICRONET_API_KEY"

_EXAMPLE = f"""examples:
  micronet serve
  micronet serve model.safetensors other=runs/mine --port 9000
  {KEY}=secret micronet serve --host 0.0.0.0 --allow-host words.example.org

Open the address in a browser for a page, or ask as you would ask OpenAI's completions. Ctrl-C and
SIGTERM end it and save the sessions; SIGHUP opens model files that were replaced.
"""


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = add_verb(
        verbs,
        "serve",
        _run,
        help="answer over HTTP, with a page to try a model",
        description="Serve packed models over HTTP: OpenAI's completions, suggestions, scores, "
        "sessions, and a page in the browser.",
        epilog=_EXAMPLE,
    )
    parser.add_argument(
        "models",
        nargs="*",
        metavar="MODEL",
        help="packed file, folder of a run or pipeline, or 'demo'; NAME=MODEL gives it a name "
        "(default: as for predict)",
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen at (default: %(default)s)"
    )
    add_number(parser, "--port", type=whole(0), default=8080, help="port; 0 takes a free one")
    add_engine(parser)
    add_number(parser, "--threads", type=whole(1), help="worker threads (default: all processors)")
    parser.add_argument(
        "--api-key", metavar="KEY", help=f"key that clients must send (default: ${KEY}, or none)"
    )
    parser.add_argument(
        *("--allow-host",),
        action="append",
        default=[],
        metavar="NAME",
        help="host name, besides localhost and numeric addresses, by which clients may call",
    )
    parser.add_argument(
        *("--allow-origin",),
        action="append",
        default=[],
        metavar="ORIGIN",
        help="site whose pages may ask, such as https://example.org (default: none)",
    )
    add_folder(parser, "--sessions", "where sessions are saved (default: in your state folder)")
    parser.add_argument(
        "--no-sessions-on-disk", action="store_true", help="keep sessions in memory only"
    )
    parser.add_argument("--log-texts", action="store_true", help="log what clients send, too")
    add_number(parser, "--max-body", type=whole(1), default=1 << 20, help="bytes of a request")
    add_number(parser, "--max-prompt", type=whole(1), default=16_384, help="tokens of a request")
    add_number(parser, "--max-sessions", type=whole(1), default=1_000, help="number of sessions")
    add_number(parser, "--max-waiting", type=whole(0), default=256, help="requests that may wait")
    add_number(
        parser, "--timeout", type=real("(0, 3600]"), default=30.0, help="seconds per request"
    )


def _run(arguments: Arguments) -> int:
    from micronet_lm.serve.running import run_server
    from micronet_lm.serve.settings import Limits, Settings, default_sessions
    from micronet_lm.serve.shelf import named_places

    if arguments.port > 65_535:
        raise UsageError(f"--port must be at most 65535, got {arguments.port}")
    if arguments.no_sessions_on_disk:
        refuse(arguments, "and --no-sessions-on-disk contradict each other", "--sessions")
    key = arguments.api_key if arguments.api_key is not None else os.environ.get(KEY)
    if key is not None and not (key and key.isascii() and key.isprintable() and " " not in key):
        raise UsageError("the key must be one word of printable ASCII characters")
    sessions: Path | None = arguments.sessions or default_sessions(arguments.port)
    chosen = {} if arguments.threads is None else {"threads": arguments.threads}
    settings = Settings(
        host=arguments.host,
        port=arguments.port,
        api_key=key,
        hosts=tuple(name.lower() for name in arguments.allow_host),
        origins=tuple(arguments.allow_origin),
        log_texts=arguments.log_texts,
        sessions=None if arguments.no_sessions_on_disk else sessions,
        limits=Limits(
            body=arguments.max_body,
            prompt=arguments.max_prompt,
            seconds=arguments.timeout,
            waiting=arguments.max_waiting,
            sessions=arguments.max_sessions,
        ),
        **chosen,
    )
    places = named_places(arguments.models, lambda: wanted_model(None))
    run_server(places, arguments.engine, settings, _ready)
    return 0


def _ready(address: str, shelf: "Shelf") -> None:
    """Say where the page is and which models answer."""
    for opened in shelf.models:
        tell(f"model: {harmless(opened.name)}, {len(opened.lm.vocabulary):,} words ({opened.path})")
    tell(f"serving at {address}  (Ctrl-C ends)")
