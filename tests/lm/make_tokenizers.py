#!/usr/bin/env python3
"""Makes tests/lm/data/tokenizers/*.json with the package `tokenizers` from PyPI: small tokenizers of each kind, and what it makes of
some texts. The test reads them; this script is only needed to make them anew.

With a number and the path of a program it compares many random texts instead: the program gets the path of a tokenizer.json, reads
lines of JSON strings and writes a line {"ids": …, "plain": …, "as_text": …, "decoded": …, "skipped": …} for each.
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

FOLDER = pathlib.Path(__file__).parent / "data" / "tokenizers"
SENTENCES = [
    "The library evaluates arrays when they are asked for, and not before.",
    "A command list owns everything it refers to until it has completed.",
    "she'll say it's what they've known; I'd rather not, and you're right",
    "for (int i = 0; i < 10; ++i) { total += values[i]; }",
    "    indented code\twith a tab\n\nand two lines",
    "1234567890 3.14159 2024-05-17 1,000,000",
    "Größe über Äpfel, naïve café, Ærø",
    "Привет мир, как дела?", "こんにちは世界、東京都", "안녕하세요 세계", "مرحبا بالعالم", "emoji 😀 🎉 👩‍👩‍👧",
]
NASTY = ["", " ", "   ", "\t", "\n\n", "\r\n", "😀", "👩‍👩‍👧‍👦", "e\u0301", "\u0301", "é", "ﬁ", "Å", "\u00a0", "\u3000", "\u200b", "ß", "İ", "Σ", "\u0000", "\u001f",
         "\ufffd", "\ufeff", "▁", "▁▁", "Ġ", "<s>", "</s>", "<|im_start|>", "<|im_end|>", "<0x41>", "[MASK]", "<unk>", "extra", "'s", "'LL", "don't",
         "１２３", "½", "٣", "①", "一二三", "한", "각", "\U00020000", "नि", "a" * 70, " " * 40, "1" * 20, "...", "!?", "—", "“q”", "$", "`", "x_y", "ſ", "\u2028",
         "\x85"]
CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
BYTES = pre_tokenizers.ByteLevel.alphabet()


def assigned(code):
    """A character that all versions of Unicode know, so that the versions of the two libraries do not matter."""
    return chr(code) if unicodedata.ucd_3_2_0.category(chr(code)) != "Cn" else "?"


def sample(words):
    kind = random.random()
    if kind < 0.2:
        return random.choice(SENTENCES)
    if kind < 0.5:
        return "".join(random.choice(NASTY) for _ in range(random.randint(0, 6)))
    if kind < 0.8:
        return "".join(random.choice([random.choice(words), random.choice(NASTY), " "]) for _ in range(random.randint(1, 16)))
    return "".join(assigned(random.choice([random.randint(32, 126), random.randint(0, 0x2FFF), random.randint(0x3000, 0xD7FF), random.randint(0x10000, 0x1FFFF)]))
                   for _ in range(random.randint(1, 20)))


def specials(normalized=False):
    return [AddedToken("<s>", special=True, normalized=normalized), AddedToken("</s>", special=True, normalized=normalized), AddedToken("<unk>", special=True),
            AddedToken("<|im_start|>", special=True, rstrip=True), AddedToken("<|im_end|>", special=True)]


def finish(tokenizer, trainer, has_template=True):
    tokenizer.train_from_iterator(SENTENCES * 3, trainer)
    tokenizer.add_tokens([AddedToken("extra", single_word=True), AddedToken("[MASK]", lstrip=True, normalized=False)])
    if has_template:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("<s>", "</s>")])
    return tokenizer


def bpe_trainer(size=420, **options):
    options.setdefault("special_tokens", specials())
    return trainers.BpeTrainer(vocab_size=size, show_progress=False, **options)


def make():
    made = {}
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.ByteLevel()
    tokenizer.decoder = decoders.ByteLevel()
    made["byte_level"] = finish(tokenizer, bpe_trainer(initial_alphabet=BYTES), has_template=False)

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    made["byte_level_prefix"] = finish(tokenizer, bpe_trainer(initial_alphabet=BYTES, special_tokens=specials(True)))

    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(CL100K), "isolated"),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    made["split_byte_level"] = finish(tokenizer, bpe_trainer(initial_alphabet=BYTES))

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    made["digits_byte_level"] = finish(tokenizer, bpe_trainer(initial_alphabet=BYTES))

    # As SentencePiece: tokens may cross the spaces between words here.
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.train_from_iterator(SENTENCES * 3, bpe_trainer(560, max_token_length=8, special_tokens=specials() + [f"<0x{i:02X}>" for i in range(256)]))
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    parts = json.loads(tokenizer.to_str())
    parts["added_tokens"] = [token for token in parts["added_tokens"] if not token["content"].startswith("<0x")]
    made["byte_fallback_across_words"] = Tokenizer.from_str(json.dumps(parts))
    # And here not, as in published models.
    crosses = lambda token: any(c == "▁" and token[i] != "▁" for i, c in enumerate(token[1:]))
    parts["model"]["merges"] = [pair for pair in parts["model"]["merges"] if not crosses("".join(pair))]
    made["byte_fallback"] = Tokenizer.from_str(json.dumps(parts))

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse()])
    made["fused_unknown"] = finish(tokenizer, bpe_trainer(200, limit_alphabet=60, max_token_length=8))

    for scheme in ("always", "first", "never"):
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=scheme != "never")
        tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
        trainer = trainers.UnigramTrainer(vocab_size=220, special_tokens=specials(), unk_token="<unk>", show_progress=False)
        made["unigram_" + scheme] = finish(tokenizer, trainer)

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=["[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False)
    tokenizer.train_from_iterator(SENTENCES * 3, trainer)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    made["word_piece"] = tokenizer

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents(), normalizers.Strip()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.Digits(False)])
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    tokenizer.train_from_iterator(SENTENCES * 3, trainers.WordPieceTrainer(vocab_size=240, special_tokens=["[UNK]"], show_progress=False))
    made["word_piece_accents"] = tokenizer

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("merged_with_next")])
    tokenizer.decoder = decoders.BPEDecoder("</w>")
    made["end_suffix"] = finish(tokenizer, bpe_trainer(320, end_of_word_suffix="</w>"))

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="@@"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(" ", "merged_with_previous"), pre_tokenizers.Split(Regex("[aeiou]+"), "removed"),
        pre_tokenizers.Split(Regex(r"\d"), "merged_with_previous", invert=True), pre_tokenizers.Split(Regex(r"\W\w"), "merged_with_next")])
    made["continuing_prefix"] = finish(tokenizer, bpe_trainer(320, continuing_subword_prefix="@@"))

    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.NFKD()
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("(?=[A-Z])"), "isolated")
    made["word_level"] = finish(tokenizer, trainers.WordLevelTrainer(vocab_size=200, special_tokens=specials(), show_progress=False))
    return made


def expected(tokenizer, text):
    tokenizer.encode_special_tokens = True
    as_text = tokenizer.encode(text, add_special_tokens=False).ids
    tokenizer.encode_special_tokens = False
    ids = tokenizer.encode(text).ids
    return {"ids": ids, "plain": tokenizer.encode(text, add_special_tokens=False).ids, "as_text": as_text,
            "decoded": tokenizer.decode(ids, skip_special_tokens=False), "skipped": tokenizer.decode(ids)}


def compare(name, tokenizer, program, texts):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(tokenizer.to_str())
        file.flush()
        lines = subprocess.run([program, file.name], input="".join(json.dumps(text) + "\n" for text in texts), capture_output=True, text=True,
                               check=True).stdout.splitlines()
    differing = [(text, json.loads(line), wanted) for text, line in zip(texts, lines) if json.loads(line) != (wanted := expected(tokenizer, text))]
    for text, got, wanted in differing[:3]:
        print(f"  {text!r}\n    {got}\n    {wanted}")
    print(f"{name}: {len(differing)} of {len(texts)} texts differ")


def main():
    random.seed(7)
    words = [word for sentence in SENTENCES for word in sentence.split()]
    for name, tokenizer in make().items():
        if len(sys.argv) == 3:
            compare(name, tokenizer, sys.argv[2], [sample(words) for _ in range(int(sys.argv[1]))])
            continue
        texts = SENTENCES + NASTY + [sample(words) for _ in range(40)]
        FOLDER.mkdir(parents=True, exist_ok=True)
        with open(FOLDER / f"{name}.json", "w", encoding="ascii") as file:
            cases = ",\n".join(json.dumps({"text": text, **expected(tokenizer, text)}) for text in texts)
            file.write(f'{{"tokenizer": {json.dumps(json.loads(tokenizer.to_str()))},\n"cases": [\n{cases}]}}\n')


if __name__ == "__main__":
    main()
