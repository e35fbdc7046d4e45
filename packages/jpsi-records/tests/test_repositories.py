"""The trees that a `git_tree` selects: those that git itself reports, of the named repository only."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fake_dispatcher import finish, prepare_round, spec, start
from jpsi_records.errors import InvalidRequestError, StoreError
from jpsi_records.files.repositories import Repositories
from jpsi_records.inbox.inbox import Inbox
from jpsi_records.model.mounts import GitTree
from jpsi_records.records.records import Records

Git = Callable[..., str]


def git_in(repository: Path) -> Git:
    """Return a function that runs git in a new repository, with no configuration but a name."""
    who = [it for key in ("user.name", "user.email") for it in ("-c", f"{key}=a@b")]
    count = 0

    def git(*words: str) -> str:
        nonlocal count
        count += 1
        when = f"{1_700_000_000 + count} +0000"
        variables = {"GIT_COMMITTER_DATE": when, "GIT_AUTHOR_DATE": when, "PATH": "/usr/bin:/bin"}
        variables |= {"HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
        command = ["git", "-C", str(repository), *who, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=variables).stdout

    repository.mkdir(parents=True, exist_ok=True)
    git("init", "--quiet", "--initial-branch=main")
    return git


def commit(git: Git, repository: Path, text: str, name: str = "f") -> str:
    """Commit a file with a text and return the commit."""
    (repository / name).write_text(text)
    git("add", name)
    git("commit", "--quiet", "--message", text)
    return git("rev-parse", "HEAD").strip()


def tip(repository: Path) -> str:
    """Return the commit that is HEAD."""
    command = ["git", "-C", str(repository), "rev-parse", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repositories(tmp_path: Path) -> Repositories:
    return Repositories(tmp_path / "records" / "git")


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Return a repository: 1 - 2 - 3 on main, 1 - 2 - 4 - 5 on bugfix; HEAD is main."""
    repository = tmp_path / "history"
    git = git_in(repository)
    for text in ("1", "2"):
        commit(git, repository, text)
    git("checkout", "--quiet", "-b", "bugfix")
    for text in ("4", "5"):
        commit(git, repository, text)
    git("tag", "--annotate", "--message", "v1", "v1")
    git("checkout", "--quiet", "main")
    commit(git, repository, "3")
    return repository


def contents(repositories: Repositories, target: Path, mount: GitTree) -> list[str]:
    """Return the text of the file `f` in each tree that a mount selects."""
    found = []
    for number, tree in enumerate(repositories.resolve(mount)):
        repositories.lay_out(tree, target / str(number))
        found.append((target / str(number) / "f").read_text())
    return found


@pytest.mark.clause("records-git-revisions")
@pytest.mark.parametrize(
    ("revisions", "expected"),
    [
        ("main", ["3", "2", "1"]),
        ("HEAD", ["3", "2", "1"]),
        ("HEAD~1", ["2", "1"]),
        ("main..bugfix", ["5", "4"]),
        ("..bugfix", ["5", "4"]),
        ("bugfix..", ["3"]),
        ("bugfix..main", ["3"]),
        ("main...bugfix", ["3", "5", "4"]),
        ("^main bugfix", ["5", "4"]),
        ("bugfix ^bugfix~1", ["5"]),
        ("bugfix^!", ["5"]),
        ("bugfix^-", ["5"]),
        ("v1^!", ["5"]),
        ("refs/heads/main^!", ["3"]),
        ("'main^{/2}^!'", ["2"]),
    ],
)
def test_revisions_are_those_that_git_lists(
    repositories: Repositories, history: Path, tmp_path: Path, revisions: str, expected: list[str]
) -> None:
    mount = GitTree(url=str(history), revisions=revisions)

    assert contents(repositories, tmp_path / "laid", mount) == expected


@pytest.mark.clause("records-git-commit")
@pytest.mark.parametrize(
    ("name", "expected"),
    [("main", "3"), ("HEAD", "3"), ("HEAD~1", "2"), ("v1", "5"), ("v1~1", "4"), (":/4", "4")],
)
def test_a_commit_is_the_one_that_git_resolves(
    repositories: Repositories, history: Path, tmp_path: Path, name: str, expected: str
) -> None:
    mount = GitTree(url=str(history), commit=name)

    assert contents(repositories, tmp_path / "laid", mount) == [expected]


@pytest.mark.parametrize(
    "mount",
    [
        {"commit": "no-such"},
        {"commit": "main..bugfix"},
        {"commit": "^main"},
        {"commit": "main:f"},
        {"revisions": "main..no-such"},
        {"revisions": "main..main"},
        {"revisions": "main no-such"},
    ],
    ids=lambda it: " ".join(it.values()),
)
def test_a_commit_that_git_does_not_know_is_refused(
    repositories: Repositories, history: Path, mount: dict[str, str]
) -> None:
    with pytest.raises(StoreError, match=r"has no commit|failed"):
        repositories.resolve(GitTree(url=str(history), **mount))


@pytest.mark.parametrize(
    "revisions", ["main --all", "--all", "'--glob=*'", "main 'quote", "  ", "main\0", "main\nHEAD --not"]
)
def test_an_option_of_git_is_no_revision(revisions: str) -> None:
    tree = {"kind": "git_tree", "url": "/r", "revisions": revisions}

    with pytest.raises(InvalidRequestError, match="revisions"):
        spec("a", mounts={"/src": tree})


def test_repositories_with_a_common_prefix_are_distinct(repositories: Repositories, tmp_path: Path) -> None:
    # a file name is not longer than 255 bytes
    beginning = tmp_path / ("a" * 120)
    for name in ("one", "two"):
        place = beginning / name
        commit(git_in(place), place, name)

    found = [
        contents(repositories, tmp_path / "laid" / name, GitTree(url=str(beginning / name), commit="main"))
        for name in ("one", "two", "one")
    ]

    assert found == [["one"], ["two"], ["one"]]
    subprocess.run(["git", "-C", str(beginning / "two"), "branch", "only"], check=True)
    assert repositories.resolve(GitTree(url=str(beginning / "two"), commit="only"))
    for foreign in ("only", tip(beginning / "two")[:12]):
        with pytest.raises(StoreError, match="has no commit"):
            repositories.resolve(GitTree(url=str(beginning / "one"), commit=foreign))


def test_commits_of_another_repository_are_not_found(repositories: Repositories, tmp_path: Path) -> None:
    commits = {}
    for name in ("one", "two"):
        git = git_in(tmp_path / name)
        commits[name] = commit(git, tmp_path / name, name)
        git("branch", f"only-in-{name}")
        repositories.resolve(GitTree(url=str(tmp_path / name), commit="main"))

    for stranger in ("only-in-two", commits["two"][:7], f"{commits['two']}"):
        with pytest.raises(StoreError, match="has no commit"):
            repositories.resolve(GitTree(url=str(tmp_path / "one"), commit=stranger))


def test_a_deleted_branch_selects_nothing(repositories: Repositories, history: Path) -> None:
    tree = GitTree(url=str(history), commit="bugfix")
    (before,) = repositories.resolve(tree)
    subprocess.run(["git", "-C", str(history), "branch", "-D", "bugfix"], check=True, capture_output=True)

    with pytest.raises(StoreError, match="has no commit bugfix"):
        repositories.resolve(tree)
    # trees that an execution used stay
    repositories.lay_out(before, history.parent / "laid")
    assert (history.parent / "laid" / "f").read_text() == "5"


def test_a_branch_may_take_the_place_of_a_directory_of_branches(
    repositories: Repositories, tmp_path: Path
) -> None:
    repository = tmp_path / "r"
    git = git_in(repository)
    commit(git, repository, "1")
    git("branch", "a/b")
    repositories.resolve(GitTree(url=str(repository), commit="a/b"))
    git("branch", "-D", "a/b")
    git("branch", "a")

    assert contents(repositories, tmp_path / "laid", GitTree(url=str(repository), commit="a")) == ["1"]


def test_head_follows_the_repository(repositories: Repositories, history: Path, tmp_path: Path) -> None:
    head = GitTree(url=str(history), commit="HEAD")
    found = [contents(repositories, tmp_path / "main", head)]
    for name, place in (("branch", "bugfix"), ("commit", "bugfix~1")):
        command = ["git", "-C", str(history), "checkout", "--quiet", place]
        subprocess.run(command, check=True, capture_output=True)
        found.append(contents(repositories, tmp_path / name, head))

    commit(git_in(history), history, "6")
    found.append(contents(repositories, tmp_path / "no branch has it", head))
    assert found == [["3"], ["5"], ["4"], ["6"]]


def test_a_repository_cannot_replace_the_content_of_a_hash(
    repositories: Repositories, tmp_path: Path
) -> None:
    repository = tmp_path / "r"
    git = git_in(repository)
    first = commit(git, repository, "1")
    git("replace", first, commit(git, repository, "2"))

    assert contents(repositories, tmp_path / "laid", GitTree(url=str(repository), commit=first)) == ["1"]


@pytest.mark.parametrize(
    "url",
    [
        "x" * 5000,
        "file:///" + "x" * 300,
        "ext::sh -c 'touch hostile'",
        "ssh://-oProxyCommand=touch hostile/r",
        "file:///no/such",
        "../no-such",
        "./a*b",
        "\u2028\x1b[31m",
    ],
    ids=lambda it: ascii(it[:20]),
)
def test_a_hostile_url_is_refused_and_does_nothing(
    repositories: Repositories, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(StoreError):
        repositories.resolve(GitTree(url=url, commit="main"))
    assert not (tmp_path / "hostile").exists()


def test_a_path_with_a_line_break_is_refused() -> None:
    tree = {"kind": "git_tree", "url": "/r", "commit": "main", "path": "/a\nHEAD:b"}

    with pytest.raises(InvalidRequestError, match="path cannot hold a line break"):
        spec("a", mounts={"/src": tree})


@pytest.mark.parametrize("url", ["--upload-pack=touch hostile", "a\0b", "a\nb", ""], ids=repr)
def test_an_invalid_url_is_refused_immediately(url: str) -> None:
    with pytest.raises(InvalidRequestError, match="url must be"):
        spec("a", mounts={"/src": {"kind": "git_tree", "url": url, "commit": "main"}})


def test_a_relative_path_as_url_becomes_absolute(
    repositories: Repositories, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for folder in ("one", "two"):
        place = tmp_path / folder / "r"
        commit(git_in(place), place, folder)
        monkeypatch.chdir(tmp_path / folder)
        found.append(contents(repositories, tmp_path / "laid" / folder, GitTree(url="r", commit="main")))

    assert found == [["one"], ["two"]]
    with pytest.raises(StoreError, match="has no commit"):
        repositories.resolve(GitTree(url="r", commit=tip(tmp_path / "one" / "r")[:12]))


def test_a_relative_repository_is_that_of_the_submitting_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("one", "two"):
        commit(git_in(tmp_path / folder / "r"), tmp_path / folder / "r", folder)
    with Records(tmp_path / "records", user="ca") as records:
        first = records.submit(spec("a"))
        mounts = {"/src": {"kind": "git_tree", "url": "r", "commit": "main"}}
        monkeypatch.chdir(tmp_path / "one")
        waits = records.submit(spec("b", mounts=mounts, after=[first.id]))
        draft = records.draft(spec("b", mounts=mounts))
        changed = records.update(records.draft(spec("c")).id, spec("b", mounts=mounts))
        job = Inbox({"JPSI_EXECUTION": "x", "JPSI_INBOX": str(tmp_path)})
        document = json.loads((tmp_path / f"{job.submit(spec('b', mounts=mounts))}.json").read_text())
        monkeypatch.chdir(tmp_path / "two")

        start(records, first.execution or "")
        finish(records, first.execution or "")
        prepare_round(records)
        for it in (draft, changed):
            records.commit(it.id)

        found = [records.request(it.id).execution or "" for it in (waits, draft, changed)]
        tree = records.repositories.resolve(GitTree(url="../one/r", commit="main"))[0].tree or ""
        assert [tree in records.execution(it).preimage for it in found] == [True, True, True]
        assert document["request_spec"]["mounts"]["/src"]["url"] == str(tmp_path / "one" / "r")


def test_refs_that_git_writes_for_itself_are_no_commits_of_the_repository(
    repositories: Repositories, history: Path
) -> None:
    with pytest.raises(StoreError, match="has no commit"):
        repositories.resolve(GitTree(url=str(history), commit="FETCH_HEAD"))


def test_a_tree_is_materialized_unchanged_under_any_configuration(
    repositories: Repositories, history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "attributes").write_text("* filter=loud\n")
    (home / ".gitconfig").write_text(
        f'[core]\nautocrlf = true\nattributesFile = {home}/attributes\n[filter "loud"]\nsmudge = echo loud\n'
    )
    monkeypatch.setenv("HOME", str(home))
    commit(git_in(history), history, "one\ntwo\n")

    tree = GitTree(url=str(history), commit="main")
    repositories.lay_out(repositories.resolve(tree)[0], tmp_path / "laid")

    assert (tmp_path / "laid" / "f").read_bytes() == b"one\ntwo\n"


def test_trees_that_an_older_version_fetched_are_materialized(
    repositories: Repositories, tmp_path: Path
) -> None:
    git = git_in(tmp_path / "r")
    commit(git, tmp_path / "r", "1")
    tree = git("rev-parse", "HEAD^{tree}").strip()
    old = ["git", "clone", "--quiet", "--bare", str(tmp_path / "r"), str(tmp_path / "records" / "git")]
    subprocess.run(old, check=True, capture_output=True)

    repositories.lay_out(GitTree(tree=tree), tmp_path / "laid")

    assert (tmp_path / "laid" / "f").read_text() == "1"


def test_of_many_commits_each_content_is_found_once(repositories: Repositories, tmp_path: Path) -> None:
    repository = tmp_path / "r"
    git = git_in(repository)
    for number in range(5):
        commit(git, repository, str(number), f"other{number}")
    commit(git, repository, "1")

    found = repositories.resolve(GitTree(url=str(repository), revisions="main", path="/f"))
    nothing = GitTree(url=str(repository), revisions="main", path="/no where")

    assert len(found) == 1
    assert found[0].blob is not None
    with pytest.raises(StoreError, match="has no /no where in main"):
        repositories.resolve(nothing)
