"""The list of what is linked into podtrail-kube-scheduler, and the notices that its image has."""

import csv
import re
from pathlib import Path

import pytest

from tests.docker.manifests import KUBERNETES, ROOT
from tools.third_party import LIST, MINORS, SOURCE, Incomplete, identified, linked, notices, table

BSD = "Redistribution and use in source and binary forms, with or\nwithout modification, are permitted"
TEXTS = {
    "Apache-2.0": "Apache License\n     Version 2.0, January 2004",
    "MIT": "Permission is hereby granted, free of\n charge, to any person",
    "ISC": "Permission to use, copy, modify, and distribute this software for any\npurpose",
    "BSD-3-Clause": f"{BSD}: Neither the name of Google",
    "BSD-2-Clause": BSD,
    "MPL-2.0": "Mozilla Public License Version 2.0",
}


@pytest.mark.parametrize(("name", "text"), TEXTS.items())
def test_a_licence_is_known_by_its_text(name: str, text: str) -> None:
    assert list(identified(text)) == [name]


def test_notices_have_each_text_of_linked_packages_once_and_of_nothing_else(tmp_path: Path) -> None:
    files = {
        "go/VERSION": "go1.30 X:none\ntime 1",
        "go/LICENSE": "the standard library's " + TEXTS["BSD-3-Clause"],
        "a/LICENSE": TEXTS["Apache-2.0"],
        "a/NOTICE.txt": "made by A",
        "a/forked/LICENCE": TEXTS["MIT"],
        "a/forked/json/x.go": "",
        "a/unused/LICENSE": "not linked",
        "b/COPYING": TEXTS["Apache-2.0"],
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    a = {"Path": "example/a", "Version": "v1.0.0", "Dir": str(tmp_path / "a")}
    replaced = {"Path": "example/b", "Version": "v0.0.0", "Replace": {"Version": "v2.0.0", "Dir": str(tmp_path / "b")}}
    packages: list[dict[str, object]] = [
        {"Standard": True, "Dir": str(tmp_path / "go" / "src" / "fmt")},
        {"Module": a, "Dir": str(tmp_path / "a" / "forked" / "json")},
        {"Module": replaced, "Dir": str(tmp_path / "b")},
        {"Module": {"Path": "podtrail/instrumentation/x", "Dir": "x"}, "Dir": "x"},
    ]
    modules = linked(packages, tmp_path / "go")
    assert table({"1.37": modules}).splitlines()[1:] == [
        "example/a,Apache-2.0 AND MIT,v1.0.0",
        "example/b,Apache-2.0,v2.0.0",
    ]
    text = notices("1.37", modules)
    for path in ("go/LICENSE", "a/NOTICE.txt", "a/forked/LICENCE"):
        assert text.count(files[path]) == 1
    assert f"example/a v1.0.0: LICENSE\nexample/b v2.0.0: COPYING\n{'=' * 100}\n\n{TEXTS['Apache-2.0']}" in text
    assert "not linked" not in text


@pytest.mark.parametrize("text", [None, "All rights reserved."])
def test_a_module_without_a_licence_that_is_known_is_refused(tmp_path: Path, text: str | None) -> None:
    if text:
        (tmp_path / "LICENSE").write_text(text)
    module = {"Path": "example/a", "Version": "v1.0.0", "Dir": str(tmp_path)}
    modules = linked([{"Module": module, "Dir": str(tmp_path)}], tmp_path)
    with pytest.raises(Incomplete, match=r"example/a v1\.0\.0: no licence"):
        notices("1.37", modules)


@pytest.mark.parametrize("minor", MINORS)
def test_the_list_has_the_versions_of_the_go_mod(minor: str) -> None:
    text = (SOURCE / MINORS[minor]).read_text(encoding="utf-8")
    wanted = dict(re.findall(r"^\s+(\S+) (v\S+)", text, re.MULTILINE))
    wanted |= dict(re.findall(r"^\s+(\S+) => \S+ (v\S+)", text, re.MULTILINE))
    rows = list(csv.DictReader(LIST.read_text(encoding="utf-8").splitlines()))
    assert len(rows) > 100
    assert {row["module"]: row[minor] for row in rows if row[minor] and row[minor] != wanted.get(row["module"])} == {}


def test_manifests_name_the_image_of_the_release_that_is_built() -> None:
    [version] = re.findall(r"^\s+k8s\.io/kubernetes (v\S+)", (SOURCE / "go.mod").read_text(), re.MULTILINE)
    found = {
        name
        for path in [*sorted(KUBERNETES.rglob("*.yaml")), ROOT / "docs" / "kube-scheduler.md"]
        for name in re.findall(r"podtrail-kube-scheduler:v[\d.]*\d", path.read_text(encoding="utf-8"))
    }
    assert found == {f"podtrail-kube-scheduler:{version}"}
