"""The cache of the most recently used values."""

from pointsman.caches import BoundedCache


def test_a_cache_drops_the_values_that_were_used_longest_ago() -> None:
    cache = BoundedCache[str, int](2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert [cache.get(key) for key in "abc"] == [1, None, 3]


def test_the_sizes_of_the_values_in_a_cache_add_up_to_at_most_its_bound() -> None:
    cache = BoundedCache[str, str](5, len)
    cache.put("a", "12")
    cache.put("b", "123")
    cache.put("c", "1")
    assert [cache.get(key) for key in "abc"] == [None, "123", "1"]


def test_a_value_that_exceeds_the_bound_is_not_cached() -> None:
    cache = BoundedCache[str, str](5, len)
    cache.put("a", "12")
    cache.put("b", "123456")
    assert [cache.get(key) for key in "ab"] == ["12", None]


def test_a_new_value_replaces_the_cached_one_and_its_size() -> None:
    cache = BoundedCache[str, str](5, len)
    cache.put("a", "12345")
    cache.put("a", "1")
    cache.put("b", "1234")
    assert [cache.get(key) for key in "ab"] == ["1", "1234"]
