from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.sources.annex import key_of_link, key_of_pointer, key_size_bytes

KEY = "SHA256E-s1048576--0123abcd.edf"


@pytest.mark.parametrize(
    ("key", "size_bytes"),
    [
        (KEY, 1048576),
        ("MD5E-s0--d41d8cd98f00b204e9800998ecf8427e.eeg", 0),
        ("WORM-s12-m1700000000--sub-s5.edf", 12),
        ("WORM-m1700000000--sub-01-s5-run.edf", None),
        ("URL--http&c%%host%x-s5.edf", None),
        ("URL-s7--http&c%%host%x-s5.edf", 7),
        ("SHA256E-s2147483648-S1073741824-C1--0123.eeg", 2147483648),
        ("SHA256E-S1073741824-C1--0123.eeg", None),
        ("SHA256E-sx5--0123", None),
        ("nokey-s5", None),
        ("", None),
    ],
)
def test_a_size_is_read_only_from_the_fields_before_the_name(key: str, size_bytes: int | None) -> None:
    assert key_size_bytes(key) == size_bytes


@pytest.mark.parametrize(
    ("target", "key"),
    [
        (f"../../.git/annex/objects/xX/4f/{KEY}/{KEY}", KEY),
        (f".git/annex/objects/123/456/{KEY}/{KEY}", KEY),
        (f"/elsewhere/.git/annex/objects/xX/4f/{KEY}/{KEY}", KEY),
        (f"../.git/annex/objects/xX/4f/{KEY}/other", None),
        (f"../objects/xX/4f/{KEY}/{KEY}", None),
        ("annex/objects/passwd/passwd", None),
        ("annex/objects/a/MD5-x--y/MD5-x--y", "MD5-x--y"),
        ("sub-01_eeg.edf", None),
        ("../notannex/objects/a/a/b", None),
    ],
)
def test_a_locked_file_is_a_link_that_names_its_key_twice(target: str, key: str | None) -> None:
    assert key_of_link(target) == key


@pytest.mark.parametrize(
    ("content", "key"),
    [
        (f"/annex/objects/{KEY}\n".encode(), KEY),
        (f"/annex/objects/{KEY}".encode(), KEY),
        (f"/annex/objects/{KEY}\nmore\n".encode(), None),
        (f"x/annex/objects/{KEY}\n".encode(), None),
        (b"/annex/objects/\n", None),
        (b"onset\tduration\n", None),
    ],
)
def test_an_unlocked_file_without_content_is_a_pointer(content: bytes, key: str | None) -> None:
    assert key_of_pointer(content) == key


@given(st.text(max_size=30), st.integers(0, 10**15))
def test_the_name_behind_the_fields_is_free_text(name: str, size_bytes: int) -> None:
    assert key_size_bytes(f"SHA256E-s{size_bytes}--{name}") == size_bytes
    assert key_size_bytes(f"URL--{name}") is None
