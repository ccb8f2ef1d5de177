"""What every adapter of the `Artifacts` port has to do; a test module inherits the suite and supplies two fixtures.

    class TestMine(ArtifactsConformance):
        @pytest.fixture
        def artifacts(self, tmp_path): ...   # nothing was ever written

        @pytest.fixture
        def plant(self, artifacts): ...      # plant(name, what): puts a `Stranger` there, in place of what there was

**Invariant:** speaks to the adapter through the port alone; what people do to its files comes from `plant`.
"""

from collections.abc import Callable

import pytest

from steersman.contracts.artifacts import ArtifactOnDisk
from steersman.errors import WorkspaceError
from steersman.ports.artifacts import Artifacts
from steersman.testing.files import ForeignFile

ARTIFACT_RUN = "260101-abcdef"
ARTIFACT_NAME = "code/diff.patch"
PlantForeignFile = Callable[[str, ForeignFile], None]

KIND_BY_FOREIGN_FILE = {"link": "link", "pipe": "other", "folder": "other", "unreadable": "unreadable"}
# In the place of the folder `code`.
KIND_BY_FOREIGN_PARENT = {"link": "link", "pipe": "other", "locked": "unreadable"}
COPY_NAMES = (
    ".gitignore",
    ".github/workflows/ci.yml",
    "a b/read (1), R&D #2.md",
    "app/(shop)/[...slug]/@modal/page.tsx",
    "größe/日本.md",
    "/".join(["deep"] * 13) + "/x",
    "x" * 200,
    ".1-2.part",
)
ESCAPING_NAMES = (
    "", "/", "//", "/etc/passwd", "..", ".", "../x", "code/..", "code/../x", "code//x", "code/./x", "code//", "a\0b",
    "code/files/a\0b", "code/files/../../x", "a\ud800", "/".join(["d"] * 17),
)  # fmt: skip
UNFIT_ARTIFACT_NAMES = (
    ".git", ".git/config", ".hidden", "a b", "code/", "code/files/.git", "code/files/.git/config", "code/files/.steersman/x",
    "code/files/a\nb", "code/files/a\\b", "code/files/-rf", "x" * 201,
)  # fmt: skip
UNFIT_RUN_NAMES = ("", ".", "..", "a/b", "/etc", ".git", "a\0b", "../x", "a b")


class ArtifactsConformance:
    """One claim of the port per method; `artifacts` and `plant` come from the inheriting class."""

    def test_what_was_written_is_read(self, artifacts: Artifacts) -> None:
        """Byte by byte, whatever they are; a second time replaces them; each run has its own."""
        for data in (bytes(range(256)), b"", b"x" * 100_000):
            artifacts.write(ARTIFACT_RUN, ARTIFACT_NAME, data)
            assert artifacts.read(ARTIFACT_RUN, ARTIFACT_NAME) == ArtifactOnDisk("file", data)
        artifacts.write("other", ARTIFACT_NAME, b"other", durable=True)
        assert artifacts.read(ARTIFACT_RUN, ARTIFACT_NAME).data == b"x" * 100_000
        assert artifacts.read("other", ARTIFACT_NAME).data == b"other"

    def test_what_was_not_written_is_missing(self, artifacts: Artifacts) -> None:
        """No run, no folder, no file: all the same, and nothing is made by looking."""
        for _ in range(2):
            assert artifacts.read(ARTIFACT_RUN, ARTIFACT_NAME).kind == "missing"
            assert artifacts.names(ARTIFACT_RUN, "") == artifacts.names(ARTIFACT_RUN, "code") == ()
            artifacts.remove(ARTIFACT_RUN, ARTIFACT_NAME)
        artifacts.write(ARTIFACT_RUN, "code/other", b"")
        assert artifacts.read(ARTIFACT_RUN, ARTIFACT_NAME).kind == "missing"

    def test_a_long_file_is_not_read(self, artifacts: Artifacts) -> None:
        """As many bytes as are wanted come whole, one more is too long and comes not at all."""
        artifacts.write(ARTIFACT_RUN, ARTIFACT_NAME, b"12345")
        assert artifacts.read(ARTIFACT_RUN, ARTIFACT_NAME, most=5) == ArtifactOnDisk("file", b"12345")
        artifact = artifacts.read(ARTIFACT_RUN, ARTIFACT_NAME, most=4)
        assert (artifact.kind, artifact.data, bool(artifact.detail)) == ("too_long", b"", True)

    @pytest.mark.parametrize("copy", COPY_NAMES, ids=lambda name: name[:20])
    def test_a_copy_has_the_name_of_its_file(self, artifacts: Artifacts, copy: str) -> None:
        """Below `code/files` whatever a repository may call a file is written, read, listed and removed."""
        artifacts.write(ARTIFACT_RUN, f"code/files/{copy}", copy.encode())
        assert artifacts.read(ARTIFACT_RUN, f"code/files/{copy}") == ArtifactOnDisk("file", copy.encode())
        assert artifacts.names(ARTIFACT_RUN, "code/files") == (copy,)
        artifacts.remove(ARTIFACT_RUN, f"code/files/{copy}")
        assert artifacts.names(ARTIFACT_RUN, "") == ()

    @pytest.mark.parametrize("name", ESCAPING_NAMES, ids=lambda name: repr(name[:20]))
    def test_a_name_that_leads_elsewhere_is_refused(self, artifacts: Artifacts, name: str) -> None:
        """Whatever is asked."""
        self.refuses(artifacts, ARTIFACT_RUN, name)

    @pytest.mark.parametrize("name", UNFIT_ARTIFACT_NAMES, ids=lambda name: repr(name[:20]))
    def test_a_name_that_no_artifact_has_is_not_written(self, artifacts: Artifacts, name: str) -> None:
        """One of another owner, or not the same on every disk, is refused; nothing is there to be read."""
        with pytest.raises(WorkspaceError, match="is no artifact name"):
            artifacts.write(ARTIFACT_RUN, name, b"x")
        assert artifacts.read(ARTIFACT_RUN, name).kind == "missing"
        assert artifacts.names(ARTIFACT_RUN, "") == ()

    @pytest.mark.parametrize("run", UNFIT_RUN_NAMES, ids=repr)
    def test_no_other_run_is_taken(self, artifacts: Artifacts, run: str) -> None:
        """A run is one folder and nothing above or beside it."""
        self.refuses(artifacts, run, "x")
        with pytest.raises(WorkspaceError):
            artifacts.names(run, "")

    def refuses(self, artifacts: Artifacts, run: str, name: str) -> None:
        """Nothing can be done under this name."""
        with pytest.raises(WorkspaceError, match="is no "):
            artifacts.write(run, name, b"x")
        with pytest.raises(WorkspaceError, match="is no "):
            artifacts.read(run, name)
        with pytest.raises(WorkspaceError, match="is no "):
            artifacts.remove(run, name)
        if name:
            with pytest.raises(WorkspaceError, match="is no "):
                artifacts.names(run, name)

    def test_names_are_told_from_their_folder(self, artifacts: Artifacts) -> None:
        """Sorted, at any depth, of this folder alone: not of one whose name begins alike."""
        for name in ("code/files/b", "code/files/a/z", "code/files/a/b/c", "code/filesx", "state.json"):
            artifacts.write(ARTIFACT_RUN, name, b"")
        assert artifacts.names(ARTIFACT_RUN, "code/files") == ("a/b/c", "a/z", "b")
        assert artifacts.names(ARTIFACT_RUN, "code/files/a") == ("b/c", "z")
        all_names = ("code/files/a/b/c", "code/files/a/z", "code/files/b", "code/filesx", "state.json")
        assert artifacts.names(ARTIFACT_RUN, "") == all_names
        assert artifacts.names("other", "") == ()

    def test_more_names_than_wanted_are_seen(self, artifacts: Artifacts) -> None:
        """One too many comes, so that a part is not taken for the whole."""
        for n in range(5):
            artifacts.write(ARTIFACT_RUN, f"code/files/{n}", b"")
        assert len(artifacts.names(ARTIFACT_RUN, "code", most=5)) == 5
        assert len(artifacts.names(ARTIFACT_RUN, "code", most=4)) == 5
        assert len(artifacts.names(ARTIFACT_RUN, "code", most=2)) == 3

    def test_what_is_removed_leaves_nothing(self, artifacts: Artifacts) -> None:
        """The folder that a file had to itself is gone too, so that a file can have its name; once more does nothing."""
        artifacts.write(ARTIFACT_RUN, "code/files/src/a/b", b"old")
        artifacts.write(ARTIFACT_RUN, "code/files/keep", b"kept")
        for _ in range(2):
            artifacts.remove(ARTIFACT_RUN, "code/files/src/a/b")
            assert artifacts.names(ARTIFACT_RUN, "code/files") == ("keep",)
        artifacts.write(ARTIFACT_RUN, "code/files/src", b"new")
        artifacts.remove(ARTIFACT_RUN, "code/files/src/a/b")
        assert artifacts.read(ARTIFACT_RUN, "code/files/src") == ArtifactOnDisk("file", b"new")
        assert artifacts.read(ARTIFACT_RUN, "code/files/keep") == ArtifactOnDisk("file", b"kept")

    @pytest.mark.parametrize("what", KIND_BY_FOREIGN_FILE)
    def test_a_stranger_in_its_place_is_named(
        self, artifacts: Artifacts, plant: PlantForeignFile, what: ForeignFile
    ) -> None:
        """What is no plain file is named by its kind, without a byte of it, and at once."""
        artifacts.write(ARTIFACT_RUN, ARTIFACT_NAME, b"ours")
        plant(ARTIFACT_NAME, what)
        artifact = artifacts.read(ARTIFACT_RUN, ARTIFACT_NAME)
        assert (artifact.kind, artifact.data) == (KIND_BY_FOREIGN_FILE[what], b"")
        assert "diff.patch" in artifact.detail

    @pytest.mark.parametrize("what", KIND_BY_FOREIGN_PARENT)
    def test_a_stranger_on_the_way_is_named(
        self, artifacts: Artifacts, plant: PlantForeignFile, what: ForeignFile
    ) -> None:
        """So it is when a folder has been replaced: what lies behind it is not ours."""
        artifacts.write(ARTIFACT_RUN, ARTIFACT_NAME, b"ours")
        plant("code", what)
        artifact = artifacts.read(ARTIFACT_RUN, ARTIFACT_NAME)
        assert (artifact.kind, artifact.data) == (KIND_BY_FOREIGN_PARENT[what], b"")
        assert "code" in artifact.detail
        assert artifacts.names(ARTIFACT_RUN, "code") == ("",)
        with pytest.raises(WorkspaceError, match="code"):
            artifacts.write(ARTIFACT_RUN, ARTIFACT_NAME, b"new")

    def test_a_file_on_the_way_is_named(self, artifacts: Artifacts) -> None:
        """A file where a folder belongs holds no other file; it is kept."""
        artifacts.write(ARTIFACT_RUN, "code", b"a file")
        assert artifacts.read(ARTIFACT_RUN, ARTIFACT_NAME) == ArtifactOnDisk("other", detail="code is a file")
        assert artifacts.names(ARTIFACT_RUN, "code") == ("",)
        with pytest.raises(WorkspaceError, match="code is a file"):
            artifacts.write(ARTIFACT_RUN, ARTIFACT_NAME, b"new")
        artifacts.remove(ARTIFACT_RUN, ARTIFACT_NAME)
        assert artifacts.read(ARTIFACT_RUN, "code") == ArtifactOnDisk("file", b"a file")

    def test_strangers_are_listed(self, artifacts: Artifacts, plant: PlantForeignFile) -> None:
        """A link, a pipe and a file that cannot be read by their names, a locked folder with a slash, an empty one not."""
        artifacts.write(ARTIFACT_RUN, "code/files/ours", b"")
        strangers: dict[str, ForeignFile] = {
            "l": "link",
            "p": "pipe",
            "u": "unreadable",
            "locked": "locked",
            "empty": "folder",
        }
        for name, what in strangers.items():
            plant(f"code/files/{name}", what)
        assert artifacts.names(ARTIFACT_RUN, "code/files") == ("l", "locked/", "ours", "p", "u")

    def test_whatever_is_listed_can_be_read_and_removed(
        self, artifacts: Artifacts, plant: PlantForeignFile
    ) -> None:
        """Also under a name that no artifact has; a folder that cannot be read is named as one."""
        strangers: dict[str, ForeignFile] = {
            "-rf": "link",
            "a\nb": "pipe",
            ".git/config": "unreadable",
            "no/": "locked",
        }
        for name, what in strangers.items():
            plant(f"code/files/{name.removesuffix('/')}", what)
        assert artifacts.names(ARTIFACT_RUN, "code/files") == tuple(sorted(strangers))
        for name, kind in (("-rf", "link"), ("a\nb", "other"), (".git/config", "unreadable")):
            assert artifacts.read(ARTIFACT_RUN, f"code/files/{name}").kind == kind
            artifacts.remove(ARTIFACT_RUN, f"code/files/{name}")
        assert artifacts.names(ARTIFACT_RUN, "code/files") == ("no/",)
        assert artifacts.read(ARTIFACT_RUN, "code/files/no/").kind == "unreadable"
        with pytest.raises(WorkspaceError, match="no is a folder; put that right"):
            artifacts.remove(ARTIFACT_RUN, "code/files/no/")
        assert artifacts.names(ARTIFACT_RUN, "code/files/no/") == ("",)

    def test_what_a_folder_is_replaced_by_can_be_read(
        self, artifacts: Artifacts, plant: PlantForeignFile
    ) -> None:
        """The name that says so leads to what it is now."""
        plant("code", "link")
        (name,) = artifacts.names(ARTIFACT_RUN, "code")
        assert artifacts.read(ARTIFACT_RUN, f"code/{name}").kind == "link"

    @pytest.mark.parametrize("what", ["link", "pipe", "unreadable"])
    def test_a_stranger_is_replaced_or_removed(
        self, artifacts: Artifacts, plant: PlantForeignFile, what: ForeignFile
    ) -> None:
        """Writing again puts the file there; removing takes the thing itself, not what it leads to."""
        plant(ARTIFACT_NAME, what)
        artifacts.write(ARTIFACT_RUN, ARTIFACT_NAME, b"again", durable=True)
        assert artifacts.read(ARTIFACT_RUN, ARTIFACT_NAME) == ArtifactOnDisk("file", b"again")
        plant(ARTIFACT_NAME, what)
        artifacts.remove(ARTIFACT_RUN, ARTIFACT_NAME)
        assert artifacts.read(ARTIFACT_RUN, ARTIFACT_NAME).kind == "missing"
        assert artifacts.names(ARTIFACT_RUN, "code") == ()

    def test_a_folder_is_neither_replaced_nor_removed(self, artifacts: Artifacts) -> None:
        """Its content may be a person's: it is named, and stays."""
        artifacts.write(ARTIFACT_RUN, f"{ARTIFACT_NAME}/inside", b"kept")
        acts: tuple[Callable[[], None], ...] = (
            lambda: artifacts.write(ARTIFACT_RUN, ARTIFACT_NAME, b"x"),
            lambda: artifacts.remove(ARTIFACT_RUN, ARTIFACT_NAME),
        )
        for act in acts:
            with pytest.raises(
                WorkspaceError, match=r"diff\.patch is a folder; put that right and try again"
            ):
                act()
        assert artifacts.names(ARTIFACT_RUN, "") == (f"{ARTIFACT_NAME}/inside",)

    @pytest.mark.parametrize("what", ["link", "locked"])
    def test_nothing_is_removed_behind_a_stranger(
        self, artifacts: Artifacts, plant: PlantForeignFile, what: ForeignFile
    ) -> None:
        """A folder that is a link, or cannot be opened, is named instead."""
        artifacts.write(ARTIFACT_RUN, ARTIFACT_NAME, b"ours")
        plant("code", what)
        with pytest.raises(WorkspaceError, match="code"):
            artifacts.remove(ARTIFACT_RUN, ARTIFACT_NAME)

    def test_a_runs_folder_can_be_told(self, artifacts: Artifacts) -> None:
        """The folder is a place that people can look at."""
        assert artifacts.folder(ARTIFACT_RUN).endswith(ARTIFACT_RUN)
