from podtrail.story.critical_path import SpanTime, critical_path

ROOT = b"root"


def path(times: dict[bytes, tuple[int, int]], below: dict[bytes, list[bytes]]) -> set[bytes]:
    return critical_path(ROOT, {span: SpanTime(*time) for span, time in times.items()}, below)


def test_of_children_at_once_the_one_that_ends_last_counts() -> None:
    times = {ROOT: (0, 100), b"short": (10, 40), b"long": (10, 90)}
    assert path(times, {ROOT: [b"short", b"long"]}) == {ROOT, b"long"}


def test_of_children_one_behind_the_other_all_count() -> None:
    times = {ROOT: (0, 100), b"a": (0, 40), b"b": (40, 70), b"c": (71, 100), b"aside": (0, 60)}
    assert path(times, {ROOT: [b"a", b"b", b"c", b"aside"]}) == {ROOT, b"a", b"b", b"c"}


def test_it_goes_down_as_far_as_there_are_children() -> None:
    times = {ROOT: (0, 100), b"a": (0, 90), b"b": (10, 80), b"c": (20, 30)}
    assert path(times, {ROOT: [b"a"], b"a": [b"b", b"c"]}) == {ROOT, b"a", b"b"}


def test_a_child_that_outlives_its_parent_counts_as_far_as_that_goes() -> None:
    times = {ROOT: (0, 100), b"late": (50, 400), b"early": (0, 50)}
    assert path(times, {ROOT: [b"late", b"early"]}) == {ROOT, b"late", b"early"}


def test_what_takes_no_time_or_forms_a_ring_is_passed_over() -> None:
    times = {ROOT: (0, 100), b"none": (50, 50), b"back": (60, 40), b"ring": (0, 100)}
    assert path(times, {ROOT: [b"none", b"back", b"ring"], b"ring": [ROOT]}) == {ROOT, b"ring"}
