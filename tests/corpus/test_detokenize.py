"""WikiText's tokens as people write."""

import pytest

from micronet_lm.corpus.detokenize import detokenize


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (" In 1905 , he did n't know . ", "In 1905, he didn't know."),
        ("It didn 't matter ( much ) !", "It didn't matter (much)!"),
        ("a well @-@ known 1 @,@ 000 @.@ 5 m race", "a well-known 1,000.5 m race"),
        ('he said " yes " , " no "', 'he said "yes", "no"'),
        ("the players ' own ' idea '", "the players' own 'idea'"),
        ("it cost $ 5 – £ 6 or 50 % : 7 : 30", "it cost $5 – £6 or 50%: 7:30"),
        ("from 1990 – 95 – a decade — and / or", "from 1990–95 – a decade—and/or"),
        (" = = Early life = = ", "Early life"),
        (" = Title = ", "Title"),
        ("x = 5", "x = 5"),
        (" <unk> , <unk> 's ", "<unk>, <unk>'s"),
        (" \n \n a . \n", "\n\na.\n"),
    ],
)
def test_spacing_is_put_back(tokens: str, text: str) -> None:
    assert detokenize(tokens) == text
