"""What the tables are made of: a case, and an envelope put together by hand.

Everything is bytes. A fragment goes into the body exactly as it stands here.
"""

from dataclasses import dataclass

ID = "8d1f6a52-0c7b-4e39-9a64-2b5e7d90c3f1"
RAW_ID = b'"' + ID.encode() + b'"'
OTHER = b'"ffffffff-0000-4000-8000-000000000000"'


@dataclass(frozen=True)
class Case:
    file: str
    id: str | None
    reason: str | None
    why: str
    body: bytes


def usable(name: str, why: str, body: bytes, id: str = ID) -> Case:
    return Case(f"{name}.json", id, None, why, body)


def malformed(name: str, why: str, body: bytes) -> Case:
    return Case(f"{name}.json", None, "malformed", why, body)


def absent(name: str, why: str, body: bytes) -> Case:
    return Case(f"{name}.json", None, "absent", why, body)


def unusable(name: str, why: str, body: bytes) -> Case:
    return Case(f"{name}.json", None, "unusable", why, body)


def envelope(meta: bytes = b'{"id":' + RAW_ID + b'}', data: bytes = b'{"grams":812}') -> bytes:
    """A whole envelope around a raw `meta` and a raw `data`."""
    return (
        b'{"job":"urn:babel:parcels:weighed","trace_id":"41c0aa17-96e2-4d0b-b1a5-7f3308de62cb",'
        b'"data":' + data + b',"meta":' + meta + b',"attempts":0}'
    )


def with_id(raw: bytes) -> bytes:
    """An envelope whose `meta.id` is this raw value."""
    return envelope(meta=b'{"id":' + raw + b',"queue":"scales","lang":"go","schema_version":1}')


def with_data(raw: bytes) -> bytes:
    """An envelope with a good id, and this raw value somewhere before it."""
    return envelope(data=raw)
