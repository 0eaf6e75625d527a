"""Configuration files that can't be read."""

import os
import threading
from pathlib import Path

import pytest

from podtrail.config import ConfigError, Document


def refusal(path: Path) -> str:
    """Return the report on a file, its folder left out."""
    with pytest.raises(ConfigError) as caught:
        Document.load([str(path)])
    return str(caught.value).replace(f"{path.parent}/", "")


@pytest.mark.parametrize(
    ("content", "report"),
    [
        (b"", "c.yaml: is empty\n  a configuration has receivers, processors, exporters and service"),
        (b"# nothing\n", "c.yaml: is empty\n  a configuration has receivers, processors, exporters and service"),
        ("a: 1".encode("utf-16"), "c.yaml: is UTF-16, not UTF-8\n  save it as UTF-8"),
        ("a: 1".encode("utf-16-be"), "c.yaml: is UTF-16, not UTF-8\n  save it as UTF-8"),
        (b"a: 1\nb: \xff\n", "c.yaml:2:4: is not UTF-8: the byte 0xff can't stand here\n  save the file as UTF-8"),
        (b"- a\n", "c.yaml:1:1: is not a map of receivers, processors, exporters and service\n    1 | - a\n      | ^"),
    ],
    ids=["empty", "comment", "utf-16", "utf-16 without mark", "latin-1", "list"],
)
def test_content_that_is_no_configuration_is_explained(tmp_path: Path, content: bytes, report: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(content)

    assert refusal(path) == report


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")

    assert Document.load([str(path)]).plain() == {"a": 1}


def test_a_missing_file_and_a_directory_are_explained(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.yaml") == "none.yaml: there is no such file\n  check the path"
    folder = tmp_path / "folder"
    folder.mkdir()
    assert refusal(folder) == "folder: is a directory, not a file\n  name the YAML file in it"


def test_a_named_pipe_is_read_and_without_a_writer_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("a: 1\n",))
    writer.start()
    assert Document.load([str(pipe)]).plain() == {"a": 1}
    writer.join()
    monkeypatch.setattr("podtrail.config.files._PATIENCE", 0.0)
    assert refusal(pipe).startswith("pipe: can't be read: it is a named pipe to which nothing was written in 0 s")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="named pipe"):
        Document.from_text("a: ${file:pipe}")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.touch(mode=0)

    assert refusal(path).startswith("c.yaml: can't be read: permission denied")


def test_a_path_with_a_file_in_the_middle_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert "can't be read: Not a directory" in refusal(tmp_path / "file" / "c.yaml")


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    with path.open("wb") as file:
        file.truncate(17 * 1024 * 1024)

    assert refusal(path).startswith("c.yaml: is larger than 16 MiB")


CONFIGURATION = "receivers: {otlp: {protocols: {grpc: {}}}}\nexporters: {debug: {}}\nservice: {pipelines: {}}\n"


def indented(columns: int) -> str:
    return "".join(f"{' ' * columns}{line}\n" for line in CONFIGURATION.splitlines())


@pytest.mark.parametrize(
    ("text", "place", "line", "what"),
    [
        (
            f"apiVersion: v1\nkind: ConfigMap\ndata:\n  relay: |\n{indented(4)}",
            "data::relay",
            4,
            "a Kubernetes ConfigMap",
        ),
        (
            f"kind: Namespace\n---\napiVersion: x\nkind: OpenTelemetryCollector\nspec:\n  config:\n{indented(4)}",
            "spec::config",
            6,
            "a manifest of OpenTelemetryCollector",
        ),
        (
            f"kind: OpenTelemetryCollector\napiVersion: x\nspec:\n  config: |\n{indented(4)}",
            "spec::config",
            4,
            "a manifest of OpenTelemetryCollector",
        ),
        (f"mode: daemonset\nconfig:\n{indented(2)}", "config", 2, "values of a Helm chart"),
        (f"collector:\n  alternateConfig:\n{indented(4)}", "collector::alternateConfig", 2, "values of a Helm chart"),
        (
            f"kind: List\napiVersion: v1\nitems:\n- data:\n    a.yaml: |\n{indented(6)}",
            "items::0::data::a.yaml",
            5,
            "List",
        ),
    ],
)
def test_a_configuration_inside_of_another_file_is_named_by_its_place(
    text: str, place: str, line: int, what: str, tmp_path: Path
) -> None:
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(ConfigError) as refused:
        Document.load([str(tmp_path / "c.yaml")])
    (problem,) = refused.value.problems
    assert ("::".join(map(str, problem.path)), problem.position.line) == (place, line)
    assert what in problem.message
    assert problem.hint == f"give what stands under {place} as a file of its own"
