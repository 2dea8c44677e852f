"""Bodies that try the grammar: numbers, literals, white space, strings,
structure, nesting, and what may stand around the object."""

from collections.abc import Iterator

from envelope import ID, RAW_ID, Case, absent, envelope, malformed, usable, with_data, with_id

PLAIN = with_id(RAW_ID)


def cases() -> Iterator[Case]:
    yield from numbers()
    yield from literals()
    yield from white_space()
    yield from control_characters()
    yield from bad_escapes()
    yield from structure()
    yield from cut_off()
    yield from nesting()
    yield from blocks()
    yield from not_an_object()
    yield from around()
    yield from encodings()


def numbers() -> Iterator[Case]:
    for name, raw in {
        "zero": b"0", "minus-zero": b"-0", "zero-fraction": b"0.0", "minus-zero-exponent": b"-0e-0", "exponent-plus": b"1E+2",
        "exponent-zeros": b"1e0000000001", "fraction-exponent": b"-12.340e-56", "zero-exponent": b"0e1", "huge-exponent": b"1e400",
        "tiny-exponent": b"1e-99999", "enormous-exponent": b"-1.5E+999999999999", "beyond-u64": b"18446744073709551616",
        "beyond-double": b"9007199254740993", "digits-5000": b"7" * 5000, "fraction-5000": b"0." + b"3" * 5000,
        "exponent-5000": b"1e" + b"9" * 5000,
    }.items():  # fmt: skip
        yield usable(f"number-{name}", "a number elsewhere never matters, whatever its size", with_data(b'{"n":' + raw + b"}"))
    for name, raw in {
        "minus": b"-", "plus": b"+1", "leading-zero": b"01", "minus-leading-zero": b"-01", "double-zero": b"00", "point-last": b"1.",
        "point-first": b".5", "minus-point": b"-.5", "point-exponent": b"1.e2", "exponent-empty": b"1e", "exponent-sign-only": b"1e+",
        "exponent-fraction": b"1e2.5", "exponent-double": b"1e2e3", "exponent-zero-empty": b"0e", "two-points": b"1.2.3",
        "double-minus": b"--1", "minus-space": b"- 1", "minus-plus": b"-+1", "hexadecimal": b"0x1F", "octal": b"0o17",
        "underscore": b"1_000", "comma": b"1,000", "letter-behind": b"12a", "nan": b"NaN", "minus-nan": b"-NaN", "infinity": b"Infinity",
        "minus-infinity": b"-Infinity", "inf": b"inf", "big-suffix": b"12n", "full-width": "\uff11".encode(), "arabic": "\u0661".encode(),
        "space-inside": b"1 2", "exponent-only": b"e5", "nul-behind": b"1\x00",
    }.items():  # fmt: skip
        yield malformed(f"number-bad-{name}", "not a number by the grammar", with_data(b"[" + raw + b"]"))
    yield malformed("number-bad-beside-id", "not a number by the grammar, in meta itself",
                    envelope(b'{"id":' + RAW_ID + b',"created_at":017}'))
    yield malformed("number-bad-as-id", "a bad body has no id of any kind: not unusable", with_id(b"01"))


def literals() -> Iterator[Case]:
    yield usable("literal-all", "the three literals", with_data(b"[true,false,null]"))
    for name, raw in {
        "tru": b"tru", "fals": b"fals", "nul": b"nul", "truth": b"truth", "nullx": b"nullx", "truetrue": b"truetrue", "upper": b"TRUE",
        "title": b"Null", "none": b"None", "undefined": b"undefined", "letter": b"t", "letter-n": b"n", "nil": b"nil", "yes": b"yes",
        "bare-word": b"scales", "null-digit": b"null0", "quoteless": b"a b",
    }.items():  # fmt: skip
        yield malformed(f"literal-bad-{name}", "no literal of JSON", with_data(b"[" + raw + b"]"))
        if name in ("tru", "nul", "nullx", "title"):
            yield malformed(f"literal-bad-id-{name}", "no literal of JSON, where the id is", with_id(raw))
    yield malformed("literal-bad-meta-nul", "a literal cut short, where meta is", envelope(b"nul"))


def white_space() -> Iterator[Case]:
    yield usable("space-everywhere", "white space wherever the grammar allows it",
                 b' \t\r\n{ \t"job"\r:\n"a" ,\t"data" : [ 1 ,\n{ } , [ ] , { "a" : 1 , "b" : 2 } ] ,\r\n"meta"\t:\t{\n"queue" : ""\r,'
                 b' "id" : ' + RAW_ID + b' } \n, "attempts" : 0 }\r\n\t ')
    yield usable("space-long-runs", "runs of white space longer than any block",
                 b" " * 15 + b"{" + b"\n" * 16 + b'"meta"' + b"\t" * 17 + b":" + b"\r" * 31 + b"{" + b" " * 32 + b'"id"' + b" \t\r\n" * 9
                 + b":" + b" " * 47 + RAW_ID + b" " * 16 + b"}" + b" " * 33 + b"}" + b" " * 64)
    yield usable("space-indented", "an indented envelope",
                 b'{\n    "job": "urn:babel:parcels:weighed",\n    "meta": {\n        "id": ' + RAW_ID + b"\n    }\n}\n")
    yield usable("space-crlf", "an indented envelope with CRLF", b'{\r\n\t"meta": {\r\n\t\t"id": ' + RAW_ID + b"\r\n\t}\r\n}\r\n")
    yield absent("space-in-empty-object", "an empty object with white space in it", b" {\n\t \r} ")
    for name, raw in {
        "form-feed": b"\x0c", "vertical-tab": b"\x0b", "backspace": b"\x08", "nul": b"\x00", "unit-separator": b"\x1f", "escape": b"\x1b",
        "delete": b"\x7f", "nbsp": b"\xc2\xa0", "nbsp-latin-1": b"\xa0", "next-line": b"\xc2\x85", "bom": b"\xef\xbb\xbf",
        "line-separator": b"\xe2\x80\xa8", "em-space": b"\xe2\x80\x83", "ideographic": b"\xe3\x80\x80", "escaped": b"\\n",
    }.items():  # fmt: skip
        yield malformed(f"space-bad-{name}", "white space is space, tab, line feed and carriage return, and nothing else",
                        b'{"meta":' + raw + b'{"id":' + RAW_ID + b"}}")
    for name, raw in {"form-feed": b"\x0c", "nbsp": b"\xc2\xa0", "nul": b"\x00"}.items():
        yield malformed(f"space-bad-after-run-{name}", "a bad one behind a run of good ones", b"{" + b" " * 20 + raw + PLAIN[1:])
        yield malformed(f"space-bad-first-{name}", "a bad one before the object", raw + PLAIN)


def control_characters() -> Iterator[Case]:
    for byte, what in ((0x00, "U+0000"), (0x01, "U+0001"), (0x09, "tab"), (0x0A, "line feed"), (0x0D, "carriage return"), (0x1F, "U+001F")):
        raw, why = bytes([byte]), f"a raw control character in a string: {what}"
        yield malformed(f"control-{byte:02x}-id", f"{why}, in the id", with_id(b'"a' + raw + b'b"'))
        yield malformed(f"control-{byte:02x}-value", f"{why}, in a value", with_data(b'"' + raw + b'"'))
        yield malformed(f"control-{byte:02x}-name", f"{why}, in a name", with_data(b'{"a' + raw + b'":1}'))
    yield malformed("control-in-name-meta", "a raw control character in a name like meta", b'{"meta\n":{"id":' + RAW_ID + b"}}")
    yield malformed("control-after-bad-id", "a raw control character behind an id that is not UTF-8", with_id(b'"\xff\x01"'))
    yield usable("control-delete-elsewhere", "DEL and the controls above it are allowed in strings", with_data(b'{"\x7f":"\x7f\xc2\x80\xc2\x9f"}'))


def bad_escapes() -> Iterator[Case]:
    for name, raw in {
        "x": rb"\x41", "upper-n": rb"\N", "upper-u": rb"\U0041", "a": rb"\a", "v": rb"\v", "zero": rb"\0", "digit": rb"\1", "single-quote": rb"\'",
        "newline": b"\\\n", "space": rb"\ ", "byte-above-7f": b"\\\xc3\xa9", "nul": b"\\\x00", "u-0": rb"\u", "u-1": rb"\u1", "u-2": rb"\u12",
        "u-3": rb"\u123", "u-not-hex": rb"\u00zz", "u-g": rb"\u00g0", "u-minus": rb"\u-001", "u-plus": rb"\u+041", "u-space": rb"\u 041",
        "u-braces": rb"\u{41}", "u-upper-x": rb"\uX041", "u-escape": rb"\u00\u0041", "u-full-width": rb"\u004" + "\uff11".encode(),
        "u-low-cut": rb"\ud83d\ud", "u-low-x": rb"\ud83d\x", "lone-backslash-run": rb"\\\q",
    }.items():  # fmt: skip
        yield malformed(f"escape-bad-{name}", "no escape of JSON, in the id", with_id(b'"a' + raw + b'"'))
    for name, raw in {"x": rb"\x41", "u-2": rb"\u12", "u-not-hex": rb"\uzzzz", "newline": b"\\\n"}.items():
        yield malformed(f"escape-bad-value-{name}", "no escape of JSON, in a value", with_data(b'["' + raw + b'"]'))
        yield malformed(f"escape-bad-name-{name}", "no escape of JSON, in a name", with_data(b'{"' + raw + b'":1}'))


def structure() -> Iterator[Case]:
    for name, raw in {
        "array-trailing-comma": b"[1,]", "array-leading-comma": b"[,1]", "array-double-comma": b"[1,,2]", "array-only-comma": b"[,]",
        "array-no-comma": b"[1 2]", "array-strings-no-comma": b'["a""b"]', "array-colon": b"[1:2]", "array-semicolon": b"[1;2]",
        "array-closed-by-brace": b"[1}", "array-closed-twice": b"[1]]", "array-member": b'["a":1]', "object-trailing-comma": b'{"a":1,}',
        "object-leading-comma": b'{,"a":1}', "object-double-comma": b'{"a":1,,"b":2}', "object-only-comma": b"{,}", "object-no-colon": b'{"a" 1}',
        "object-double-colon": b'{"a"::1}', "object-equals": b'{"a"=1}', "object-arrow": b'{"a"=>1}', "object-no-value": b'{"a":}',
        "object-no-value-comma": b'{"a":,"b":1}', "object-name-only": b'{"a"}', "object-no-comma": b'{"a":1 "b":2}', "object-value-only": b"{1}",
        "object-number-name": b"{1:2}", "object-null-name": b"{null:1}", "object-bare-name": b"{a:1}", "object-single-quotes": b"{'a':1}",
        "object-closed-by-bracket": b'{"a":1]', "object-closed-twice": b'{"a":1}}', "object-array-name": b'{["a"]:1}',
        "object-object-name": b'{{"a":1}:1}', "object-two-values": b'{"a":1 2}', "value-single-quotes": b"'a'", "value-backquotes": b"`a`",
        "value-typographic": "\u201ca\u201d".encode(), "value-comma": b",", "value-colon": b":", "value-missing": b"", "value-bracket": b"]",
        "value-brace": b"}", "value-star": b"*", "value-at": b"@", "value-slash": b"/", "value-backslash": b"\\", "value-text-concatenated": b'"a"+"b"',
        "value-two-strings": b'"a" "b"', "comment-block": b"/* no */1", "comment-line": b"1// no\n", "comment-hash": b"1 # no\n", "value-entity": b"&quot;",
        "value-hex-byte": b"\x80",
    }.items():  # fmt: skip
        yield malformed(f"structure-{name}", "not JSON by the grammar, beside a good id", with_data(raw))
    meta = b'{"id":' + RAW_ID
    yield malformed("structure-meta-trailing-comma", "a trailing comma in meta", envelope(meta + b",}"))
    yield malformed("structure-meta-closed-by-bracket", "meta closed by a bracket", envelope(meta + b"]"))
    yield malformed("structure-id-no-colon", "no colon behind id", envelope(b'{"id"' + RAW_ID + b"}"))
    yield malformed("structure-id-no-value", "no value behind id", envelope(b'{"id":}'))
    yield malformed("structure-id-two-values", "two values behind id", envelope(meta + b" " + RAW_ID + b"}"))
    yield malformed("structure-id-text-behind", "something behind the id", envelope(meta + b"x}"))
    yield malformed("structure-top-trailing-comma", "a trailing comma in the envelope", PLAIN[:-1] + b",}")
    yield malformed("structure-top-leading-comma", "a leading comma in the envelope", b"{," + PLAIN[1:])
    yield malformed("structure-top-closed-by-bracket", "the envelope closed by a bracket", PLAIN[:-1] + b"]")
    yield malformed("structure-after-bad-meta", "a bad meta, then a fault: malformed, not unusable", b'{"meta":7,"a":}')
    yield malformed("structure-after-no-meta", "no meta, and a fault: malformed, not absent", b'{"data":{},}')


def cut_off() -> Iterator[Case]:
    why = "the body ends too early"
    for name, body in {
        "brace": b"{", "brace-space": b"{ ", "name-quote": b'{"', "name": b'{"meta', "name-closed": b'{"meta"', "colon": b'{"meta":', "meta-brace": b'{"meta":{',
        "id-name": b'{"meta":{"id"', "id-colon": b'{"meta":{"id":', "id-quote": b'{"meta":{"id":"', "id": b'{"meta":{"id":"A', "id-closed": b'{"meta":{"id":"A"',
        "id-comma": b'{"meta":{"id":"A",', "meta": b'{"meta":{"id":"A"}', "meta-comma": b'{"meta":{"id":"A"},', "backslash": b'{"meta":{"id":"A\\',
        "escaped-quote": b'{"meta":{"id":"A\\"', "u": b'{"meta":{"id":"\\u', "u-digits": b'{"meta":{"id":"\\u004', "pair": b'{"meta":{"id":"\\ud83d\\udce',
        "character": b'{"meta":{"id":"\xf0\x9f', "array": b'{"a":[', "array-value": b'{"a":[1', "array-comma": b'{"a":[1,', "number": b'{"a":1',
        "minus": b'{"a":-', "fraction": b'{"a":1.', "literal": b'{"a":tru',
    }.items():  # fmt: skip
        yield malformed(f"cut-{name}", why, body)
    yield malformed("cut-last-brace", why, PLAIN[:-1])
    yield malformed("cut-last-brace-space", why, PLAIN[:-1] + b" \n")
    yield malformed("cut-long-text", "a text that never ends", with_data(b'"' + b"t" * 4096)[:4000])
    yield malformed("cut-first-byte", "the first byte is missing", PLAIN[1:])


def nesting() -> Iterator[Case]:
    for depth in (62, 63, 64, 65, 127, 128, 129, 1000):
        yield usable(f"deep-arrays-{depth}", "any depth of nesting: arrays", with_data(b"[" * depth + b"]" * depth))
        yield usable(f"deep-objects-{depth}", "any depth of nesting: objects", with_data(b'{"meta":' * depth + b"0" + b"}" * depth))
        yield usable(f"deep-mixed-{depth}", "any depth of nesting: arrays and objects in turn",
                     with_data(b'[{"id":' * (depth // 2) + (b"[]" if depth % 2 else b"0") + b"}]" * (depth // 2)))
        yield malformed(f"deep-mismatch-{depth}", "the innermost array is closed by a brace", with_data(b"[" * depth + b"}" + b"]" * (depth - 1)))
    yield usable("deep-arrays-20000", "any depth of nesting: arrays", with_data(b"[" * 20000 + b"]" * 20000))
    yield usable("deep-arrays-100000", "any depth of nesting: arrays", with_data(b"[" * 100000 + b"]" * 100000))
    yield usable("deep-objects-20000", "any depth of nesting: objects", with_data(b'{"":' * 20000 + b"[]" + b"}" * 20000))
    yield malformed("deep-unclosed-100000", "arrays that are never closed", b"[" * 100000)
    yield malformed("deep-unclosed-in-object", "arrays in an object that are never closed", b'{"a":' + b"[" * 50000)
    yield malformed("deep-unclosed-objects", "objects that are never closed", b'{"a":' * 20000)
    yield malformed("deep-one-too-few", "one bracket too few", with_data(b"[" * 500 + b"]" * 499))
    yield malformed("deep-one-too-many", "one bracket too many", with_data(b"[" * 500 + b"]" * 501))
    # The closers of 130 levels, with a wrong one where a word of 64 bits ends.
    for level in (1, 63, 64, 65, 127, 128):
        closers = b"]" * (130 - level) + b"}" + b"]" * (level - 1)
        yield malformed(f"deep-wrong-closer-{level}", f"of 130 levels, the {level}. from outside is closed by a brace", with_data(b"[" * 130 + closers))
    yield usable("deep-up-and-down", "nesting that rises and falls across 64 levels again and again",
                 with_data(b"[" + b",".join(b"[" * n + b"{}" + b"]" * n for n in (1, 62, 63, 64, 65, 3, 127, 64, 129)) + b"]"))
    yield usable("deep-in-id-first", "deep nesting where the id is, then a good one",
                 envelope(b'{"id":' + b"[" * 300 + b"]" * 300 + b',"id":' + RAW_ID + b"}"))
    yield usable("deep-wide", "many members and items", with_data(b"[" + b",".join([b'{"a":[],"b":{}}'] * 500) + b"]"))


def blocks() -> Iterator[Case]:
    """Faults and ends at the edges of blocks of 16 bytes."""
    lengths = range(50)
    yield usable("block-lengths", "texts of every length around a block's", with_data(b"[" + b",".join(b'"' + b"t" * n + b'"' for n in lengths) + b"]"))
    yield usable("block-escapes", "an escaped quotation mark at every offset in a block",
                 with_data(b"[" + b",".join(b'"' + b"t" * n + b'\\"' + b"t" * 20 + b'"' for n in lengths) + b"]"))
    yield usable("block-backslashes", "escaped backslashes at every offset in a block",
                 with_data(b"[" + b",".join(b'"' + b"t" * n + b"\\\\" * 3 + b'"' for n in lengths) + b"]"))
    yield usable("block-high-bytes", "bytes above 0x7F at every offset in a block",
                 with_data(b"[" + b",".join(b'"' + b"t" * n + b"\xff\xa2\xdc\x9f" + b't"' for n in lengths) + b"]"))
    for offset in (0, 1, 7, 8, 14, 15, 16, 17, 30, 31, 32, 33):
        text = b"t" * offset
        yield malformed(f"block-control-{offset:02}", f"a raw control character behind {offset} letters", with_data(b'"' + text + b"\x1f" + b"t" * 40 + b'"'))
        yield malformed(f"block-quote-{offset:02}", f"a quotation mark behind {offset} letters", with_data(b'"' + text + b'"' + b"t" * 40 + b'"'))
        yield malformed(f"block-escape-{offset:02}", f"no escape of JSON behind {offset} letters", with_data(b'"' + text + b"\\q" + b"t" * 40 + b'"'))
        id = "t" * offset + '"\\' + "u" * (40 - offset)
        yield usable(f"block-id-{offset:02}", f"escapes in the id behind {offset} letters",
                     with_id(b'"' + text + b'\\"\\\\' + b"u" * (40 - offset) + b'"'), id)


def not_an_object() -> Iterator[Case]:
    for name, body in {
        "empty": b"", "space": b" ", "newlines": b"\r\n\r\n", "nul": b"\x00", "null": b"null", "true": b"true", "number": b"42", "string": RAW_ID,
        "string-of-json": b'"{\\"meta\\":{\\"id\\":\\"A\\"}}"', "array": b"[]", "array-of-envelope": b"[" + PLAIN + b"]", "array-by-position": b'[{"id":"A"}]',
        "array-pairs": b'[["meta",{"id":"A"}]]', "form": b"meta%5Bid%5D=A&job=b", "xml": b"<meta><id>A</id></meta>", "yaml": b"meta:\n  id: A\n", "text": b"hello",
        "bare-members": b'"meta":{"id":"A"}', "single-quotes": b"{'meta':{'id':'A'}}", "closing-brace": b"}", "quote": b'"', "comma": b",",
        "php-serialised": b'a:1:{s:4:"meta";a:1:{s:2:"id";s:1:"A";}}', "base64": b"eyJtZXRhIjp7ImlkIjoiQSJ9fQ==", "python": b'{"meta": {"id": "A"}, "b": None}',
    }.items():  # fmt: skip
        yield malformed(f"not-{name}", "the body is not one JSON object", body)


def around() -> Iterator[Case]:
    for name, tail in {
        "nul": b"\x00", "comma": b",", "brace": b"}", "bracket": b"]", "letter": b"x", "quote": b'"', "second": PLAIN, "second-line": b"\n" + PLAIN + b"\n",
        "second-empty": b"{}", "null": b" null", "form-feed": b"\x0c", "nbsp": b"\xc2\xa0", "bom": b"\xef\xbb\xbf", "comment": b" // done", "ctrl-z": b"\x1a",
        "semicolon": b";", "high-byte": b"\xff", "after-space": b" " * 40 + b"x",
    }.items():  # fmt: skip
        yield malformed(f"trailing-{name}", "nothing but white space may follow the object", PLAIN + tail)
    for name, head in {
        "bom": b"\xef\xbb\xbf", "bracket-guard": b")]}',\n", "comma": b",", "null": b"null ", "brace": b"{", "length": b"00000137", "record-separator": b"\x1e",
        "comment": b"/**/", "plus": b"+",
    }.items():  # fmt: skip
        yield malformed(f"leading-{name}", "nothing but white space may precede the object", head + PLAIN)
    yield usable("around-space", "white space around the object", b"\n\t\r " + PLAIN + b" \r\n\t")


def encodings() -> Iterator[Case]:
    text = PLAIN.decode()
    for name, codec in (("utf-16le", "utf-16-le"), ("utf-16be", "utf-16-be"), ("utf-32le", "utf-32-le"), ("utf-32be", "utf-32-be")):
        yield malformed(f"encoding-{name}", "not UTF-8", text.encode(codec))
    yield malformed("encoding-utf-16-bom", "not UTF-8", b"\xff\xfe" + text.encode("utf-16-le"))
    yield malformed("encoding-ebcdic", "not UTF-8", text.encode("cp037"))
    # Written out, since what compresses it is not the same everywhere.
    yield malformed("encoding-gzip", "compressed", bytes.fromhex("1f8b0800000000000203ab56ca4d2d4954b2aa56ca4c51b2527254aaad0500123d621a13000000"))
    yield malformed("encoding-utf-7", "braces written in UTF-7", b"+AHs-" + PLAIN[1:-1] + b"+AH0-")
    yield malformed("encoding-protobuf", "a length-prefixed field", b"\x0a\x24" + ID.encode())
