"""The self-test of kernels: correct ones pass; crashes, hangs and wrong numbers are reported."""

import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from micronet_lm.errors import InferenceError
from micronet_lm.runtime import self_test
from micronet_lm.runtime.engine import Floats, Ids
from micronet_lm.runtime.engines import has_native
from micronet_lm.runtime.native import NativeEngine, NativeSession, kernel_sets
from micronet_lm.runtime.self_test import KernelCheck, check_kernels, judge

RUNNING = [kernels.name for kernels in kernel_sets() if kernels.runs]

pytestmark = pytest.mark.skipif(not has_native(), reason="the native engine is not built")

ILLEGAL = """
import ctypes, mmap
code = {"x86_64": b"\\x0f\\x0b", "aarch64": b"\\0\\0\\0\\0"}  # refused by every processor
page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(code[__import__("os").uname().machine])
ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
"""


def checks_with(script: str, patch: pytest.MonkeyPatch, timeout: float = 60) -> list[KernelCheck]:
    """Check with a script in place of the child process."""
    patch.setattr(self_test, "child_command", lambda name: [sys.executable, "-c", script, name])
    return check_kernels(timeout)


def test_all_kernels_of_this_machine_pass() -> None:
    checks = check_kernels()
    assert [check.name for check in checks] == RUNNING
    for check in checks:
        assert check.ok, check.detail
        assert "18 models" in check.detail
        assert check.seconds > 0


def test_a_child_that_meets_an_illegal_instruction_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checks = checks_with(ILLEGAL, monkeypatch)
    assert [(check.name, check.ok) for check in checks] == [(name, False) for name in RUNNING]
    for check in checks:
        assert check.detail == f"the {check.name} kernels were ended by SIGILL"


def test_the_real_child_may_die_while_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the command as it is: a `sitecustomize` lets the first score of AVX2 end the process."""
    if "avx2" not in RUNNING:
        pytest.skip("this processor has no AVX2")
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "if sys.argv[0] == '-m' and sys.orig_argv[-1] == 'avx2':\n"
        "    import micronet_lm.runtime.native as native\n"
        "    def score(*_):\n"
        f"        exec({ILLEGAL!r})\n"
        "    native.NativeEngine.score = score\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    found = {check.name: check for check in check_kernels()}
    assert found["scalar"].ok, found["scalar"].detail
    assert found["avx2"].detail == "the avx2 kernels were ended by SIGILL"


def test_a_child_that_hangs_is_ended_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = checks_with("import time; time.sleep(600)", monkeypatch, timeout=0.3)
    for check in checks:
        assert not check.ok
        assert check.detail == f"the {check.name} kernels gave no answer within 0.3 s"
        assert check.seconds >= 0.3


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("raise SystemExit('no room')", "no room"),
        ("print('[]')", "exit code 0"),
        ("import os; os._exit(3)", "exit code 3"),
    ],
)
def test_a_child_without_a_verdict_is_reported(
    script: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for check in checks_with(script, monkeypatch):
        assert not check.ok
        assert check.detail == f"the check of the {check.name} kernels gave no verdict: {reason}"


def test_a_command_that_does_not_start_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_test, "child_command", lambda _: ["/nowhere/at/all"])
    assert not any(check.ok for check in check_kernels())
    assert "did not start" in check_kernels()[0].detail


@pytest.mark.parametrize("name", RUNNING)
def test_a_wrong_score_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = NativeEngine.score

    def score(self: NativeEngine, tokens: Ids, threads: int = 1) -> Floats:
        scores = honest(self, tokens, threads)
        if self.kernels == name:
            scores[7] += 0.25
        return scores

    monkeypatch.setattr(NativeEngine, "score", score)
    verdict = judge(name)
    assert not verdict.ok
    assert verdict.detail == (
        f"the {name} kernels give a wrong number: score of a random model (4 bits with no "
        "activations quantized) is 0.25 off (1e-05 is allowed)"
    )
    assert self_test.main([name]) == 1


@pytest.mark.parametrize("wrong", [1e-4, np.nan])
def test_a_wrong_distribution_is_noticed(wrong: float, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = NativeSession.log_distribution

    def log_distribution(self: NativeSession, out: Floats | None = None) -> Floats:
        answer = honest(self, out)
        answer[-1] += np.float32(wrong)
        return answer

    monkeypatch.setattr(NativeSession, "log_distribution", log_distribution)
    assert "log_distribution of a random model" in judge("scalar").detail


def test_a_state_that_differs_in_a_bit_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a quantized model only; what others keep is good to a few last bits."""
    if "avx2" not in RUNNING:
        pytest.skip("this processor has no AVX2")
    kernels: dict[int, str] = {}
    start, save = NativeEngine.start, NativeSession.save

    def noting_start(self: NativeEngine) -> NativeSession:
        session = start(self)
        kernels[id(session)] = self.kernels
        return session

    def spoiled_save(self: NativeSession) -> bytes:
        saved = bytearray(save(self))
        saved[40] ^= kernels[id(self)] == "avx2"
        return bytes(saved)

    monkeypatch.setattr(NativeEngine, "start", noting_start)
    monkeypatch.setattr(NativeSession, "save", spoiled_save)
    verdict = judge("avx2")
    assert not verdict.ok
    assert "the state of a session of a random model (4 bits with some" in verdict.detail
    assert "must be the same" in verdict.detail


def test_an_engine_that_refuses_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def feed(self: NativeSession, token: int) -> None:
        raise InferenceError("the numbers are not finite")

    monkeypatch.setattr(NativeSession, "feed", feed)
    assert judge("scalar").detail == "the scalar kernels gave an error: the numbers are not finite"


def test_without_the_engine_there_is_nothing_to_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_test, "has_native", lambda: False)
    assert check_kernels() == []


def test_a_signal_without_a_name_has_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    number = signal.SIGRTMIN + 3
    checks = checks_with(f"import os; os.kill(os.getpid(), {number})", monkeypatch)
    assert checks[0].detail == f"the scalar kernels were ended by signal {number}"


def test_the_command_wants_one_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert self_test.main([]) == 2
    assert "KERNELS" in capsys.readouterr().err
