import re
import sys
import tracemalloc
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from micronet_lm.config import CorpusConfig
from micronet_lm.corpus import tokenizer
from micronet_lm.corpus.memo import LONGEST, Memo
from micronet_lm.corpus.tokenizers import NEWEST, TOKENIZERS, newest_tokenizer
from micronet_lm.corpus.unicode_words import UnicodeWordTokenizer
from micronet_lm.corpus.words import WordTokenizer
from micronet_lm.errors import UsageError

word = tokenizer("word")
wikitext = tokenizer("wikitext")

# Text rich in what the tokenizer treats specially, and any other text.
special = st.text(
    alphabet=st.sampled_from(" \n\t\u00a0￭ab_9'’.,;:!?()[]{}%=-\"<>é中٣"), max_size=60
)
anything = special | st.text(max_size=60)


def with_simple_space(text: str) -> str:
    """The text with every run of other white space as one space, as the contract has it."""
    return re.sub(r"[^\S\n]+", " ", text)


@given(anything)
@example("( a")
@example(" \n \n( \n")
@example("￭ ￭￭a￭.￭ ")
@example("1.5.x 1,000.25 3rd x1 12.5px")
def test_word_gives_the_text_back(text: str) -> None:
    plain = with_simple_space(text)
    assert word.join(word.tokens(plain)) == plain
    assert word.tokens(text) == word.tokens(plain)


@given(anything)
def test_word_tokens_are_never_empty_and_hold_no_white_space(text: str) -> None:
    tokens = word.tokens(text)
    assert all(token and not any(map(str.isspace, token)) for token in tokens)
    assert tokens.count("<eos>") == text.count("\n")
    assert "<unk>" not in tokens


@given(anything, anything)
def test_word_lines_are_independent(first: str, second: str) -> None:
    # Blocks of lines are tokenized apart: where they are cut must not matter.
    together = word.tokens(f"{first}\n{second}")
    assert together == word.tokens(first + "\n") + word.tokens(second)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ('f(x) is "good", isn\'t it?', 'f ￭( x ) is " ￭good ￭" , isn\'t it ?'),
        ("It cost 1,000.50 dollars.", "It cost 1,000.50 dollars ."),
        ("snake_case __init__ x86 3rd", "snake_case __init__ x86 3rd"),
        ("wait... what?!", "wait ... what ? !"),
        ("a , b", "a ￭, b"),
        ("[ a ]", "[ ￭a ￭]"),
        ("well-known", "well ￭- ￭known"),
        ("==== a==b", "==== a ￭== ￭b"),
        ("50% off", "50 % off"),
        ("Case CASE case", "Case CASE case"),
        (" a\n b ", "￭a <eos> ￭b ￭"),
        ("<eos> <unk>", "< ￭eos ￭> < ￭unk ￭>"),
        ("￭ a￭￭", "￭￭ a ￭￭￭ ￭￭￭"),
        ("", ""),
    ],
)
def test_word_tokens(text: str, tokens: str) -> None:
    assert word.tokens(text) == tokens.split()


def test_word_joins_what_a_model_writes() -> None:
    # Words that no tokenizing would give in this order still have a spelling.
    assert word.join(["The", "<unk>", "￭", "(", "<unk>", ")", ".", "<eos>", "￭"]) == (
        "The <unk>  (<unk>).\n "
    )


@pytest.mark.parametrize("kind", [WordTokenizer, UnicodeWordTokenizer])
def test_what_is_remembered_is_bounded_in_bytes(kind: type[WordTokenizer]) -> None:
    """The limit was a million pieces of text, however long they were."""
    fresh = kind()
    memo: Memo[object] = next(v for v in vars(fresh).values() if isinstance(v, Memo))
    memo._budget = memo._left = 1 << 20
    for number in range(300):
        text = " ".join(f"word{number}x{other}" for other in range(100))
        assert fresh.join(fresh.tokens(text)) == text
        assert 0 < sum(map(sys.getsizeof, memo)) <= 1 << 20
    fresh.tokens("x" * (1 << 20))
    assert max(map(len, memo)) <= LONGEST


@pytest.mark.parametrize("text", ["(" * 200_000, "([{" * 30_000, "x" * 200_000])
def test_one_word_or_brackets_take_memory_in_proportion(text: str) -> None:
    """Brackets took 106 bytes each in the regular expression alone."""
    for one in (WordTokenizer(), UnicodeWordTokenizer()):
        tracemalloc.start()
        tokens = one.tokens(text)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 64 * len(text) + (1 << 20)
        assert one.join(tokens) == text


def test_wikitext_splits_at_white_space() -> None:
    tokens = wikitext.tokens(" = Title = \n \n a\tb\u00a0c <unk>\n")
    assert tokens == ["=", "Title", "=", "<eos>", "<eos>", "a", "b", "c", "<unk>", "<eos>"]
    assert wikitext.tokens("no line end") == ["no", "line", "end"]


def test_wikitext_joins_with_spaces_and_newlines() -> None:
    assert wikitext.join(["a", "b", "<eos>", "<eos>", "x<eos>y", "<eos>"]) == "a b\n\nx<eos>y\n"


@given(st.lists(st.lists(st.text("ab.<", min_size=1)), min_size=1))
def test_wikitext_gives_the_text_back(lines: list[list[str]]) -> None:
    text = "\n".join(map(" ".join, lines))
    assert wikitext.join(wikitext.tokens(text)) == text


def test_unknown_tokenizer() -> None:
    with pytest.raises(UsageError, match=r"no tokenizer 'bpe': choose one of wikitext, word"):
        newest_tokenizer("bpe")


def test_a_new_corpus_takes_the_newest_version() -> None:
    assert newest_tokenizer("word").name == "word-2"
    assert set(NEWEST.values()) <= set(TOKENIZERS)
    (field,) = (CorpusConfig.model_fields["tokenizer"],)
    assert set(get_args(get_args(field.annotation)[0])) == set(NEWEST)  # a recipe knows them all


@pytest.mark.parametrize("name", TOKENIZERS)
@given(text=anything, more=anything)
def test_what_every_tokenizer_promises(name: str, text: str, more: str) -> None:
    chosen = tokenizer(name)
    tokens = chosen.tokens(text)
    assert all(token and not any(map(str.isspace, token)) for token in tokens)
    assert chosen.tokens(f"{text}\n{more}") == chosen.tokens(text + "\n") + chosen.tokens(more)
    together = [*tokens, *chosen.tokens(more)]
    assert chosen.join(together).startswith(chosen.join(tokens))


def test_the_last_break_before_a_very_long_word() -> None:
    """It is found by another way than one that is near."""
    word = "x" * 1000
    for before, place in (("one two ", 7), ("one\n", 4), ("日本", 1), ("", 0)):
        assert tokenizer("word-2").settled(before + word) == place
