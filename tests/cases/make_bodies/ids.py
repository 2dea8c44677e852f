"""Bodies that are well-formed: what their id is, or why they have none."""

from collections.abc import Iterator

from envelope import (
    ID, OTHER, RAW_ID, Case, absent, envelope, malformed, unusable, usable, with_data, with_id,
)  # fmt: skip


def cases() -> Iterator[Case]:
    yield from ordinary()
    yield from verbatim()
    yield from escapes()
    yield from surrogates()
    yield from utf8()
    yield from lengths()
    yield from types()
    yield from duplicates()
    yield from names()
    yield from decoys()


def ordinary() -> Iterator[Case]:
    yield usable("ok-plain", "an ordinary envelope", with_id(RAW_ID))
    yield usable("ok-only-meta", "no other member is needed", b'{"meta":{"id":' + RAW_ID + b"}}")
    yield usable("ok-meta-first", "meta may come first",
                 b'{"meta":{"id":' + RAW_ID + b'},"job":"urn:babel:a:b","data":[]}')
    yield usable("ok-id-last-in-meta", "id may be the last member of meta",
                 envelope(b'{"queue":"scales","lang":null,"tags":[1,{"id":2}],"id":' + RAW_ID + b"}"))
    yield usable("ok-urn-alias", "urn in place of job: naming the job is not the guard's business",
                 b'{"urn":"urn:babel:parcels:weighed","meta":{"id":' + RAW_ID + b"}}")
    yield usable("ok-schema-9", "an unknown schema version is the consumer's to refuse",
                 envelope(b'{"id":' + RAW_ID + b',"schema_version":9}'))
    yield usable("ok-dead-letter", "a dead_letter block, with an id of its own, changes nothing",
                 with_id(RAW_ID)[:-1] + b',"dead_letter":{"reason":"expired","id":' + OTHER
                 + b',"meta":{"id":' + OTHER + b"}}}")
    yield usable("ok-lang-null", "what the other members of meta hold never matters",
                 envelope(b'{"lang":null,"id":' + RAW_ID + b',"created_at":1e400,"queue":[]}'))
    yield usable("ok-attempts-text", "a counter given as text is not the guard's business",
                 with_id(RAW_ID).replace(b'"attempts":0', b'"attempts":"3"'))
    yield usable("ok-empty-names", "an empty name is a name",
                 b'{"":{"":""},"meta":{"":0,"id":' + RAW_ID + b"}}")
    yield absent("absent-empty-object", "no meta", b"{}")
    yield absent("absent-meta", "an envelope without meta", b'{"job":"urn:babel:a:b","data":{}}')
    yield absent("absent-id", "a meta without id", envelope(b'{"queue":"scales"}'))
    yield absent("absent-meta-empty", "an empty meta", envelope(b"{}"))
    yield absent("absent-trace-id-only", "trace_id is never the key",
                 b'{"trace_id":"41c0aa17","meta":{"trace_id":"41c0aa17"}}')
    yield absent("absent-id-beside-meta", "an id at the top is not meta.id",
                 b'{"id":' + RAW_ID + b',"meta":{"queue":"scales"}}')


def verbatim() -> Iterator[Case]:
    why = "verbatim: nothing is trimmed, folded, normalised or read as a number"
    for name, id in {
        "blank": " ", "blanks": " \u00a0 ", "leading-space": " " + ID, "trailing-space": ID + " ",
        "upper": ID.upper(), "digits": "42", "leading-zeros": "00042", "exponent": "1e3",
        "negative-zero": "-0", "null-text": "null", "true-text": "true", "braces": "{}",
        "glob": "a*?[b]", "colons": "a:b::c", "slashes": "../a//b", "percent": "%00%41", "delete": "a\x7fb",
        "composed": "caf\u00e9", "decomposed": "cafe\u0301", "emoji": "\U0001f4e6-7", "joined-emoji": "\U0001f468\u200d\U0001f469",
        "bom": "\ufeff", "replacement": "\ufffd", "last-scalar": "\U0010ffff", "noncharacter": "\uffff",
        "before-surrogates": "\ud7ff", "after-surrogates": "\ue000", "right-to-left": "\u202eabc",
        "line-separator": "a\u2028b\u2029c", "next-line": "\u0085", "dotless-i": "\u0131\u0130",
        "sql": "'; drop table babelqueue_idempotency; --", "one-letter": "x",
    }.items():  # fmt: skip
        yield usable(f"verbatim-{name}", why, with_id(b'"' + id.encode() + b'"'), id)
    yield usable("verbatim-quote-backslash", why, with_id(rb'"say \"hi\" \\ \\\\"'), 'say "hi" \\ \\\\')
    yield usable("verbatim-newline-end", why, with_id(rb'"a\n"'), "a\n")


def escapes() -> Iterator[Case]:
    yield usable("escape-all-short", "every short escape", with_id(rb'"\"\\\/\b\f\n\r\t"'), '"\\/\b\f\n\r\t')
    yield usable("escape-solidus", "an escaped slash is a slash", with_id(rb'"a\/b"'), "a/b")
    yield usable("escape-ascii", "written another way, the same id as ok-plain",
                 with_id(b'"' + b"".join(b"\\u%04x" % ord(c) for c in ID) + b'"'))
    yield usable("escape-hex-cases", "hexadecimal digits of either case",
                 with_id(rb'"\u00E9\u00e9\uABCD\uabcd\uAbCd"'), "\u00e9\u00e9\uabcd\uabcd\uabcd")
    yield usable("escape-control", "an escaped control character is allowed in an id",
                 with_id(rb'"a\u0001\u001f\u007fb"'), "a\x01\x1f\x7fb")
    yield usable("escape-bmp-last", "the last code unit is no surrogate", with_id(rb'"\uffff"'), "\uffff")
    yield usable("escape-backslash-u", "an escaped backslash before a u is no escape of a character",
                 with_id(rb'"\\u0041"'), "\\u0041")
    yield usable("escape-backslash-run", "of five backslashes the last escapes the u",
                 with_id(rb'"\\\\\u0041"'), "\\\\A")
    yield usable("escape-elsewhere", "escapes of every kind in names and values elsewhere",
                 with_data(rb'{"\"\\\/\b\f\n\r\t\u0000\uD83D\uDE00":"\u0000\u2028"}'))
    yield unusable("nul-escaped", "U+0000 ends a text in some stores", with_id(rb'"a\u0000b"'))
    yield unusable("nul-escaped-other", "differs from nul-escaped behind the NUL only: never the same key",
                   with_id(rb'"a\u0000c"'))
    yield unusable("nul-only", "U+0000 alone", with_id(rb'"\u0000"'))
    yield unusable("nul-at-end", "U+0000 at the end", with_id(b'"' + ID.encode() + rb'\u0000"'))
    yield usable("nul-elsewhere", "U+0000 in other names and values never matters",
                 envelope(rb'{"\u0000":"\u0000","id":' + RAW_ID + b"}", rb'"\u0000"'))


def surrogates() -> Iterator[Case]:
    pair = "an escaped pair is one character"
    yield usable("surrogate-pair", pair, with_id(rb'"\ud83d\udce6"'), "\U0001f4e6")
    yield usable("surrogate-pair-upper", pair, with_id(rb'"\uD83D\uDCE6"'), "\U0001f4e6")
    yield usable("surrogate-pair-first", pair, with_id(rb'"\uD800\uDC00"'), "\U00010000")
    yield usable("surrogate-pair-last", pair, with_id(rb'"\uDBFF\uDFFF"'), "\U0010ffff")
    yield usable("surrogate-pairs", pair, with_id(rb'"\ud83d\udce6\ud83d\udce6x"'), "\U0001f4e6\U0001f4e6x")
    lone = "an unpaired surrogate is no character; never U+FFFD, or two ids become one"
    for name, raw in {
        "high": rb'"\ud83d"', "high-other": rb'"\ud83e"', "low": rb'"\udce6"',
        "high-first": rb'"\ud800"', "high-last": rb'"\udbff"', "low-first": rb'"\udc00"', "low-last": rb'"\udfff"',
        "low-then-high": rb'"\udce6\ud83d"', "high-high": rb'"\ud83d\ud83d"', "high-high-low": rb'"\ud83d\ud83d\udce6"',
        "high-low-low": rb'"\ud83d\udce6\udce6"', "low-low": rb'"\udce6\udce6"',
        "high-then-letter": rb'"\ud83dx"', "high-then-newline": rb'"\ud83d\n"', "high-then-backslash": rb'"\ud83d\\udce6"',
        "high-then-bmp": rb'"\ud83d\u0041"', "high-then-next-range": rb'"\ud83d\ue000"', "high-at-end": rb'"abc\ud83d"',
        "low-at-end": rb'"abc\udce6"', "high-then-raw-low": b'"\\ud83d\xed\xb3\xa6"',
        "high-then-emoji": b'"\\ud83d\xf0\x9f\x93\xa6"', "raw-high-then-low": b'"\xed\xa0\xbd\\udce6"',
    }.items():  # fmt: skip
        yield unusable(f"surrogate-{name}", lone, with_id(raw))
    yield usable("surrogate-elsewhere-value", "unpaired surrogates in other values never matter",
                 with_data(rb'["\ud83d","\udce6\ud83d","\ud83d\ud83d"]'))
    yield usable("surrogate-elsewhere-name", "unpaired surrogates in other names never matter",
                 envelope(rb'{"\ud83d":1,"id\udce6":2,"id":' + RAW_ID + b"}", rb'{"\udce6\ud83d":{}}'))
    yield usable("surrogate-bad-then-good", "a bad id before a good one does no harm",
                 envelope(rb'{"id":"\ud83d","id":' + RAW_ID + b"}"))
    yield unusable("surrogate-good-then-bad", "a good id before a bad one does not help",
                   envelope(b'{"id":' + RAW_ID + rb',"id":"\ud83d"}'))


def utf8() -> Iterator[Case]:
    for name, bad, what in [
        ("ff", b"\xff", "a byte that UTF-8 never uses"),
        ("fe", b"\xfe", "another byte that UTF-8 never uses: not the same id as utf8-ff"),
        ("c0", b"\xc0\x80", "U+0000 in two bytes"),
        ("overlong-2", b"\xc1\xa1", "a letter in two bytes"),
        ("overlong-3", b"\xe0\x9f\xbf", "a two-byte character in three"),
        ("overlong-4", b"\xf0\x8f\xbf\xbf", "a three-byte character in four"),
        ("continuation", b"\x80", "a continuation byte on its own"),
        ("continuation-extra", b"\xc3\xa9\xa9", "one continuation byte too many"),
        ("cut-2", b"\xc3", "the first of two bytes"),
        ("cut-3", b"\xe2\x82", "two of three bytes"),
        ("cut-4", b"\xf0\x9f\x93", "three of four bytes"),
        ("cut-then-letter", b"\xe2\x82x", "two of three bytes, then a letter"),
        ("cesu-8", b"\xed\xa0\xbd\xed\xb3\xa6", "a surrogate pair, each half in three bytes"),
        ("surrogate-high", b"\xed\xa0\x80", "a high surrogate in three bytes"),
        ("surrogate-low", b"\xed\xbf\xbf", "a low surrogate in three bytes"),
        ("beyond-last", b"\xf4\x90\x80\x80", "U+110000"),
        ("f5", b"\xf5\x80\x80\x80", "a first byte beyond the last character"),
        ("five-bytes", b"\xf8\x88\x80\x80\x80", "a sequence of five bytes"),
        ("latin-1", b"caf\xe9", "Latin-1"),
    ]:
        yield unusable(f"utf8-{name}", f"not UTF-8 in the id: {what}", with_id(b'"a' + bad + b'b"'))
        if name in ("ff", "cut-4", "cesu-8", "overlong-2", "latin-1"):
            yield usable(f"utf8-elsewhere-{name}", f"not UTF-8, but not in the id: {what}",
                         envelope(b'{"' + bad + b'":"' + bad + b'","id":' + RAW_ID + b"}",
                                  b'{"a' + bad + b'":"b' + bad + b'"}'))
    yield unusable("utf8-cut-at-quote", "the id's last character is cut off by the quotation mark",
                   with_id(b'"abc\xf0\x9f\x93"'))
    yield absent("utf8-name-overlong", "an overlong i does not make the name id",
                 envelope(b'{"\xc1\xa9d":' + RAW_ID + b"}"))
    yield usable("utf8-bad-then-good", "a bad id before a good one does no harm",
                 envelope(b'{"id":"\xff","id":' + RAW_ID + b"}"))
    yield unusable("utf8-good-then-bad", "a good id before a bad one does not help",
                   envelope(b'{"id":' + RAW_ID + b',"id":"\xff"}'))


def lengths() -> Iterator[Case]:
    def text(size: int) -> str:
        return "".join(f"{n:08}" for n in range(size // 8 + 1))[:size]

    limit = "at most 2,048 bytes of UTF-8"
    for size in (255, 256, 2047, 2048):
        yield usable(f"length-{size}", limit, with_id(b'"' + text(size).encode() + b'"'), text(size))
    for size in (2049, 2050, 2700, 9000):
        yield unusable(f"length-{size}", limit, with_id(b'"' + text(size).encode() + b'"'))
    box = "\U0001f4e6"
    yield usable("length-emoji-2048", f"{limit}: 512 characters of four", with_id(b'"' + (box * 512).encode() + b'"'), box * 512)
    yield unusable("length-emoji-2052", f"{limit}: 513 characters of four", with_id(b'"' + (box * 513).encode() + b'"'))
    for extra, char in ((2, "\u00e9"), (3, "\u20ac"), (4, box)):
        fits, crosses = "y" * (2048 - extra) + char, "y" * (2049 - extra) + char
        yield usable(f"length-last-of-{extra}", f"{limit}: the last character just fits",
                     with_id(b'"' + fits.encode() + b'"'), fits)
        yield unusable(f"length-crossing-{extra}", f"{limit}: the last character lies across the limit",
                       with_id(b'"' + crosses.encode() + b'"'))
    yield unusable("length-2048-characters", f"{limit}: 2,048 characters are more bytes",
                   with_id(b'"' + ("\u00e9" * 2048).encode() + b'"'))
    yield usable("length-escaped-2048", f"{limit}, counted after unescaping: 12,288 bytes of text",
                 with_id(b'"' + rb"\u0061" * 2048 + b'"'), "a" * 2048)
    yield unusable("length-escaped-2049", f"{limit}, counted after unescaping", with_id(b'"' + rb"\u0061" * 2049 + b'"'))
    yield usable("length-escaped-pairs-2048", f"{limit}: 512 escaped pairs",
                 with_id(b'"' + rb"\ud83d\udce6" * 512 + b'"'), box * 512)
    yield unusable("length-escaped-pairs-2052", f"{limit}: 513 escaped pairs", with_id(b'"' + rb"\ud83d\udce6" * 513 + b'"'))
    yield unusable("length-escaped-crossing", f"{limit}: an escaped character lies across the limit",
                   with_id(b'"' + b"y" * 2046 + rb'\u20ac"'))
    yield unusable("length-0", "empty", with_id(b'""'))
    yield usable("length-long-then-good", "an over-long id before a good one does no harm",
                 envelope(b'{"id":"' + b"z" * 3000 + b'","id":' + RAW_ID + b"}"))
    yield unusable("length-good-then-long", "a good id before an over-long one does not help",
                   envelope(b'{"id":' + RAW_ID + b',"id":"' + b"z" * 2049 + b'"}'))
    yield malformed("length-long-unterminated", "an over-long id is still read to its end", with_id(b'"' + b"z" * 3000)[:3100])


def types() -> Iterator[Case]:
    others = {
        "null": b"null", "true": b"true", "false": b"false", "zero": b"0", "integer": b"42", "negative": b"-7",
        "float": b"4.2", "exponent": b"1E400", "array": b"[" + RAW_ID + b"]", "array-empty": b"[]",
    }  # fmt: skip
    for name, raw in others.items():
        yield unusable(f"type-id-{name}", "only a string is an id, and nothing is turned into one", with_id(raw))
        yield unusable(f"type-meta-{name}", "only an object is a meta", envelope(raw))
    yield unusable("type-id-object", "an object is no id, whatever it holds", with_id(b'{"id":' + RAW_ID + b"}"))
    yield unusable("type-id-object-empty", "an object is no id", with_id(b"{}"))
    yield unusable("type-meta-text", "a meta encoded twice is a string", envelope(rb'"{\"id\":\"A\"}"'))
    yield unusable("type-meta-array-pairs", "an array of pairs is no object", envelope(b'[["id",' + RAW_ID + b"]]"))
    yield unusable("type-meta-array-objects", "an array never stands for the object in it", envelope(b'[{"id":' + RAW_ID + b"}]"))
    yield unusable("type-meta-string-empty", "an empty string is no object", envelope(b'""'))


def duplicates() -> Iterator[Case]:
    good, bad = b'"meta":{"id":' + RAW_ID + b"}", b'"meta":{"id":' + OTHER + b"}"
    last = "of duplicate members the last one counts"
    yield usable("twice-meta", last, b"{" + bad + b"," + good + b"}")
    yield usable("twice-meta-apart", last, b"{" + bad + b',"data":{"meta":1},' + good + b',"attempts":0}')
    yield usable("twice-id", last, envelope(b'{"id":' + OTHER + b',"id":' + RAW_ID + b"}"))
    yield usable("twice-id-escaped", "a name is the same name when it is escaped",
                 envelope(b'{"id":' + OTHER + rb',"\u0069\u0064":' + RAW_ID + b"}"))
    yield usable("twice-meta-escaped", "a name is the same name when it is escaped",
                 b"{" + bad + rb',"\u006d\u0065\u0074\u0061":{"id":' + RAW_ID + b"}}")
    yield usable("twice-id-thrice", last, envelope(b'{"id":1,"id":' + OTHER + b',"id":' + RAW_ID + b"}"))
    yield absent("twice-meta-then-without-id", "the last meta counts as a whole: ids of two are not merged",
                 b"{" + good + b',"meta":{"queue":"scales"}}')
    yield absent("twice-meta-then-empty", "the last meta counts as a whole", b"{" + good + b',"meta":{}}')
    yield usable("twice-meta-empty-then-good", last, b'{"meta":{},' + good + b"}")
    for name, raw in {"null": b"null", "array": b"[]", "string": b'"m"', "number": b"0"}.items():
        yield unusable(f"twice-meta-then-{name}", "a good meta before a bad one does not help", b"{" + good + b',"meta":' + raw + b"}")
        yield usable(f"twice-meta-{name}-then-good", "a bad meta before a good one does no harm", b'{"meta":' + raw + b"," + good + b"}")
    for name, raw in {"null": b"null", "number": b"7", "empty": b'""', "array": b"[]", "object": b'{"id":"x"}', "nul": rb'"\u0000"'}.items():
        yield unusable(f"twice-id-then-{name}", "a good id before a bad one does not help", envelope(b'{"id":' + RAW_ID + b',"id":' + raw + b"}"))
        yield usable(f"twice-id-{name}-then-good", "a bad id before a good one does no harm", envelope(b'{"id":' + raw + b',"id":' + RAW_ID + b"}"))
    yield absent("twice-meta-null-then-without-id", "the last meta has no id: absent", b'{"meta":null,"meta":{"queue":"scales"}}')
    yield unusable("twice-meta-bad-id-last", "the last meta's id counts, and is bad", b"{" + good + b',"meta":{"id":false}}')
    yield usable("twice-others", "duplicates of other names never matter",
                 b'{"job":1,"job":2,"meta":{"queue":1,"id":' + RAW_ID + b',"queue":2},"job":3}')


def names() -> Iterator[Case]:
    yield usable("name-escaped-meta", "names match after unescaping", b'{"m\\u0065ta":{"id":' + RAW_ID + b"}}")
    yield usable("name-escaped-id", "names match after unescaping", envelope(rb'{"\u0069d":' + RAW_ID + b"}"))
    yield usable("name-escaped-whole", "names match after unescaping",
                 rb'{"\u006D\u0065\u0074\u0061":{"\u0069\u0064":' + RAW_ID + b"}}")
    for name, raw in {
        "upper": b"META", "title": b"Meta", "prefix": b"met", "longer": b"metadata", "space": b"meta ", "leading-space": b" meta",
        "nul": rb"meta\u0000", "full-width": "\uff4deta".encode(), "combining": "meta\u0301".encode(), "bom": "\ufeffmeta".encode(),
        "escaped-twice": rb"\\u006deta", "escaped-prefix": rb"\u006det", "tab": rb"meta\t", "lone-surrogate": rb"meta\ud83d",
    }.items():  # fmt: skip
        yield absent(f"name-meta-{name}", "names match exactly", b'{"' + raw + b'":{"id":' + RAW_ID + b"}}")
    for name, raw in {
        "upper": b"ID", "title": b"Id", "prefix": b"i", "longer": b"ids", "uuid": b"uuid", "underscore": b"_id", "message-id": b"message_id",
        "space": b"id ", "nul": rb"id\u0000", "nul-first": rb"\u0000id", "empty": b"", "dotless": "\u0131d".encode(),
        "escaped-upper": rb"\u0049\u0044",
    }.items():  # fmt: skip
        yield absent(f"name-id-{name}", "names match exactly", envelope(b'{"' + raw + b'":' + RAW_ID + b"}"))
    yield absent("name-dotted", "a path is a name like any other", b'{"meta.id":' + RAW_ID + b',"/meta/id":' + RAW_ID + b"}")
    yield usable("name-near-misses-around", "near misses beside the real names",
                 b'{"Meta":{"id":1},"meta":{"ID":2,"id":' + RAW_ID + b',"iD":3},"META":null}')


def decoys() -> Iterator[Case]:
    decoy = b'{"meta":{"id":' + OTHER + b"}}"
    yield absent("decoy-in-data", "a meta inside data is data", b'{"data":' + decoy + b"}")
    yield absent("decoy-in-array", "a meta inside an array is data", b'{"data":[' + decoy + b"," + decoy + b"]}")
    yield absent("decoy-id-deeper", "an id deeper in meta is not meta's", envelope(b'{"origin":{"id":' + OTHER + b"}}"))
    yield absent("decoy-meta-in-meta", "a meta inside meta is not the envelope's", envelope(decoy))
    yield usable("decoy-meta-in-meta-before", "a meta inside meta, then the real id",
                 envelope(b'{"meta":{"id":' + OTHER + b'},"id":' + RAW_ID + b"}"))
    yield usable("decoy-meta-in-meta-after", "the real id, then a meta inside meta",
                 envelope(b'{"id":' + RAW_ID + b',"meta":{"id":' + OTHER + b"}}"))
    yield usable("decoy-after", "decoys behind the real one", with_id(RAW_ID)[:-1] + b',"data":' + decoy + b',"x":[' + decoy + b"]}")
    yield usable("decoy-in-text", "text that looks like the member", with_data(rb'{"t":"\"meta\":{\"id\":\"decoy\"},"}'))
    yield usable("decoy-in-name", "a name that looks like the member", with_data(rb'{"\"meta\":{\"id\":\"decoy\"}":0}'))
    yield usable("decoy-unbalanced-text", "brackets and braces in text are text", with_data(rb'["}}]]{{[[","\\","\\\"}"]'))
    yield usable("decoy-value-meta", "meta as a value is no name", b'{"a":"meta","b":["meta","id"],"meta":{"queue":"id","id":' + RAW_ID + b"}}")
