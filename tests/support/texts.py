"""Texts that are hard to split: scripts, marks, joiners, spacing and line ends of all kinds."""

from hypothesis import strategies as st

SIGNS = (
    "aZ09_ '’\"“”‘«»().,;:!?…%-–—=*+/\\#@￭<>\t\n\r\u00a0\u2028\u3000\u0085\x1c\x00\ufeff"
    "éÉßİıΣσςΑάа́Жљאבגד\u05f4׳ابةى٠١٫٬हिन्दीதமிไทยลาวខ្មែរမြန်မာ中文日本語のカタカナーｶﾞ한국어각각"
    "①²½Ⅻⅻǅǆﬁŉ\u0345\u0301\u0308\u0323\u200d\u200c🏳️‍🌈👨‍👩‍👧🇩🇪🇫👍🏽\u1100\u1161\u11a8\U00011347\U0001d15e"
    "·\u0387\u2027\u055f＇。、「」！１２Ａ\U0001f200\U00020000"
)
"""One of everything that a rule of the tokenizers names."""

WORDS = [
    "Return a new",
    'f(x) is "good", isn\'t it?',
    "os.path.join",
    "1,000.5",
    "1.5a",
    "12a",
    "1.2.5a",
    "<unk>",
    "<eos>",
    "￭￭",
    "￭￭￭",
    "￭ ￭",
    "x ￭",
    "1990's",
    "e\u0301",
    "\u0301",
    "我喜欢",
    "カタカナ語",
    "ภาษาไทย",
    'ש"ע',
    "ש'",
    "''",
    "...",
    "==",
    "?!?!",
    "  two  spaces ",
    "trailing  ",
    "\r\n",
    "(",
    "( )",
    "[{",
]

hostile = st.lists(
    st.one_of(st.sampled_from(SIGNS), st.sampled_from(WORDS), st.sampled_from([" ", "\n", "  "])),
    max_size=24,
).map("".join)
"""Texts of signs and words that stand close together."""
