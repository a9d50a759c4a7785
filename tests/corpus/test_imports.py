import subprocess
import sys


def test_a_corpus_needs_no_torch() -> None:
    program = (
        "import sys, micronet_lm.cli.corpus, micronet_lm.corpus\n"
        "sys.exit(any(name.partition('.')[0] == 'torch' for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
