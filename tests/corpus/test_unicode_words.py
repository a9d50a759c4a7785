"""Version 2 of the tokenizer `word`: Unicode's word boundaries, and nothing lost."""

import re
import unicodedata

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from micronet_lm.corpus import scripts, tokenizer

word = tokenizer("word-2")

# Text rich in what the tokenizer treats specially, and any other text.
special = st.text(
    alphabet=st.sampled_from(" \n\t\u00a0￭ab_9'’.,;:!?()[]{}%=-\"<>é中文かカสั\u0301\u200d👍🇩¿»٣א"),
    max_size=60,
)
anything = special | st.text(max_size=60)


def plain(text: str) -> str:
    """The text as the contract gives it back: normal form C, simple space, none at line ends."""
    spaced = re.sub(r"[^\S\n]+", " ", unicodedata.normalize("NFC", text))
    return "\n".join(line.strip(" ") for line in spaced.split("\n"))


@given(anything)
@example("( a")
@example(" \n \n( \n")
@example("￭ ￭￭a￭.￭ ")
@example("中 文 a中 b")
@example("<unk><unk> a<unk>")
def test_the_text_comes_back(text: str) -> None:
    assert word.join(word.tokens(text)) == plain(text)
    assert word.tokens(text) == word.tokens(plain(text))


@given(anything)
def test_tokens_are_never_empty_and_hold_no_white_space(text: str) -> None:
    tokens = word.tokens(text)
    assert all(token and not any(map(str.isspace, token)) for token in tokens)
    assert tokens.count("<eos>") == text.count("\n")
    assert "￭" not in tokens  # no lone mark: nobody typed such a token


@given(anything, anything)
def test_lines_are_independent(first: str, second: str) -> None:
    together = word.tokens(f"{first}\n{second}")
    assert together == word.tokens(first + "\n") + word.tokens(second)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ('f(x) is "good", isn\'t it?', 'f ￭( x ) is " ￭good ￭" , isn\'t it ?'),
        ("It cost 1,000.50 dollars.", "It cost 1,000.50 dollars ."),
        ("snake_case __init__ x86 3rd", "snake_case __init__ x86 3rd"),
        ("os.path.join 3.11.7", "os . ￭path . ￭join 3.11.7"),
        ("wait... what?!", "wait ... what ? !"),
        ("a , b", "a ￭, b"),
        ("[ a ]", "[ ￭a ￭]"),
        ("well-known", "well ￭- ￭known"),
        (" a\n b ", "a <eos> b"),
        ("<eos> <unk> a<unk>", "< ￭eos ￭> <unk> a ￭<unk>"),
        ("￭ a￭￭", "￭￭ a ￭￭￭ ￭￭￭"),
        ("“Hello,” he said…", "“ Hello , ” he said …"),
        # Marks belong to their letter, composed or not.
        ("cafe\u0301", "café"),
        ("नमस्ते दुनिया", "नमस्ते दुनिया"),
        ("ที่นี่", "ที่ นี่"),
        # Scripts without spaces: one character with its marks, and no marks of spacing.
        ("我用Python写代码。你好！", "我 用 Python 写 代 码 。 你 好 ！"),
        ("カタカナとひらがな", "カタカナ と ひ ら が な"),
        ("한국어 띄어쓰기", "한국어 띄어쓰기"),
        ("中 文", "中 ￭文"),
        ('צה"ל', 'צה"ל'),
        ("👨\u200d👩\u200d👧 🇩🇪🇫🇷 👍🏽", "👨\u200d👩\u200d👧 🇩🇪 ￭🇫🇷 👍🏽"),
        ("", ""),
    ],
)
def test_tokens(text: str, tokens: str) -> None:
    assert word.tokens(text) == tokens.split()


TEXTS = [
    "The quick brown fox can't jump 32.3 feet, right?",
    "Où est l'école d’été ? Ça va bien.",
    "Der Fluß heißt Elbe und ist 1.094,26 km lang.",
    "Привет, мир! Как твои дела?",
    "नमस्ते दुनिया, आप कैसे हैं",
    "สวัสดีชาวโลก",
    "مرحبا بالعالم، كيف حالك؟",
    "안녕하세요 세계",
    "我喜欢学习语言。",
    "これはペンです。カタカナもある。",
    "tiếng Việt có dấu",
    "ខ្ញុំស្រឡាញ់ភាសាខ្មែរ",
    "e\u0301te\u0301 man\u0303ana",
]


@pytest.mark.parametrize("text", TEXTS)
def test_words_end_where_unicode_says(text: str) -> None:
    """An independent implementation of UAX #29 on texts that our own rules do not touch."""
    text = unicodedata.normalize("NFC", text)
    expected = [part for part in regex.split(r"(?w)\b", text) if part.strip()]
    found = [token.removeprefix("￭") for token in word.tokens(text)]
    assert found == expected


def test_marks_are_unicode_s() -> None:
    """The written-out ranges against Python's own tables, as far as this Python knows them."""
    marks = re.compile(f"[{scripts.MARKS}]")
    for number in range(0x110000):
        sign = chr(number)
        category = unicodedata.category(sign)
        if category[0] == "M":
            assert marks.match(sign), hex(number)
        elif category not in {"Cn", "Co", "Cf", "Sk"}:
            assert not marks.match(sign), hex(number)


@given(anything, anything)
@example("中", "\u0301")
@example("a\r", "\nb")
def test_what_is_settled_stays(text: str, more: str) -> None:
    cut = word.settled(text)
    head = text[:cut].rstrip() + "\n" * text[:cut].endswith("\n") if cut else ""
    tokens = word.tokens(head)
    assert word.tokens(text + more)[: len(tokens)] == tokens
