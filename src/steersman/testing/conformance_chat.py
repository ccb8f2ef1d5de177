"""What every adapter of the `Chats` port has to do; a test module inherits the suite and supplies one fixture.

    class TestMine(ChatsConformance):
        @pytest.fixture
        def chats(self, tmp_path): ...   # empty

**Invariant:** speaks to the adapter through the port alone.
"""

import threading

import pytest

from steersman.contracts.chat import ChatCall, ChatLimits, ChatMessage, ChatThread, ChatUsage
from steersman.errors import OverBudget, StaleError, UserError
from steersman.ports.chat import Chats

CHAT_TIME = 1_767_225_600_000
CHAT_THREAD = ChatThread("chat-1", "", CHAT_TIME, CHAT_TIME)
NO_CHAT_LIMIT = ChatLimits()


def sample_question(
    text: str = "hello", *, thread: str = "chat-1", at: int = CHAT_TIME, agents: tuple[str, ...] = ("bob",)
) -> ChatMessage:
    """What a person asks."""
    return ChatMessage(thread=thread, kind="question", sender="ann", text=text, at=at, asked=agents)


def sample_answer(to: int, text: str = "hi", *, attempt: int = 1, sender: str = "bob", tokens: int | None = 10,
           micro_usd: int | None = 5, thread: str = "chat-1") -> ChatMessage:  # fmt: skip
    """What an agent answers."""
    return ChatMessage(thread=thread, kind="answer", sender=sender, text=text, at=CHAT_TIME + 1, to=to, attempt=attempt,
                   provider="fake", model="f-1", ms=7, tokens=tokens, micro_usd=micro_usd)  # fmt: skip


class ChatsConformance:
    """One claim of the port per method; `chats` comes from the inheriting class."""

    def test_nothing_is_there(self, chats: Chats) -> None:
        """Whatever is asked for by name is not there, and lists are empty."""
        assert (chats.thread("x"), chats.key("x"), chats.threads(), chats.find_threads("")) == (
            None,
            None,
            [],
            [],
        )
        assert (chats.messages("x"), chats.count("x"), chats.spent("x")) == ([], 0, ChatUsage())
        assert chats.drop("x") is False

    def test_what_was_begun_and_has_no_answer(self, chats: Chats) -> None:
        """Listed by its question, in whatever thread, once; not what was never begun, nor what has been answered."""
        two = ChatThread("chat-2", "", CHAT_TIME, CHAT_TIME)
        assert chats.unanswered() == []
        for thread in (CHAT_THREAD, two):
            chats.open(thread, b"k")
            posed = chats.add_question(sample_question(thread=thread.id, agents=("bob", "cat")))
            chats.add_question(sample_question("never begun", thread=thread.id))
            for name in posed.asked:
                chats.begin(ChatCall(thread.id, posed.seq, name, CHAT_TIME), NO_CHAT_LIMIT)
        assert [(m.thread, m.seq, m.asked) for m in chats.unanswered()] == [
            ("chat-1", 1, ("bob", "cat")),
            ("chat-2", 1, ("bob", "cat")),
        ]
        chats.answer(sample_answer(1))
        chats.begin(ChatCall("chat-1", 1, "cat", CHAT_TIME), NO_CHAT_LIMIT)
        assert [m.thread for m in chats.unanswered()] == ["chat-1", "chat-2"]
        chats.answer(sample_answer(1, sender="cat", attempt=2))
        assert [m.thread for m in chats.unanswered()] == ["chat-2"]
        chats.drop("chat-2")
        assert chats.unanswered() == []

    def test_a_thread_is_opened_once(self, chats: Chats) -> None:
        """It is there as it was given; a second one of its name is refused and changes nothing."""
        chats.open(CHAT_THREAD, b"k" * 32)
        with pytest.raises(StaleError, match="chat-1 exists already"):
            chats.open(ChatThread("chat-1", "other", 1, 1), b"l" * 32)
        assert (chats.thread("chat-1"), chats.key("chat-1")) == (CHAT_THREAD, b"k" * 32)

    def test_what_is_said_is_there_in_order(self, chats: Chats) -> None:
        """Every field comes back, numbered from one without gaps."""
        chats.open(CHAT_THREAD, b"k")
        first = chats.add_question(sample_question("你好, @猫猫\nsecond line", agents=("bob", "猫猫")))
        chats.begin(ChatCall("chat-1", 1, "猫猫", CHAT_TIME), NO_CHAT_LIMIT)
        second = chats.answer(sample_answer(1, "\x1b[2J\u202e喵\x00", sender="猫猫"))
        third = chats.add_question(sample_question("third"))
        assert [m.seq for m in (first, second, third)] == [1, 2, 3]
        assert chats.messages("chat-1") == [first, second, third]
        assert (second.text, second.to, second.model, second.ms) == ("\x1b[2J\u202e喵\x00", 1, "f-1", 7)
        assert chats.count("chat-1") == 3

    def test_a_part_of_a_thread(self, chats: Chats) -> None:
        """The last so many before a number."""
        chats.open(CHAT_THREAD, b"k")
        for n in range(5):
            chats.add_question(sample_question(str(n)))
        assert [m.text for m in chats.messages("chat-1", before=5, last=2)] == ["2", "3"]
        assert [m.text for m in chats.messages("chat-1", last=2)] == ["3", "4"]
        assert [m.text for m in chats.messages("chat-1", before=3)] == ["0", "1"]
        assert chats.messages("chat-1", last=0) == []

    def test_the_thread_knows_who_was_asked_last(self, chats: Chats) -> None:
        """Its first question is its title; time only goes on; an answer changes neither."""
        chats.open(CHAT_THREAD, b"k")
        chats.add_question(sample_question("first\nmore", at=CHAT_TIME + 5, agents=("bob", "eve")))
        chats.add_question(sample_question("second", at=CHAT_TIME + 3, agents=("bob",)))
        assert chats.thread("chat-1") == ChatThread("chat-1", "first", CHAT_TIME, CHAT_TIME + 5, "bob")
        chats.add_question(sample_question("third", at=CHAT_TIME + 9, agents=()))
        thread = chats.thread("chat-1")
        assert thread is not None
        assert (thread.agent, thread.title, thread.at) == ("", "first", CHAT_TIME + 9)

    def test_threads_are_listed_by_when_something_was_said(self, chats: Chats) -> None:
        """The last one first, as many as are wanted; names are found by their beginning."""
        for n, at in ((1, CHAT_TIME), (2, CHAT_TIME + 9), (3, CHAT_TIME + 5)):
            chats.open(ChatThread(f"chat-{n}", "", at, at), b"k")
        assert [t.id for t in chats.threads()] == ["chat-2", "chat-3", "chat-1"]
        assert [t.id for t in chats.threads(1)] == ["chat-2"]
        assert chats.find_threads("chat-") == ["chat-1", "chat-2", "chat-3"]
        assert (chats.find_threads("chat-2"), chats.find_threads("%"), chats.find_threads("CHAT")) == (
            ["chat-2"],
            [],
            [],
        )

    def test_nobody_speaks_in_a_thread_that_is_not_there(self, chats: Chats) -> None:
        """Neither a question nor a call nor an answer; nothing is left of them."""
        for speak in (
            lambda: chats.add_question(sample_question()),
            lambda: chats.begin(ChatCall("chat-1", 1, "bob", CHAT_TIME), NO_CHAT_LIMIT),
            lambda: chats.answer(sample_answer(1)),
        ):
            with pytest.raises(UserError, match="no thread chat-1"):
                speak()
        assert (chats.count("chat-1"), chats.spent("chat-1")) == (0, ChatUsage())

    def test_an_answer_is_kept_once(self, chats: Chats) -> None:
        """Only to an attempt that was begun, and only the first; nothing is left of another."""
        chats.open(CHAT_THREAD, b"k")
        chats.add_question(sample_question())
        with pytest.raises(StaleError, match="waits for no such answer of bob"):
            chats.answer(sample_answer(1))
        assert chats.begin(ChatCall("chat-1", 1, "bob", CHAT_TIME), NO_CHAT_LIMIT) == 1
        chats.answer(sample_answer(1))
        for late in (
            sample_answer(1, "late"),
            sample_answer(1, attempt=2),
            sample_answer(2),
            sample_answer(1, sender="eve"),
        ):
            with pytest.raises(StaleError):
                chats.answer(late)
        assert [m.text for m in chats.messages("chat-1")] == ["hello", "hi"]
        assert chats.begin(ChatCall("chat-1", 1, "bob", CHAT_TIME), NO_CHAT_LIMIT) == 2
        assert chats.answer(sample_answer(1, "again", attempt=2)).seq == 3

    def test_what_was_spent(self, chats: Chats) -> None:
        """Each call counts from its beginning; what was not reported is unknown and never zero."""
        chats.open(CHAT_THREAD, b"k")
        chats.add_question(sample_question())
        for agent in ("a", "b", "c"):
            chats.begin(ChatCall("chat-1", 1, agent, CHAT_TIME), NO_CHAT_LIMIT)
        assert chats.spent("chat-1") == ChatUsage(turns=3, unknown=3)
        chats.answer(sample_answer(1, sender="a"))
        chats.answer(sample_answer(1, sender="b", micro_usd=None))
        assert chats.spent("chat-1") == ChatUsage(turns=3, tokens=20, micro_usd=5, unknown=2)

    @pytest.mark.parametrize("limits", [ChatLimits(turns=1), ChatLimits(tokens=10), ChatLimits(micro_usd=5)])
    def test_a_budget_that_is_used_up(self, chats: Chats, limits: ChatLimits) -> None:
        """The next call is refused before it begins, and is not counted."""
        chats.open(CHAT_THREAD, b"k")
        chats.add_question(sample_question())
        chats.begin(ChatCall("chat-1", 1, "bob", CHAT_TIME), limits)
        chats.answer(sample_answer(1))
        with pytest.raises(OverBudget):
            chats.begin(ChatCall("chat-1", 1, "bob", CHAT_TIME), limits)
        assert chats.spent("chat-1").turns == 1

    def test_many_speak_at_once(self, chats: Chats) -> None:
        """Nothing is lost, nothing has the same number."""
        chats.open(CHAT_THREAD, b"k")
        errors: list[BaseException] = []

        def speak(name: int) -> None:
            try:
                for n in range(10):
                    chats.add_question(sample_question(f"{name}.{n}"))
            except BaseException as error:
                errors.append(error)

        speakers = [threading.Thread(target=speak, args=(name,)) for name in range(4)]
        for speaker in speakers:
            speaker.start()
        for speaker in speakers:
            speaker.join()
        messages = chats.messages("chat-1")
        assert errors == []
        assert [m.seq for m in messages] == list(range(1, 41))
        for name in range(4):
            assert [m.text for m in messages if m.text.startswith(f"{name}.")] == [
                f"{name}.{n}" for n in range(10)
            ]

    def test_a_thread_is_dropped_whole(self, chats: Chats) -> None:
        """Its messages, its key and what it spent are gone; another thread keeps its own."""
        for name in ("chat-1", "chat-2"):
            chats.open(ChatThread(name, "", CHAT_TIME, CHAT_TIME), b"k")
            chats.add_question(sample_question(thread=name))
            chats.begin(ChatCall(name, 1, "bob", CHAT_TIME), NO_CHAT_LIMIT)
        assert chats.drop("chat-1") is True
        assert (chats.thread("chat-1"), chats.key("chat-1"), chats.messages("chat-1")) == (None, None, [])
        assert chats.spent("chat-1") == ChatUsage()
        assert (chats.count("chat-2"), chats.spent("chat-2").turns) == (1, 1)
