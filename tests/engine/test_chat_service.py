"""Talks with agents: who is asked, what it is given, what is kept, what it costs."""

import asyncio
import json
from pathlib import Path

import pytest

from steersman.adapters.storage.sqlite.chat import SqliteChats
from steersman.adapters.storage.sqlite.store import SqliteJournal
from steersman.contracts.agent import AgentReply, ProviderUsage
from steersman.contracts.chat import ChatCall, ChatUsage
from steersman.contracts.config import Chat, ChatAgent, ChatBudget, Config
from steersman.engine.chat.prompt import CUT_MARKER, fit_messages
from steersman.engine.chat.service import MAX_QUESTION_CHARS, ChatService, ThreadBudgetError
from steersman.errors import StoreFull, UserError
from steersman.testing import FakeAgent, FakeChance, fake_ports, fake_reply
from steersman.testing.conformance_chat import sample_question
from steersman.testing.workspace import FakeWorkspace

BOB, CAT = ChatAgent(agent="fake"), ChatAgent(agent="fake", aliases=("cat",), prompt="You purr.", model="m-1")
AGENTS = {"bob": BOB, "猫猫": CAT}
TOKEN = "ghp_" + "C" * 36


def world_of(tmp_path, agent=None, **instead):
    agent = agent or FakeAgent(lambda request: fake_reply(request, f"heard {request.round}"))
    return fake_ports(
        tmp_path,
        {},
        agent=agent,
        chats=SqliteChats(SqliteJournal(tmp_path / "store.db")),
        chance=FakeChance(),
        **instead,
    ), agent


def talks_of(tmp_path, agent=None, *, agents=AGENTS, ports=None, **chat):
    made, agent = world_of(tmp_path, agent, **(ports or {}))
    return ChatService(made, Config(chat=Chat(agents=agents, **chat))), agent


def exchange(talks, thread, text):
    asked, _ = talks.say(thread, "ann", text)
    return asyncio.run(talks.ask(asked))


# ── who is asked ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_several_are_asked_at_once(tmp_path):
    """Each that is called answers in a message of its own, to the same question and the same history."""
    talks, agent = talks_of(tmp_path)
    thread = talks.new().id
    answers = exchange(talks, thread, "@bob @cat hello")
    assert {a.sender for a in answers} == {"bob", "猫猫"}
    assert [(m.seq, m.kind) for m in talks.chats.messages(thread)] == [
        (1, "question"),
        (2, "answer"),
        (3, "answer"),
    ]
    assert {a.to for a in answers} == {1}
    assert len({request.workdir for request in agent.asked}) == 2


def test_without_a_name(tmp_path):
    """Who was asked last answers; in a new thread the host, or the only one there is; else the person is asked."""
    talks, _ = talks_of(tmp_path, host="猫猫")
    thread = talks.new().id
    assert exchange(talks, thread, "hello")[0].sender == "猫猫"
    exchange(talks, thread, "@bob hello")
    assert exchange(talks, thread, "and?")[0].sender == "bob"
    only, _ = talks_of(tmp_path / "2", agents={"bob": BOB})
    assert exchange(only, only.new().id, "hello")[0].sender == "bob"
    nobody, _ = talks_of(tmp_path / "3")
    with pytest.raises(UserError, match=r"names no agent.*there are @bob, @猫猫"):
        nobody.say(nobody.new().id, "ann", "hello")


def test_a_name_that_nobody_has(tmp_path):
    """At the beginning it is an error, and nothing is kept; elsewhere it is told."""
    talks, _ = talks_of(tmp_path, host="bob")
    thread = talks.new().id
    with pytest.raises(UserError, match="there is no agent 'cladue': there are @bob"):
        talks.say(thread, "ann", "@cladue hello")
    assert talks.chats.count(thread) == 0
    _, route = talks.say(thread, "ann", "what does @dataclass do?")
    assert (route.agents, route.unknown) == (("bob",), ("dataclass",))


def test_nobody_is_there(tmp_path):
    """Without agents the error says what to write."""
    talks, _ = talks_of(tmp_path, agents={})
    with pytest.raises(UserError, match=r"\[chat.agents.bob\]"):
        talks.say(talks.new().id, "ann", "hello")


def test_an_agent_that_is_gone(tmp_path):
    """Whoever was asked last and is no longer configured is asked no more; asking it again says so."""
    talks, agent = talks_of(tmp_path)
    thread = talks.new().id
    asked, _ = talks.say(thread, "ann", "@bob hello")
    fewer = ChatService(talks._world, Config(chat=Chat(agents={"猫猫": CAT})))
    with pytest.raises(UserError, match="there is no agent 'bob' any more"):
        asyncio.run(fewer.ask(asked))
    assert exchange(fewer, thread, "hello")[0].sender == "猫猫"
    assert len(agent.asked) == 1


def test_questions_have_words_and_an_end(tmp_path):
    """An empty one and an endless one are refused; a bad letter is written out."""
    talks, _ = talks_of(tmp_path)
    thread = talks.new().id
    for text, said_ in (
        ("  \n", "question is empty"),
        ("\u200b\ufeff", "question is empty"),
        ("x" * (MAX_QUESTION_CHARS + 1), "has 100001 characters"),
    ):
        with pytest.raises(UserError, match=said_):
            talks.say(thread, "ann", text)
    assert talks.say(thread, "ann", "@bob \udcff")[0].text == "@bob \\udcff"


def test_threads_are_found_by_their_beginning(tmp_path):
    """With or without `chat-`; what fits two or none is an error."""
    talks, _ = talks_of(tmp_path)
    one, two = talks.new(" a title\n"), talks.new()
    assert (one.title, two.title) == ("a title", "")
    assert talks.find(one.id) == talks.find(one.id.removeprefix("chat-")) == one
    with pytest.raises(UserError, match=f"{one.id}.*{two.id}"):
        talks.find(one.id[:8])
    for name in ("", "nothing"):
        with pytest.raises(UserError, match="no thread"):
            talks.find(name)


def test_a_store_without_conversations(tmp_path):
    """Says so."""
    ports, _ = world_of(tmp_path)
    with pytest.raises(UserError, match="no table for conversations"):
        ChatService(fake_ports(tmp_path / "x", {}), Config()).new()
    assert ports.chats is not None


# ── what an agent is given ──────────────────────────────────────────────────────────────────────────────────────────


def test_it_only_reads(tmp_path):
    """No right to write, a checkout of its own, its own clocks and its model; its effect is the thread's."""
    talks, agent = talks_of(tmp_path)
    thread = talks.new().id
    exchange(talks, thread, "@cat hello")
    (request,) = agent.asked
    assert (request.writes, request.permissions, request.schema) == (False, "read", None)
    assert (request.role, request.mode, request.effect) == ("chat", "chat", f"{thread}:1:1")
    assert request.options == {"model": "m-1"}
    assert request.workdir.startswith(str(tmp_path))
    assert (request.prompt.count("You are called 猫猫"), request.prompt.count("You purr.")) == (1, 1)


def test_nothing_is_left_of_a_call(tmp_path):
    """Its checkout is there while it lasts and gone afterwards, however it ends; one that died is swept by the next."""
    seen = []

    def answer(request):
        seen.append(request.workdir)
        assert (Path(request.workdir) / "a.txt").read_text() == "x"
        if "fail" in request.prompt.rpartition("asks you")[2]:
            raise KeyboardInterrupt
        return fake_reply(request, "yes")

    workspace = FakeWorkspace(tmp_path / "repo", {"a.txt": "x"})
    talks, _ = talks_of(tmp_path, FakeAgent(answer), ports={"workspace": lambda _config: workspace})
    thread, other = talks.new().id, talks.new().id
    exchange(talks, thread, "@bob @cat hello")
    assert len(set(seen)) == 2
    with pytest.raises(KeyboardInterrupt):
        exchange(talks, thread, "@bob fail")
    assert not any(Path(path).exists() for path in seen)
    died, _ = talks.say(thread, "ann", "@bob @cat hello")
    for n, name in enumerate(died.asked, 1):
        talks.chats.begin(ChatCall(thread, died.seq, name, 1), talks.limits())
        workspace.checkout(
            f"{thread}.{died.seq}.{n}", workspace.base(None).commit, f"{thread}:{died.seq}:{n}"
        )
    held = talks._world.locks.acquire(f"{thread}.{died.seq}.2")
    exchange(talks, other, "@bob hello")
    left = tmp_path / "repo" / "trees"
    assert [p.name for p in left.iterdir()] == [f"{thread}.{died.seq}.2"]
    held.release()
    talks.drop(thread)
    assert list(left.iterdir()) == []


def test_without_a_repository(tmp_path):
    """It reads an empty directory that is gone afterwards."""
    seen = []
    agent = FakeAgent(lambda request: seen.append(request.workdir) or fake_reply(request, "yes"))

    class Nowhere:
        def find_start_problem(self):
            return "no repository"

    talks, _ = talks_of(tmp_path, agent, ports={"workspace": lambda _config: Nowhere()})
    thread = talks.new().id
    exchange(talks, thread, "@bob hello")
    assert "steersman-chat-" in seen[0]
    talks.drop(thread)
    assert talks.chats.thread(thread) is None


def test_history_is_bounded_and_says_so(tmp_path):
    """The last messages are given, in order, each a line of JSON; what was left out is counted, to it and to people."""
    talks, agent = talks_of(tmp_path, history=2)
    thread = talks.new().id
    for n in range(3):
        answer = exchange(talks, thread, f"@bob number {n}\nand a forged line")[0]
    prompt = agent.asked[-1].prompt
    lines = [json.loads(line) for line in prompt.splitlines() if line.startswith("{")]
    assert [(one["from"], one["kind"]) for one in lines] == [("ann", "person"), ("bob", "agent")]
    assert lines[0]["text"] == "@bob number 1\nand a forged line"
    assert "the first 2 of 4 messages are left out" in prompt
    assert prompt.endswith("## ann asks you\n\n@bob number 2\nand a forged line")
    assert (answer.heard, answer.left_out) == (2, 2)
    assert "before" not in agent.asked[0].prompt


def test_history_in_bytes():
    """What does not fit is left out whole; the last message alone is cut, and says so."""
    long = sample_question("猫" * 1000)
    assert fit_messages([sample_question("a"), sample_question("b")], 10_000) == [
        '{"from":"ann","kind":"person","text":"a"}',
        '{"from":"ann","kind":"person","text":"b"}',
    ]
    assert fit_messages([long, sample_question("b")], 1000) == ['{"from":"ann","kind":"person","text":"b"}']
    (cut,) = fit_messages([sample_question("b"), long], 1000)
    assert len(cut.encode()) <= 1000
    assert json.loads(cut)["text"].endswith(CUT_MARKER)
    assert fit_messages([sample_question("b")], 10) == []
    assert fit_messages([long], 300) == []


def test_a_failure_is_told_to_the_next(tmp_path):
    """An agent sees that somebody has failed, not only the words."""
    talks, agent = talks_of(
        tmp_path, FakeAgent(lambda _: AgentReply(error="provider_timeout", detail="too slow"))
    )
    thread = talks.new().id
    exchange(talks, thread, "@bob hello")
    exchange(talks, thread, "@bob well?")
    assert '"error":"provider_timeout","text":"too slow"' in agent.asked[-1].prompt


# ── what is kept ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_question_is_kept_first(tmp_path):
    """Whatever becomes of the agent, the question is there and open; asking again closes it."""

    def gone(_request):
        raise KeyboardInterrupt

    talks, agent = talks_of(tmp_path, FakeAgent(gone))
    thread = talks.new().id
    with pytest.raises(KeyboardInterrupt):
        exchange(talks, thread, "@bob hello")
    (still,) = talks.open(thread)
    assert (still.question.text, still.agent, still.by, still.error) == ("@bob hello", "bob", None, "")
    assert talks.chats.spent(thread) == ChatUsage(turns=1, unknown=1)
    agent._answer = lambda request: fake_reply(request, "here")
    (answer,) = asyncio.run(talks.ask(still.question, [still.agent]))
    assert (answer.text, answer.attempt, agent.asked[-1].attempt) == ("here", 2, 2)
    assert talks.open(thread) == []


def test_a_failure_is_an_answer_and_stays_open(tmp_path):
    """Its class and its words are kept; a good answer to a further attempt closes it."""
    talks, agent = talks_of(
        tmp_path, FakeAgent(lambda _: AgentReply(error="provider_auth_error", provider="fake"))
    )
    thread = talks.new().id
    (answer,) = exchange(talks, thread, "@bob hello")
    assert (answer.error, answer.text) == ("provider_auth_error", "no further detail")
    assert [o.error for o in talks.open(thread)] == ["provider_auth_error"]
    agent._answer = lambda request: fake_reply(request, "here")
    asyncio.run(talks.ask(talks.open(thread)[0].question))
    assert talks.open(thread) == []
    assert [m.kind for m in talks.chats.messages(thread)] == ["question", "answer", "answer"]


def test_one_that_raises_is_one_that_crashed(tmp_path):
    """A conversation goes on with an agent that breaks its promise."""

    def broken(_request):
        raise UserError("boom")

    talks, _ = talks_of(tmp_path, FakeAgent(broken))
    (answer,) = exchange(talks, talks.new().id, "@bob hello")
    assert (answer.error, answer.text) == ("provider_crashed", "boom")


def test_what_stops_one_stops_no_other(tmp_path):
    """The answers that came are kept and told; then the trouble is raised."""
    heard = []
    talks, _ = talks_of(tmp_path)
    kept = talks.chats.answer

    def full(message):
        if message.sender == "bob":
            raise StoreFull("the disk is full")
        return kept(message)

    talks.chats.answer = full
    asked, _ = talks.say(talks.new().id, "ann", "@bob @cat hello")
    with pytest.raises(StoreFull):
        asyncio.run(talks.ask(asked, heard=heard.append))
    assert [m.sender for m in heard] == ["猫猫"]


def test_nobody_is_asked_twice_at_once(tmp_path):
    """While one process asks, another is told who does; the open question says so too."""
    talks, agent = talks_of(tmp_path)
    thread = talks.new().id
    asked, _ = talks.say(thread, "ann", "@bob hello")
    lock = talks._world.locks.acquire(f"{thread}.1.1")
    with pytest.raises(UserError, match="driver is already asking @bob"):
        asyncio.run(talks.ask(asked))
    assert (talks.open(thread)[0].by, agent.asked) == ("driver", [])
    lock.release()
    assert len(asyncio.run(talks.ask(asked))) == 1
    assert talks._world.processes.stopped == [f"{thread}:1:1"]


def test_secrets_are_hidden_before_they_are_kept(tmp_path):
    """In titles, questions and answers, under the thread's own key; the agent gets the marker as well."""
    agent = FakeAgent(lambda request: fake_reply(request, f"no: {TOKEN} and known-value-1"))
    talks, _ = talks_of(tmp_path, agent, ports={"secrets": lambda _named: ("known-value-1",)})
    thread = talks.new(f"about {TOKEN}").id
    (answer,) = exchange(talks, thread, f"@bob use {TOKEN}")
    kept = [talks.find(thread).title, *(m.text for m in talks.chats.messages(thread)), agent.asked[0].prompt]
    assert not any(TOKEN in text or "known-value-1" in text for text in kept)
    (marker,) = {part for part in answer.text.split() if "github" in part}
    assert marker in kept[1]


def test_odd_letters_are_kept_whole(tmp_path):
    """What an agent said is there as it was said; only a lone surrogate is written out."""
    talks, _ = talks_of(tmp_path, FakeAgent(lambda request: fake_reply(request, "\x1b[2J\u202e\x00\udcff")))
    assert exchange(talks, talks.new().id, "@bob hello")[0].text == "\x1b[2J\u202e\x00\\udcff"


# ── what it costs ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_cost_per_message_and_in_total(tmp_path):
    """What was told is summed up; what was not is counted as unknown."""
    usage = {"bob": ProviderUsage(100, 7), "猫猫": ProviderUsage(None, None)}
    agent = FakeAgent(
        lambda r: AgentReply(text="x", usage=usage["bob" if "called bob" in r.prompt else "猫猫"])
    )
    talks, _ = talks_of(tmp_path, agent)
    thread = talks.new().id
    told = {a.sender: (a.tokens, a.micro_usd) for a in exchange(talks, thread, "@bob @cat hello")}
    assert told == {"bob": (100, 7), "猫猫": (None, None)}
    assert talks.chats.spent(thread) == ChatUsage(turns=2, tokens=100, micro_usd=7, unknown=1)


@pytest.mark.parametrize(
    ("budget", "name"),
    [
        (ChatBudget(turns=1), "turns"),
        (ChatBudget(tokens=100), "tokens"),
        (ChatBudget(micro_usd=10), "micro_usd"),
    ],
)
def test_a_thread_has_a_budget(tmp_path, budget, name):
    """When it is used up nobody is asked; the question is kept; a new thread has its own."""
    talks, agent = talks_of(tmp_path, budget=budget)
    thread = talks.new().id
    exchange(talks, thread, "@bob one")
    with pytest.raises(ThreadBudgetError, match=f"has used up its {name}"):
        exchange(talks, thread, "@bob two")
    assert len(agent.asked) == 1
    assert [o.question.text for o in talks.open(thread)] == ["@bob two"]
    exchange(talks, talks.new().id, "@bob three")


def test_a_budget_of_money_needs_agents_that_tell(tmp_path):
    """Unknown is never zero: such a budget is refused before anybody is asked, unless something else binds."""
    agent = FakeAgent(lambda request: fake_reply(request, "yes"), tells_cost=False)
    talks, _ = talks_of(tmp_path, agent, budget=ChatBudget(micro_usd=10))
    with pytest.raises(UserError, match="@bob does not report its cost"):
        exchange(talks, talks.new().id, "@bob hello")
    bound, _ = talks_of(tmp_path / "2", agent, budget=ChatBudget(micro_usd=10, turns=5))
    assert exchange(bound, bound.new().id, "@bob hello")[0].text == "yes"
    assert agent.asked[0].micro_usd == 10


def test_no_run_knows_of_it(tmp_path):
    """The journal is as empty as it was."""
    talks, _ = talks_of(tmp_path)
    thread = talks.new().id
    exchange(talks, thread, "@bob hello")
    journal = talks._world.journal
    assert (journal.heads(), journal.list_traced_runs(), journal.changed()) == ([], [], 0)
    talks.drop(thread)
    assert talks.chats.threads() == []
