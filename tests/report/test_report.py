"""`micronet report`: one page that needs nothing else, and the same as Markdown."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from micronet_lm.cli.main import main
from micronet_lm.report.document import Document, Section, Table, Text, to_html, to_markdown
from micronet_lm.report.palette import BETTER, WORSE
from micronet_lm.report.stack import Layer, stack_svg

SECTIONS = ["Summary", "Pipeline", "Stages", "Text", "Baseline", "Curves", "Sensitivity"]
SECTIONS += ["Cache search", "Accounting by layer", "Size against perplexity", "Samples"]
SECTIONS += ["Speed", "Environment", "Commands to repeat it"]


class Links(HTMLParser):
    """Collects what a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            away = value is not None and not value.startswith("#")
            if key in ("src", "href", "xlink:href") and away:
                self.fetched.append(f"{tag} {value}")
        assert tag not in ("script", "link", "img", "iframe")


def test_the_report_of_a_pipeline(finished: Path) -> None:
    page = (finished / "report" / "report.html").read_text()
    text = (finished / "report" / "report.md").read_text()
    for title in SECTIONS:
        assert f"<h2>{title}</h2>" in page
        assert f"## {title}\n" in text
    assert len(page) < 1_500_000
    links = Links()
    links.feed(page)
    assert links.fetched == []
    # Nothing of this machine but its kind: no folder, no host.
    assert str(finished) not in page + text
    assert "/tmp/" not in page + text  # noqa: S108
    assert Path("/etc/hostname").read_text().strip() not in page + text
    for picture in re.findall(r"\((figures/[a-z]+\.svg)\)", text):
        assert (finished / "report" / picture).read_text().count("<svg") == 1
    # Its numbers are those of the account.
    rows = json.loads((finished / "account" / "account.json").read_text())["stages"]
    for row in rows:
        assert f"<td>{row['test_perplexity']:,.2f}</td>" in page
        assert f"{row['storage']:,.0f}" in text


def test_a_report_on_demand_is_the_same(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["report", str(finished), "--out", str(tmp_path / "again"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    again = Path(said["markdown"]).read_text()
    first = (finished / "report" / "report.md").read_text()
    assert repeatable(again) == repeatable(first)


def repeatable(page: str) -> str:
    """A page without what is measured and dated anew each time: the two speeds, and the day."""
    page, speeds = re.subn(r"(?m)^- (words read per second|per suggestion.*): .*", r"- \1", page)
    page, days = re.subn(r"\b20\d\d-\d\d-\d\d\b", "DAY", page)
    assert (speeds, days) == (2, 2)
    return page


def test_the_report_of_a_run(finished: Path, tmp_path: Path) -> None:
    assert main(["report", str(finished / "student"), "--out", str(tmp_path / "one")]) == 0
    page = (tmp_path / "one" / "report.html").read_text()
    titles = ["Summary", "Text", "Baseline", "Curves", "Accounting by layer", "Samples", "Speed"]
    for title in [*titles, "Recipe", "Environment"]:
        assert f"<h2>{title}</h2>" in page
    record = json.loads((finished / "stages" / "student.json").read_text())["result"]
    assert f"<b>{record['test_perplexity']:,.2f}</b>" in page


@pytest.mark.needs_torch
def test_what_is_no_pipeline_and_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path)]) == 1
    assert "is neither a pipeline nor a run" in capsys.readouterr().err


def test_texts_are_escaped() -> None:
    table = Table(head=["a|b", "<c>"], rows=[["<unk>", "1"]])
    document = Document(
        title="<b>",
        subtitle="&",
        sections=[Section(title="S", blocks=[Text(text="x < y"), table])],
    )
    page = to_html(document)
    assert "<td>&lt;unk&gt;</td>" in page
    assert "<h1>&lt;b&gt;</h1>" in page
    assert "x &lt; y" in page
    assert "| a\\|b | <c> |" in to_markdown(document)


def test_a_stack_says_what_changed_and_which_way() -> None:
    one = Layer(
        label="A",
        kind="core",
        values={"storage": 8.3e6, "operations": 17e6, "validation_perplexity": 40.0},
    )
    two = Layer(
        label="B",
        kind="core",
        values={"storage": 8.3e6, "operations": 18e6, "validation_perplexity": 30.0},
    )
    svg = stack_svg([("Title", [one, two])])
    assert svg.count("8.30M") == 1  # unchanged: said once
    assert re.search(rf'fill="{WORSE}"[^>]*>18\.00M', svg)
    assert re.search(rf'fill="{BETTER}"[^>]*>30\.00', svg)
