# SPDX-License-Identifier: Apache-2.0
"""Token ids of difficult lines, by transformers' BertTokenizer: vocab.txt, text.txt, ids.txt.

    python3 tests/reference/wordpiece.py [--seed N] OUT_DIR

Needs transformers and tokenizers. Beside the lines below, the text has lines of random characters: those of
Unicode 3.2, since the tables of younger ones differ between releases of the reference itself.
"""

import argparse
import pathlib
import random
import unicodedata

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import BertTokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LINES = [
    "The quick brown fox jumps over the lazy dog , and the dogs are jumping quickly .",
    " = Robert Boulter = ",
    "Senjō no Valkyria 3 : <unk> Chronicles ( Japanese : 戦場のヴァルキュリア3 , lit . Valkyria of the Battlefield 3 )",
    "It cost $ 1 @,@ 234 @.@ 50 — a 20 @-@ year low — or so `they' said ; see [1]^2 ~ {x|y} #hash C++ _under_score_",
    "ÀÉÎÕÜ àéîõü Ångström naïve façade Ærøskøbing Straße ŁÓDŹ İstanbul ıssız Ǆ ǅ ﬁnance ½ ² Ω Å K",
    "e\u0301 cafe\u0301 A\u030A q\u0307\u0323 \u1E69 s\u0323\u0307 ΑΣ ΌΣΟΣ Ἀθῆναι ϓ",
    "ภาษาไทย हिन्दी தமிழ் বাংলা עִבְרִית العَرَبِيَّة 한국어 조선말 \u1112\u1161\u11ab",
    "漢字かな交じり文。「カギ括弧」、中文，標點！ \uF900\uFA0E \U00020000\U0002F800 ㈱ ｆｕｌｌｗｉｄｔｈ",
    "tab\tseparated\u00a0no-break\u2003em\u2028line\u2029paragraph\u3000ideographic \u1680 ogham\rreturn",
    "con\u0000trol \u0007bell \u001bescape \u007fdelete \u0085next soft\u00adhyphen zero\u200bwidth \u200e\u202bmarks\u202c \ufeffbom \ufffdbad pri\ue000vate",
    "emoji 😀😃 👍🏽 👩‍💻 🏳️‍🌈 ❤️ ☃ 🇩🇪 end 😀word word😀",
    "©®™ § ¶ † ‡ • … ‰ ′ ″ ‹ › « » ¡ ¿ ‐ – — ― ‘ ’ “ ” ‚ „ ÷ × ± ∑ √ ∞ ≈ ≠ € £ ¥ ¤ \u037e \u1fef \u2000",
    "a" * 100 + " " + "a" * 101 + " " + "é" * 100 + " " + "e\u0301" * 101 + " " + "漢" * 120 + " " + "x" * 300,
    "supercalifragilisticexpialidocious antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    "don't can't won't it's o'clock rock'n'roll e-mail co-operate U.S.A. www.example.org/path?q=1&r=2 a@b.c 3.14 1,000",
    "\U0001D400\U0001D7CE \U00010400 \U000E0041tag \U000F0000plane15",
]
LEFT_OUT = set("😃☃®∑")  # so that some characters are unknown


def random_lines(seed, count=60):
    draw = random.Random(seed)
    old = unicodedata.ucd_3_2_0
    known = [c for c in map(chr, range(0x110000)) if old.category(c) not in ("Cn", "Cs") and c != "\n"]
    by_category = {}
    for c in known:
        by_category.setdefault(old.category(c), []).append(c)
    lines = []
    for _ in range(count):
        line = ""
        for _ in range(24):
            kind = draw.choice(sorted(by_category))
            line += draw.choice(["a", "to", " ", ""]) + draw.choice(by_category[kind])
        lines.append(line)
    return lines


def vocabulary(lines):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=120, min_frequency=1, special_tokens=[], limit_alphabet=30)
    tokenizer.train_from_iterator(lines[: len(LINES)], trainer)
    pieces = set(tokenizer.get_vocab())
    for line in lines:
        characters = set(tokenizer.normalizer.normalize_str(line)) - LEFT_OUT
        pieces |= {c for c in characters if not c.isspace()} | {"##" + c for c in characters if c.isalnum()}
    return SPECIAL + sorted(piece for piece in pieces if not set(piece) & LEFT_OUT)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    lines = LINES + random_lines(arguments.seed)
    tokens = vocabulary(lines)
    vocab = arguments.out / "vocab.txt"
    vocab.write_bytes("".join(token + "\n" for token in tokens).encode())
    tokenizer = BertTokenizer(vocab={token: i for i, token in enumerate(tokens)})
    ids = [tokenizer.encode(line, add_special_tokens=False) for line in lines]
    (arguments.out / "text.txt").write_bytes("".join(line + "\n" for line in lines).encode())
    (arguments.out / "ids.txt").write_text("".join(" ".join(map(str, row)) + "\n" for row in ids))


if __name__ == "__main__":
    main()
