"""The fingerprints of web/dist/micronet.wasm and of the sources that it is built from.

python web/sources.py            print them
python web/sources.py --write    write them beside the module, where a test finds them
"""

import hashlib
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODULE = ROOT / "web" / "dist" / "micronet.wasm"
RECORD = ROOT / "web" / "dist" / "sources.sha256"


def sources() -> list[Path]:
    """Return the files that the module depends on, in a fixed order."""
    native = ROOT / "native"
    files = [*(native / "src").iterdir(), *(native / "include").iterdir()]
    files += [*(ROOT / "web" / "native").iterdir(), ROOT / "web" / "build.sh"]
    others = (
        "kernels_avx",
        "kernels_neon",
        "kernels_scalar",
        "simd_avx",
        "simd_neon",
        "simd_scalar",
    )
    return sorted(path for path in files if not path.name.startswith(others))


def fingerprint() -> str:
    """Return the hash of all sources with their names, and that of the module made of them."""
    digest = hashlib.sha256()
    for path in sources():
        digest.update(
            path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0"
        )
    module = hashlib.sha256(MODULE.read_bytes()).hexdigest()
    return f"{digest.hexdigest()}  sources\n{module}  {MODULE.name}\n"


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        RECORD.write_text(fingerprint(), encoding="utf-8")
    else:
        print(fingerprint(), end="")
