"""Soft labels: against the definition, beside their tokens, complete or refused."""

import hashlib
import json
import os
import resource
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.support.damage import SPOILED, spoil
from tests.support.models import make_teacher
from tests.support.recipes import tiny_recipe
from tests.support.sizes import set_sizes
from torch import Tensor

from micronet_lm.compression import SoftLabels, write_soft_labels
from micronet_lm.compression.softlabels.choosing import Chosen, covered, sampled, top_k
from micronet_lm.compression.softlabels.manifest import Manifest
from micronet_lm.compression.softlabels.teacher import distributions
from micronet_lm.config import CacheConfig, DistillConfig, merge_recipe
from micronet_lm.corpus import Corpus, build_corpus
from micronet_lm.errors import LabelsError, UsageError
from micronet_lm.files import locked
from micronet_lm.model import LanguageModel
from micronet_lm.model.fingerprint import fingerprint_of


@torch.inference_mode()
def whole_distribution(model: LanguageModel, corpus: Corpus) -> Tensor:
    """Probabilities of all words after all tokens but the last, from one forward: (n − 1, V)."""
    ids = torch.from_numpy(corpus.split("train").astype(np.int64))[None]
    hidden, _ = model.eval()(ids[:, :-1])
    return model.log_distribution(hidden, ids[:, 1:])[0].exp()


def small_pieces(monkeypatch: pytest.MonkeyPatch, corpus: Corpus) -> int:
    """Make chunks of 100 tokens and pieces of 7; return the bytes of the largest piece."""
    bound = 4 * 7 * len(corpus.vocabulary)
    set_sizes(monkeypatch, chunk=100, distribution=bound)
    return bound


@pytest.mark.parametrize("cache", [0, 150])
def test_labels_are_the_teachers_likeliest_next_words(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch, cache: int
) -> None:
    """In shards that know nothing of each other, against one forward over the whole text."""
    small_pieces(monkeypatch, corpus)
    model = make_teacher(corpus, cache)
    report = write_soft_labels(
        model, corpus, tmp_path / "labels", count=5, shard_tokens=1000, quiet=True
    )
    labels = SoftLabels.open(tmp_path / "labels")
    tokens = corpus.tokens("train") - 1
    assert (labels.settings.tokens, labels.settings.shards) == (tokens, -(-tokens // 1000))
    (words,), (weights,) = labels.windows([0], tokens)
    expected = whole_distribution(model, corpus)
    values = expected.topk(5).values
    torch.testing.assert_close(torch.from_numpy(weights), values, rtol=2e-3, atol=1e-6)
    at_words = expected.gather(1, torch.from_numpy(words))
    torch.testing.assert_close(at_words, values, rtol=1e-3, atol=1e-6)
    # One token to the left or to the right they would be somebody else's.
    for shift in (-1, 1):
        moved = expected.roll(shift, dims=0).gather(1, torch.from_numpy(words))
        assert float(((moved - values).abs() > 0.01 * values).float().mean()) > 0.9
    following = corpus.split("train")[1:].astype(np.int64)
    assert report.hit_share == (words == following[:, None]).any(1).mean()
    assert report.mass == pytest.approx(float(values.sum(1).mean()), rel=1e-5)
    assert report.tokens == tokens


def test_a_window_may_lie_across_shards(tmp_path: Path, corpus: Corpus) -> None:
    model = make_teacher(corpus)
    for name, size in (("one", 100_000), ("many", 37)):
        write_soft_labels(model, corpus, tmp_path / name, count=4, shard_tokens=size, quiet=True)
    one, many = SoftLabels.open(tmp_path / "one"), SoftLabels.open(tmp_path / "many")
    last = one.settings.tokens - 100
    for starts in ([0, 36, 37], [5, last, last - 1]):
        first, second = one.windows(starts, 100), many.windows(starts, 100)
        # The shards begin elsewhere, so the sums differ in their last bits.
        np.testing.assert_allclose(first.weights, second.weights, rtol=2e-3, atol=1e-6)
        assert (first.words == second.words).mean() > 0.999
        fewer = many.windows(starts, 100, 2)
        assert np.array_equal(fewer.words, second.words[..., :2])
        assert np.array_equal(fewer.weights, second.weights[..., :2])
        assert first.words.shape == (3, 100, 4)
    for start in (-1, last + 1):
        with pytest.raises(IndexError):
            one.windows([start], 100)


def test_more_shards_than_a_process_may_open(tmp_path: Path, corpus: Corpus) -> None:
    """103 million tokens are 1,576 files; a process usually may open 1,024."""
    model = make_teacher(corpus)
    write_soft_labels(model, corpus, tmp_path, count=2, shard_tokens=29, quiet=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_now = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + 80, hard))
    try:
        labels = SoftLabels.open(tmp_path)
        assert 2 * labels.settings.shards > 200
        every = labels.windows([0], labels.settings.tokens)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (every.weights[0].sum(axis=1) <= 1.001).all()


def test_the_distribution_comes_in_pieces_of_bounded_size(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound = small_pieces(monkeypatch, corpus)
    places: list[int] = []
    for piece in distributions(make_teacher(corpus, 50), corpus.split("train"), range(300, 633)):
        assert piece.distribution.numel() * 4 <= bound
        torch.testing.assert_close(piece.distribution.sum(1), torch.ones(len(piece.following)))
        places += range(piece.place, piece.place + len(piece.following))
    assert places == list(range(300, 633))


def test_on_disk(tmp_path: Path, corpus: Corpus) -> None:
    """Ids in the smallest type, half-precision values; sampled labels are less than half."""
    model, tokens = make_teacher(corpus), corpus.tokens("train") - 1
    top = write_soft_labels(model, corpus, tmp_path / "top", count=30, quiet=True)
    few = write_soft_labels(model, corpus, tmp_path / "few", method="sampled", count=12, quiet=True)
    assert len(corpus.vocabulary) <= 256
    assert top.bytes == tokens * 30 * (1 + 2)
    assert few.bytes == tokens * 12
    files = {
        name: sum(f.stat().st_size for f in (tmp_path / name).iterdir()) for name in ("top", "few")
    }
    assert top.bytes < files["top"] < top.bytes + 2000
    assert files["few"] < 0.5 * files["top"]
    ids = np.load(tmp_path / "top" / "00000.ids.npy", mmap_mode="r")
    assert (ids.dtype, ids.shape) == (np.uint8, (tokens, 30))
    assert np.load(tmp_path / "top" / "00000.probabilities.npy").dtype == np.float16


def test_top_k() -> None:
    distribution = torch.tensor([[0.1, 0.4, 0.2, 0.3], [0.97, 0.01, 0.0, 0.02]])
    chosen = top_k(distribution, 2)
    assert chosen.words.tolist() == [[1, 3], [0, 3]]
    torch.testing.assert_close(chosen.probabilities, torch.tensor([[0.4, 0.3], [0.97, 0.02]]))


def test_sampled_labels_are_unbiased() -> None:
    """Every word's mean weight is its probability, so L_soft is right on average; top-k is not."""
    torch.manual_seed(0)
    tokens, words, count = 40_000, 60, 12
    probability = torch.randn(words).mul(2).softmax(0)
    logs = torch.randn(words).mul(2).log_softmax(0)  # some student
    shifts = torch.from_numpy(np.random.default_rng(3).random(tokens))
    chosen = sampled(probability.expand(tokens, -1), count, shifts)
    counts = torch.nn.functional.one_hot(chosen.words, words).sum(1)  # (N, V)
    mean = counts.double().mean(0) / count
    # Evenly spaced points: a word's count is one of the two whole numbers around K·p …
    expected = count * probability.double()
    assert bool((counts >= expected.floor() - 1e-9).all() & (counts <= expected.ceil()).all())
    # … and its mean is within four standard errors of p.
    share = expected - expected.floor()
    error = (share * (1 - share) / tokens).sqrt() / count
    assert bool(((mean - probability).abs() <= 4 * error + 1e-7).all())
    direct = -float((probability * logs).sum())
    losses = -logs[chosen.words].mean(1)
    tolerance = 4 * float(losses.std()) / tokens**0.5
    assert float(losses.mean()) == pytest.approx(direct, abs=tolerance)
    best = top_k(probability[None], count)
    biased = -float((best.probabilities * logs[best.words]).sum())
    assert abs(biased - direct) > 3 * tolerance
    torch.testing.assert_close(chosen.probabilities, probability[chosen.words])


def test_draws_follow_from_the_seed(tmp_path: Path, corpus: Corpus) -> None:
    model = make_teacher(corpus)
    drawn = {}
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_soft_labels(
            model, corpus, tmp_path / name, method="sampled", count=6, seed=seed, quiet=True
        )
        labels = SoftLabels.open(tmp_path / name)
        drawn[name] = labels.windows([0], labels.settings.tokens)
    assert np.array_equal(drawn["a"].words, drawn["b"].words)
    assert (drawn["a"].words != drawn["c"].words).mean() > 0.1
    assert (drawn["a"].weights == np.float32(1 / 6)).all()
    # Tokens do not share their random number: none would explain the draws of all of them.
    expected = whole_distribution(model, corpus).double()
    words, place = torch.from_numpy(drawn["a"].words[0]), torch.arange(6)
    upper = 6 * expected.cumsum(1).gather(1, words) - place
    lower = upper - 6 * expected.gather(1, words)
    assert bool((lower.amax(1) < upper.amin(1) + 1e-4).all())
    assert float(lower.max()) > float(upper.min()) + 0.5


def test_a_word_that_is_drawn_twice_covers_its_mass_once() -> None:
    words = torch.tensor([[3, 1, 3], [2, 2, 2]])
    probabilities = torch.tensor([[0.5, 0.2, 0.5], [0.1, 0.1, 0.1]])
    torch.testing.assert_close(covered(Chosen(words, probabilities)), torch.tensor([0.7, 0.1]))


def test_fingerprints_tell_teachers_apart(corpus: Corpus) -> None:
    one = make_teacher(corpus, 50)
    assert fingerprint_of(one) == fingerprint_of(make_teacher(corpus, 50))
    seen = {fingerprint_of(one), fingerprint_of(make_teacher(corpus)), ""}
    seen.add(fingerprint_of(make_teacher(corpus, 60)))  # the same weights with a larger cache
    ramped = make_teacher(corpus, 50)
    assert ramped.cache is not None
    ramped.cache.given_ramp = 20
    seen.add(fingerprint_of(ramped))
    with torch.no_grad():
        one.tables[1][3, 2] += 1e-6
    seen.add(fingerprint_of(one))
    heads = merge_recipe(tiny_recipe(corpus), {"model.heads": 4, "model.key_width": 4})
    heads = merge_recipe(heads, {"model.value_width": 4})
    assert len(seen) == 6
    other = LanguageModel(heads.model, CacheConfig(size=50))
    assert fingerprint_of(other) not in seen


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, corpus: Corpus, teacher: LanguageModel) -> Path:
    write_soft_labels(teacher, corpus, tmp_path / "labels", count=8, shard_tokens=1500, quiet=True)
    return tmp_path / "labels"


def test_labels_of_another_text_are_refused(folder: Path, corpus: Corpus, tmp_path: Path) -> None:
    labels = SoftLabels.open(folder)
    labels.check_corpus(corpus)
    text = Path(corpus.manifest.source).read_text("utf-8")

    def built(name: str, changed: str, max_vocabulary: int | None = None) -> Corpus:
        file = tmp_path / f"{name}.txt"
        file.write_text(changed, encoding="utf-8")
        out = tmp_path / name
        return build_corpus(
            str(file),
            out,
            tokenizer="wikitext",
            min_count=1,
            split=(0.8, 0.1, 0.1),
            max_vocabulary=max_vocabulary,
        )

    lines = text.splitlines(keepends=True)
    swapped = "".join([lines[1], lines[0], *lines[2:]])
    assert lines[0] != lines[1]
    for other, said in (
        (built("words", text, max_vocabulary=150), "have another vocabulary: .* has 150"),
        (built("length", text + lines[0] * 20), "have another length: "),
        (built("order", swapped), "are of another corpus"),
    ):
        with pytest.raises(LabelsError, match=said):
            labels.check_corpus(other)


def test_labels_that_are_shifted_are_refused(folder: Path, corpus: Corpus) -> None:
    """Manifest and records are right; only the labels stand beside the wrong tokens."""
    for file in folder.glob("*.ids.npy"):
        array = np.load(file)
        np.save(file, np.roll(array, 1, axis=0))
        record = folder / f"{file.name.split('.')[0]}.json"
        told = json.loads(record.read_text())
        told["sha256"]["ids"] = hashlib.sha256(file.read_bytes()).hexdigest()
        record.write_text(json.dumps(told))
    labels = SoftLabels.open(folder)
    with pytest.raises(LabelsError, match="belong to other tokens"):
        labels.check_corpus(corpus)


def test_a_recipe_must_ask_for_the_labels_there_are(folder: Path) -> None:
    labels = SoftLabels.open(folder)
    labels.check_recipe(DistillConfig(top_k=8))
    labels.check_recipe(DistillConfig(top_k=3))
    for config, said in (
        (DistillConfig(top_k=9), "are the top 8 words, but the recipe needs the top 9"),
        (DistillConfig(method="sampled", samples=8), "the recipe needs the 8 sampled"),
    ):
        with pytest.raises(LabelsError, match=said):
            labels.check_recipe(config)


def test_sampled_labels_are_used_whole(
    tmp_path: Path, corpus: Corpus, teacher: LanguageModel
) -> None:
    write_soft_labels(teacher, corpus, tmp_path / "s", method="sampled", count=6, quiet=True)
    labels = SoftLabels.open(tmp_path / "s")
    labels.check_recipe(DistillConfig(method="sampled", samples=6))
    # Some of evenly spaced draws would be the ones of frequent words only.
    with pytest.raises(LabelsError, match=r"are the 6 sampled words, but .* the 5 sampled"):
        labels.check_recipe(DistillConfig(method="sampled", samples=5))


def test_what_is_not_whole_is_refused(folder: Path, tmp_path: Path) -> None:
    def broken(name: str) -> Path:
        return Path(shutil.copytree(folder, tmp_path / name))

    cut = broken("cut")
    os.truncate(cut / "00001.probabilities.npy", 1000)
    gone = broken("gone")
    (gone / "00002.ids.npy").unlink()
    other = broken("other")
    np.save(other / "00000.ids.npy", np.load(other / "00000.ids.npy").astype(np.uint16))
    begun = broken("begun")
    Manifest(settings=Manifest.load(begun).settings, summary=None).save(begun)
    odd = broken("odd")
    record = json.loads((odd / "manifest.json").read_text())
    record["settings"]["count"] = "8"
    (odd / "manifest.json").write_text(json.dumps(record))
    noise = broken("noise")
    (noise / "manifest.json").write_text("{")
    for path, said in (
        (cut, "00001.probabilities.npy does not match its manifest"),
        (gone, r"00002.ids.npy does not match its manifest \(missing\)"),
        (other, "00000.ids.npy does not match its manifest .not 1,500 x 8 values of type uint8"),
        (begun, "are incomplete"),
        (odd, "settings.count: input should be a valid integer"),
        (noise, "manifest.json is damaged"),
        (tmp_path, "has no soft labels"),
        (tmp_path / "nowhere", "has no soft labels"),
    ):
        with pytest.raises(LabelsError, match=said) as caught:
            SoftLabels.open(path)
        assert "\n" not in str(caught.value)


def test_no_changed_bit_of_the_records_is_called_whole(folder: Path) -> None:
    """Numbers of a record or of the manifest could change: only the arrays were compared."""
    SoftLabels.open(folder).check_hashes()
    for name in ("manifest.json", "00000.json"):
        whole = (folder / name).read_bytes()
        for place in range(len(whole)):
            spoiled = bytearray(whole)
            spoiled[place] ^= 1 << place % 3
            (folder / name).write_bytes(spoiled)
            try:
                SoftLabels.open(folder).check_hashes()
            except LabelsError:
                continue
            assert spoiled.decode().split() == whole.decode().split()
        (folder / name).write_bytes(whole)


@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize("name", ["manifest.json", "00000.json"])
@pytest.mark.parametrize("how", SPOILED)
def test_spoiled_records_are_refused_in_a_sentence(folder: Path, name: str, how: str) -> None:
    """A pipe in the place of a shard's record was waited for, and of two values one was taken."""
    spoil(folder / name, how)
    with pytest.raises((LabelsError, OSError), match=f"{name}") as caught:
        SoftLabels.open(folder).check_hashes()
    assert SPOILED[how].removeprefix("it ") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_belongs_to_one_teacher_and_one_kind(
    folder: Path, corpus: Corpus, teacher: LanguageModel, tmp_path: Path
) -> None:
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    same = {"count": 8, "shard_tokens": 1500, "quiet": True}
    again = write_soft_labels(teacher, corpus, folder, **same)  # type: ignore[arg-type]
    assert again.tokens_per_second == 0  # there was nothing to do
    assert again.mass == pytest.approx(SoftLabels.open(folder).summary.mass / again.tokens)
    with pytest.raises(LabelsError, match=r"with another count \(8, not 9\)"):
        write_soft_labels(teacher, corpus, folder, **{**same, "count": 9})  # type: ignore[arg-type]
    with pytest.raises(LabelsError, match="with another teacher"):
        write_soft_labels(make_teacher(corpus, 9), corpus, folder, **same)  # type: ignore[arg-type]
    with pytest.raises(LabelsError, match="with another method, count"):
        write_soft_labels(teacher, corpus, folder, method="sampled", count=3, shard_tokens=1500)
    with locked(folder), pytest.raises(LabelsError, match="another process is writing"):
        write_soft_labels(teacher, corpus, folder, **same)  # type: ignore[arg-type]
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "letter.txt").write_text("dear")
    with pytest.raises(LabelsError, match=r"contains 'letter.txt', which is not part"):
        write_soft_labels(teacher, corpus, foreign)
    with pytest.raises(LabelsError, match="is a file"):
        write_soft_labels(teacher, corpus, foreign / "letter.txt")
    with pytest.raises(UsageError, match=r"at most the 1\d\d words of the corpus, got 5,000"):
        write_soft_labels(teacher, corpus, tmp_path / "never", count=5000)
    assert not (tmp_path / "never").exists()


def test_the_teacher_is_given_back_as_it_was(corpus: Corpus, tmp_path: Path) -> None:
    model = make_teacher(corpus).train()
    write_soft_labels(model, corpus, tmp_path / "labels", count=3, quiet=True)
    assert model.training
