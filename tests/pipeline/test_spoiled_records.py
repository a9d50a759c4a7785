"""Records of a pipeline that are something else: a sentence, or a new measurement."""

import json
from pathlib import Path

import pytest
from tests.support.damage import SPOILED, spoil

from micronet_lm.compression.quantization.sweep import _known
from micronet_lm.errors import MicronetError, PipelineError
from micronet_lm.pipeline.submission import _read_ledger
from micronet_lm.pipeline.together import read_outcome
from micronet_lm.pipeline.workspace import read_given, read_record
from micronet_lm.report.pipeline_folder import PipelineFolder

pytestmark = pytest.mark.usefixtures("alarm")
RECORD = {
    "stage": "student",
    "fingerprint": "f",
    "complete": True,
    "settings": {},
    "needs": {},
}


@pytest.mark.parametrize("read", [read_record, read_given, _read_ledger])
@pytest.mark.parametrize("how", SPOILED)
def test_a_spoiled_record_is_one_sentence(tmp_path: Path, how: str, read: object) -> None:
    file = tmp_path / "student.json"
    spoil(file, how)
    with pytest.raises(PipelineError, match=r"student\.json is damaged .*remove it") as caught:
        read(file)  # type: ignore[operator]
    assert SPOILED[how] in str(caught.value)


@pytest.mark.parametrize("key", ["settings", "needs", "result", "outputs"])
def test_a_record_with_values_of_another_kind_is_one_sentence(tmp_path: Path, key: str) -> None:
    file = tmp_path / "student.json"
    file.write_text(json.dumps({**RECORD, key: [1]}))
    with pytest.raises(PipelineError, match=f"its {key} are not a JSON object"):
        read_record(file)


@pytest.mark.parametrize("name", ["stages/student.json", "pipeline.json"])
@pytest.mark.parametrize("how", SPOILED)
def test_a_report_names_the_file_that_is_spoiled(tmp_path: Path, how: str, name: str) -> None:
    """It ended with an error that nobody expected, or waited for ever."""
    (tmp_path / "stages").mkdir()
    (tmp_path / "stages" / "student.json").write_text(json.dumps(RECORD))
    assert PipelineFolder.open(tmp_path).records["student"]["complete"]
    spoil(tmp_path / name, how)
    with pytest.raises(MicronetError, match=f"{Path(name).name} is damaged .*remove it") as caught:
        PipelineFolder.open(tmp_path)
    assert SPOILED[how] in str(caught.value)


@pytest.mark.parametrize("how", SPOILED)
def test_what_can_be_measured_again_is(tmp_path: Path, how: str) -> None:
    spoil(tmp_path / "file.json", how)
    assert read_outcome(tmp_path / "file.json") is None
    assert _known(tmp_path / "file.json", {}) is None
