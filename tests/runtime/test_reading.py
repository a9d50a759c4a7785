"""Text as people type it: pieces, white space, line ends, and words on a screen."""

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import micronet_lm as mn
from micronet_lm.corpus.tokenizers import TOKENIZERS, tokenizer
from micronet_lm.errors import InferenceError
from micronet_lm.runtime.model import LM
from micronet_lm.runtime.reading import Place, Reader

TEXT = (
    'Return a new, "empty" list (or None) of\r\n 1,000.5 items.\n\n'
    "It isn't f(x) ... 中文 と cafe\u0301 "
)


@pytest.fixture(scope="module")
def lm() -> LM:
    return mn.load()


def read(name: str, pieces: list[str]) -> list[str]:
    reader = Reader(tokenizer(name))
    return [token for piece in pieces for token in reader.take(piece)] + reader.close()


@pytest.mark.parametrize("name", TOKENIZERS)
def test_the_tokens_do_not_depend_on_the_pieces(name: str) -> None:
    whole = read(name, [TEXT])
    assert read(name, list(TEXT)) == whole
    for cut in range(len(TEXT)):
        assert read(name, [TEXT[:cut], TEXT[cut:]]) == whole


@example("wikitext", ["\t", "\ufeff"])
@example("word-2", [" ", "中"])
@given(
    st.sampled_from(TOKENIZERS),
    st.lists(st.text(" \n\r\tab9'.,(<unk>\u0301中か\ufeff￭", max_size=8), max_size=8),
)
def test_any_text_in_any_pieces(name: str, pieces: list[str]) -> None:
    whole = "".join(pieces)
    assert read(name, pieces) == read(name, [whole])
    # What is open is what the text would be if it ended here.
    reader, settled = Reader(tokenizer(name)), []
    for number, piece in enumerate(pieces):
        settled += reader.take(piece)
        assert settled + reader.open() == read(name, ["".join(pieces[: number + 1])])


def test_white_space_around_a_text_changes_nothing(lm: LM) -> None:
    for text in ("Return a new", "Return a new,", "the first (and"):
        expected = lm.top_k(text, 5)
        for typed in (f"{text} ", f" {text}", f"\t{text}  ", f"\ufeff{text} "):
            assert lm.top_k(typed, 5) == expected
            assert lm.top_k(typed, 5, special=True) == lm.top_k(text, 5, special=True)
            assert lm.score(typed) == lm.score(text)
    state = lm.start()
    state.feed("Return a new")
    state.feed(", ")
    assert state.top_k(5) == lm.top_k("Return a new,", 5)


def test_a_prediction_does_not_depend_on_the_pieces(lm: LM) -> None:
    text = 'Return the "first" item (or None), if there is\n one. '
    expected = lm.top_k(text, 4)
    for pieces in (list(text), [text[:10], text[10:]], text.split("e")):
        state = lm.start()
        for number, piece in enumerate(pieces):
            state.feed("e" * (number > 0 and len(pieces) == text.count("e") + 1) + piece)
        assert state.top_k(4) == expected
        assert state.tokens == len(lm.encoder.tokens(text))


def test_asking_in_between_changes_nothing(lm: LM) -> None:
    asked, quiet = lm.start(), lm.start()
    for sign in "Return a new string.":
        asked.feed(sign)
        asked.suggest(3)
        asked.distribution()
        quiet.feed(sign)
    assert asked.top_k(5) == quiet.top_k(5)


def test_words_and_text_take_turns(lm: LM) -> None:
    state = lm.start()
    state.feed("Return")
    state.feed_words(["a"])
    state.feed("new")  # a word begins after words
    state.feed_words([","])
    assert state.top_k(5) == lm.top_k("Return a new,", 5)


def test_a_saved_state_keeps_half_a_word(lm: LM) -> None:
    state = lm.start()
    state.feed("Return a n")
    other = lm.restore(state.save())
    other.feed("ew")
    state.restore(state.save())
    state.feed("ew")
    assert other.top_k(3) == state.top_k(3) == lm.top_k("Return a new", 3)
    saved = state.save()
    for damaged in (
        b"",
        b"x" + saved,
        saved[:20],
        saved[:-9],
        saved.replace(b'"begins"', b'"begun"'),
    ):
        with pytest.raises(InferenceError):
            lm.restore(damaged)
    for place in range(len(saved)):
        flipped = bytearray(saved)
        flipped[place] ^= 1 << place % 8
        with pytest.raises(InferenceError):
            lm.restore(bytes(flipped))
    with pytest.raises(InferenceError, match="damaged"):
        Place.from_json('{"pending": 3}')
    with pytest.raises(InferenceError, match="damaged"):  # the second was taken
        Place.from_json('{"pending": "a", "pending": "b"}')


def test_a_state_that_was_saved_without_a_checksum_is_read(lm: LM) -> None:
    state = lm.start()
    state.feed("Return a n")
    saved = state.save()
    old = b"micronet state 1\n" + saved[len(b"micronet state 2\n") + 8 :]
    assert lm.restore(old).top_k(3) == state.top_k(3)
    assert lm.restore(old).save() == saved


def test_suggestions_can_be_put_on_a_screen(lm: LM) -> None:
    texts = ["", "Return", "Return a", 'the "', "f(", "was", "will", "x = ", "the list.\n", "¿"]
    for text in texts:
        found = lm.top_k(text, 10)
        assert len(found) == 10
        for word, chance in found:
            assert word not in {"<unk>", "<eos>"}
            assert "￭" not in word
            assert 0 < chance < 1
        chances = [chance for _, chance in found]
        assert chances == sorted(chances, reverse=True)
        assert len({word for word, _ in found}) == 10


def test_a_words_probability_is_that_of_all_tokens_that_look_like_it(lm: LM) -> None:
    state = lm.start()
    state.feed('he says "')
    tokens = dict(state.top_k(len(lm.vocabulary), special=True))
    for word, chance in state.top_k(20):
        shown = [t for t in (word, "￭" + word) if t in tokens and lm.screen.fits('"', t)]
        assert chance == pytest.approx(sum(tokens[token] for token in shown), rel=1e-4)
    best = {word for word, _ in state.top_k(20)}
    least = state.top_k(20)[-1].probability
    for token, chance in tokens.items():  # nothing likelier was left out
        if chance > least * 1.001 and lm.screen.looks(token) and lm.screen.fits('"', token):
            assert lm.screen.looks(token) in best


@pytest.mark.parametrize("temperature", [0.0, 0.8, 1.5])
def test_what_is_written_is_read_as_it_was_written(lm: LM, temperature: float) -> None:
    for seed in range(3):
        state = lm.start()
        state.feed("The value was ")
        tokens = list(state.fork().write(120, temperature, seed=seed, special=True))
        assert len(tokens) == 120
        text = "".join(state.write(120, temperature, seed=seed))
        assert not text.startswith(" ")  # the space is there already
        assert "<unk>" not in text
        assert "￭" not in text
        read_again = lm.encoder.tokens("The value was " + text)
        pairs = itertools.pairwise(read_again)
        assert all(lm.screen.fits(before, token) for before, token in pairs)
        # Pairs fit, so that nothing is glued: the number of tokens is the one that was written.
        assert len(read_again) - 3 >= 118


def test_glued_words_do_not_fit(lm: LM) -> None:
    assert not lm.screen.fits("was", "￭None")
    assert not lm.screen.fits("will", "￭called")
    assert lm.screen.fits('"', "￭None")
    assert lm.screen.fits("f", "￭(")
    assert lm.screen.fits("", "Return")


def test_completion_knows_capitals(lm: LM) -> None:
    assert "Return" in [word for word, _ in lm.complete("", "ret")]
    assert "RETURN" in [word for word, _ in lm.complete("it will", "RETU", 3)]
    assert all(word.startswith("Ret") for word, _ in lm.complete("it will", "Ret"))
    assert lm.suggest("Return a ne")[0].word == "new"
    assert lm.suggest("Return a new ") == lm.top_k("Return a new", 3)
    assert lm.suggest("") == lm.top_k("", 3)
    tokens = [word for word, _ in lm.complete("", "ret", special=True)]
    assert all(word.startswith("ret") for word in tokens)


def test_line_ends_and_marks_of_other_systems(lm: LM) -> None:
    text = "Return a new string.\nThe list is empty.\n"
    for other in (text.replace("\n", "\r\n"), text.replace("\n", "\r"), "\ufeff" + text):
        assert lm.perplexity(other) == lm.perplexity(text)


def test_scores_tell_how_much_is_unknown(lm: LM) -> None:
    text = "Return a new string."
    assert lm.perplexity(text).unknown_share == 0
    assert lm.score(text).perplexity == pytest.approx(lm.perplexity(text), rel=1e-5)
    garbage = "qwx zzyk pfft return blorb"
    with pytest.warns(mn.UnknownWordsWarning, match="are not in the model's vocabulary"):
        perplexity = lm.perplexity(garbage)
    assert perplexity.unknown_share == 3 / 4
    for call in (
        lm.score,
        lambda text: lm.score_batch([text])[0],
        lambda t: lm.score_lines([t])[0],
    ):
        with pytest.warns(mn.UnknownWordsWarning):
            assert call(garbage).unknown_share >= 0.6


def test_lines_are_scored_on_their_own(lm: LM) -> None:
    lines = ["Return a new string.", "list", ""]
    scored = lm.score_lines(lines, threads=2)
    assert [own.text for own in scored] == lines
    assert [own.tokens for own in scored] == [6, 2, 1]
    own = lm.score("\nReturn a new string.\n")
    assert scored[0].log_probability == pytest.approx(own.log_probability, abs=1e-4)
    assert scored[0].perplexity == pytest.approx(own.perplexity, rel=1e-4)
    for wrong, said in ((["a\nb"], "line 0"), ("a b", "got one text")):
        with pytest.raises(InferenceError, match=said):
            lm.score_lines(wrong)
    with pytest.raises(InferenceError, match="text 1 has 1 tokens"):
        lm.score_batch(["Return a new", "list"])
    with pytest.raises(InferenceError, match="got one text"):
        lm.score_batch("Return a new")
