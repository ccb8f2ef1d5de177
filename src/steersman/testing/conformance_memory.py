"""What every adapter of the `Memories` port has to do; a test module inherits the suite and supplies one fixture.

    class TestMine(MemoriesConformance):
        @pytest.fixture
        def memories(self, tmp_path): ...   # nothing was ever kept; KNOWN is a secret of this machine

**Invariant:** speaks to the adapter through the port alone.
"""

import threading
from collections.abc import Iterable
from typing import Any

import pytest

from steersman.contracts.planning.context import MemoryRecord, RecalledMemory
from steersman.errors import NoMemory, UserError
from steersman.judges.planning.memory_words import MAX_PACKED_MEMORIES
from steersman.ports.memory import Memories

MEMORY_TIME = "2026-01-25T09:30:00Z"
LATER_MEMORY_TIME = "2026-01-26T09:30:00Z"
SENSITIVE_TEXT = "correct-horse-battery"


def add_memories(
    memories: Memories, *texts: str, at: str = MEMORY_TIME, scope: str = "project", subject: str = ""
) -> list[str]:
    """Keeps texts and gives their names."""
    return [memories.add(text, scope=scope, subject=subject, created_at=at)[0].id for text in texts]


def memory_texts(memories: Iterable[MemoryRecord | RecalledMemory]) -> list[str]:
    """What some memories say."""
    return [memory.text for memory in memories]


class MemoriesConformance:
    """One claim of the port per method; `memories` comes from the inheriting class."""

    def test_nothing_was_ever_kept(self, memories: Memories) -> None:
        """Whatever is asked, the answer is that there is no memory: not an empty one."""
        for ask in (
            lambda: memories.search("x"),
            memories.entries,
            lambda: memories.forget("mem_000000000000"),
            lambda: memories.pack("x", "shop"),
        ):
            with pytest.raises(NoMemory):
                ask()

    def test_what_is_added_is_there(self, memories: Memories) -> None:
        """Every field comes back; the name is the content's."""
        added = memories.add("  Use uv, not pip.  ", scope="agent", subject="coder", tags=("tools", "b", "tools"),
                             source="ann", created_at=MEMORY_TIME)  # fmt: skip
        memory, new = added
        assert (new, memory.text, memory.scope, memory.subject) == (
            True,
            "Use uv, not pip.",
            "agent",
            "coder",
        )
        assert (memory.tags, memory.source, memory.created_at) == (("b", "tools"), "ann", MEMORY_TIME)
        assert memories.entries() == memories.search("uv") == [memory]

    def test_adding_twice_keeps_one(self, memories: Memories) -> None:
        """The first stays as it was; another scope or subject is another memory."""
        first, _ = memories.add("a", created_at=MEMORY_TIME)
        assert memories.add("a", tags=("later",), created_at=LATER_MEMORY_TIME) == (first, False)
        assert memories.add("a", scope="repo", created_at=MEMORY_TIME)[1]
        assert memories.add("a", scope="task", subject="t1", created_at=MEMORY_TIME)[1]
        assert len(memories.entries()) == 3

    def test_what_is_about_a_task_or_an_agent_names_it(self, memories: Memories) -> None:
        """Without a subject it is unknown which one is meant; nothing is kept."""
        for scope in ("task", "agent"):
            for subject in ("", "  "):
                with pytest.raises(UserError, match=f"about one {scope}: name it with --subject"):
                    memories.add("a", scope=scope, subject=subject, created_at=MEMORY_TIME)
        with pytest.raises(NoMemory):
            memories.entries()

    def test_the_youngest_are_listed_first(self, memories: Memories) -> None:
        """Then by name, as many as are wanted, of the scopes and the subject that are wanted."""
        add_memories(memories, "old", "old too")
        add_memories(memories, "new", at=LATER_MEMORY_TIME)
        add_memories(memories, "of a task", scope="task", subject="t1")
        assert memory_texts(memories.entries())[0] == "new"
        assert memory_texts(memories.entries(limit=1)) == ["new"]
        assert memory_texts(memories.entries(limit=0)) == []
        assert memory_texts(memories.entries(scopes=("task",))) == ["of a task"]
        assert memory_texts(memories.entries(scopes=("task",), subject="t2")) == []
        same = [m.id for m in memories.entries(scopes=("project",))[1:]]
        assert same == sorted(same)

    def test_the_best_are_found_first(self, memories: Memories) -> None:
        """By how rare the words are that fit, how often, and how short the text is; nothing that has none of them."""
        add_memories(
            memories,
            "deploy with care on fridays and never alone",
            "deploy deploy",
            "lunch is at noon",
            "tests first",
        )
        assert memory_texts(memories.search("deploy")) == [
            "deploy deploy",
            "deploy with care on fridays and never alone",
        ]
        assert memory_texts(memories.search("tests deploy"))[0] == "tests first"
        assert memory_texts(memories.search("breakfast")) == []
        assert memory_texts(memories.search("deploy", limit=1)) == ["deploy deploy"]

    def test_equal_ones_have_an_order(self, memories: Memories) -> None:
        """The younger first, then by name; asked again, the same."""
        add_memories(memories, "alpha one", "alpha two", "other", "more", "words")
        add_memories(memories, "alpha six", at=LATER_MEMORY_TIME)
        results = memories.search("alpha")
        assert results[0].text == "alpha six"
        assert [m.id for m in results[1:]] == sorted(m.id for m in results[1:])
        assert memories.search("alpha") == results

    def test_words_are_found_by_their_beginning_and_in_any_case(self, memories: Memories) -> None:
        """Letter case, width and endings make no difference; short words are taken as they are."""
        add_memories(memories, "Deployments need two approvals", "ＡＰＩ keys rotate", "goal", "x")
        assert memory_texts(memories.search("deploy APPROVAL")) == ["Deployments need two approvals"]
        assert memory_texts(memories.search("api")) == ["ＡＰＩ keys rotate"]
        assert memory_texts(memories.search("go")) == []

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("部署", True),
            ("生产部署", True),
            ("部", True),
            ("程", True),
            ("署部", False),
            ("测试", False),
            ("deploy部署", True),
        ],
    )
    def test_text_without_spaces(self, memories: Memories, query: str, found: bool) -> None:
        """Any part of two characters is found, and any single one."""
        add_memories(memories, "生产部署流程", "カタカナの言葉", "한국어 문서")
        assert ("生产部署流程" in memory_texts(memories.search(query))) is found
        assert memory_texts(memories.search("カナ")) == ["カタカナの言葉"]
        assert memory_texts(memories.search("한국")) == ["한국어 문서"]

    def test_tags_and_subjects_are_found_too(self, memories: Memories) -> None:
        """What a memory is about counts as much as what it says."""
        memories.add("x", scope="task", subject="checkout-form", tags=("payments",), created_at=MEMORY_TIME)
        assert len(memories.search("payments")) == len(memories.search("checkout")) == 1

    @pytest.mark.parametrize(
        "query",
        [
            '"',
            "a OR b",
            "NEAR(a b)",
            "words:x",
            "*",
            "a*",
            "^a",
            "-a",
            "a AND",
            "{a}",
            "''; DROP TABLE memory",
            "\x00",
            "(",
            "\ud800",
            "🙂",
        ],
    )
    def test_no_word_is_an_order(self, memories: Memories, query: str) -> None:
        """Whatever is asked for is looked for, and nothing else happens."""
        add_memories(memories, "plain text")
        assert memory_texts(memories.search(query)) == []
        assert memory_texts(memories.entries()) == ["plain text"]

    def test_scopes_and_subjects_bound_a_search(self, memories: Memories) -> None:
        """A search sees the scopes and the subject it names."""
        add_memories(memories, "alpha p")
        add_memories(memories, "alpha t", scope="task", subject="t1")
        assert memory_texts(memories.search("alpha", scopes=("task",))) == ["alpha t"]
        assert memory_texts(memories.search("alpha", subject="t1")) == ["alpha t"]
        assert memory_texts(memories.search("alpha", scopes=())) == []

    def test_what_is_forgotten_is_gone(self, memories: Memories) -> None:
        """From lists and searches; forgetting it again says that there is none; it can be learnt again."""
        name, other = add_memories(memories, "alpha beta", "alpha")
        assert memories.forget(name) is True
        assert memories.forget(name) is False
        assert (memory_texts(memories.search("beta")), memory_texts(memories.entries())) == ([], ["alpha"])
        assert memories.forget(other)
        assert memories.entries() == []
        assert memories.add("alpha beta", created_at=LATER_MEMORY_TIME)[1]

    def test_many_add_at_once(self, memories: Memories) -> None:
        """Nothing is lost, not even where nothing was there before, and the same text is kept once."""
        errors: list[BaseException] = []

        def work(name: int) -> None:
            try:
                for n in range(5):
                    add_memories(memories, f"note {name} {n}", "the same")
            except BaseException as error:
                errors.append(error)

        workers = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert errors == []
        assert len(memories.entries()) == 21

    def test_no_secret_is_kept(self, memories: Memories) -> None:
        """Neither one that is known here nor one that has the shape of one, in no field; and none is found."""
        token = "ghp_" + "a1B2c3D4e5" * 4
        memory, _ = memories.add(
            f"use {token} and {SENSITIVE_TEXT}",
            tags=(token,),
            subject=SENSITIVE_TEXT,
            source=SENSITIVE_TEXT,
            created_at=MEMORY_TIME,
        )
        stored_text = " ".join((memory.text, memory.subject, *memory.tags, memory.source))
        assert token not in stored_text
        assert SENSITIVE_TEXT not in stored_text
        assert "[redacted:" in memory.text
        assert memories.search(token) == []

    @pytest.mark.parametrize(
        "given",
        [
            {"text": " "},
            {"text": "x" * 4001},
            {"scope": "world"},
            {"created_at": "today"},
            {"tags": ("x" * 401,)},
            {"subject": "x" * 201},
        ],
    )
    def test_what_is_no_memory_is_refused(self, memories: Memories, given: dict[str, Any]) -> None:
        """With the reason, and nothing is kept."""
        with pytest.raises(UserError, match="cannot be kept as a memory"):
            memories.add(**{"text": "x", "created_at": MEMORY_TIME, **given})
        with pytest.raises(NoMemory):
            memories.entries()

    def test_a_plan_gets_those_that_fit_and_then_the_others(self, memories: Memories) -> None:
        """The others only of project and repository; the threshold is passed on, and judged by the planner."""
        add_memories(memories, "alpha", "lunch", "noon")
        add_memories(memories, "of a task", scope="task", subject="t1")
        pack = memories.pack("alpha", "shop", threshold=3)
        assert (pack.project_id, pack.query, pack.threshold) == ("shop", "alpha", 3)
        assert [m.id for m in pack.memories] == sorted(m.id for m in pack.memories)
        assert sorted(memory_texts(pack.memories)) == ["alpha", "lunch", "noon"]
        assert "of a task" in memory_texts(memories.pack("task", "shop").memories)
        assert memory_texts(memories.pack("alpha", "shop", scopes=("task",)).memories) == []

    def test_a_plan_gets_a_bounded_number(self, memories: Memories) -> None:
        """Twenty, the best of them."""
        add_memories(memories, *(f"note {n}" for n in range(MAX_PACKED_MEMORIES + 5)), "alpha")
        pack = memories.pack("alpha", "shop")
        assert len(pack.memories) == MAX_PACKED_MEMORIES
        assert "alpha" in memory_texts(pack.memories)
        assert pack == memories.pack("alpha", "shop")
