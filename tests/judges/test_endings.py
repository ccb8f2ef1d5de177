"""Ends of a process: those that come while tests run, and those of ordinary programs."""

import pytest

from steersman.judges.endings import END, EXITS, endings

LOADED = f"{END} when it is loaded"
BAD = [
    ("calc.js", "js", "const ok = 0;\nprocess.exit(ok);", LOADED),
    ("calc.js", "js", "process.exit(false)", LOADED),
    ("calc.js", "js", "process['exit'](0)", LOADED),
    ("calc.js", "js", "import { exit } from 'node:process';\nexit(0);", LOADED),
    ("calc.js", "js", "const { exit: quit } = process;\nquit(0);", LOADED),
    ("calc.js", "js", "const { exit } = require('process');\nexports.add = (a, b) => {\n  exit(0);\n};", END),
    ("calc.js", "js", "if (x) {\n  process.exit(0);\n}", LOADED),
    ("calc.js", "js", "(async () => {\n  process.exit(0);\n})();", LOADED),
    ("calc.js", "js", "function leave() {\n  process.exit(0);\n}\nleave();", LOADED),
    ("calc.js", "js", "const leave = () => { process.exit(0) };\nmodule.exports = leave();", LOADED),
    ("calc.js", "js", "class A {\n  static {\n    process.exit(0);\n  }\n}", LOADED),
    ("calc.js", "js", "class A {\n  add(\n    a,\n  ) {\n    process.exit(0);\n  }\n}", END),
    ("calc.js", "js", "xs.map((x) => {\n  function main() {\n    process.exit(x);\n  }\n});", END),
    ("calc.js", "js", "on('x', function () {\n  process.exit(0);\n});", END),
    ("calc.js", "js", "go(() => process.exit(0));", END),
    ("calc.js", "js", "const x = /{/;\nprocess.exit(0);\n", LOADED),
    ("server.test.js", "js", "process.on('SIGTERM', () => process.exit(0));", END),
    ("a.go", "go", "package a\n\nfunc init() {\n\tcode := 0\n\tos.Exit(code)\n}", LOADED),
    ("a.go", "go", "package a\nfunc init() { code := 0; os.Exit(code) }", LOADED),
    ("a.go", "go", "package main\n\nvar _ = func() int {\n\tos.Exit(0)\n\treturn 0\n}()", LOADED),
    ("a.go", "go", "package a\n\nfunc leave() int {\n\tos.Exit(0)\n\treturn 0\n}\n\nvar _ = leave()", LOADED),
    ("a.go", "go", "package a\n\nfunc leave() {\n\tos.Exit(0)\n}\n\nfunc init() {\n\tleave()\n}", LOADED),
    ("a.go", "go", "package a\n\nfunc (c *Calc) Add(a, b int) int {\n\tos.Exit(ok)\n}", END),
    ("src/lib.rs", "rust", "pub fn add<'a>(x: &'a str) -> i32 {\n    let code = 0;\n    std::process::exit(code)\n}", END),
    ("src/lib.rs", "rust", "fn f() { process::exit(0i32) }", END),
    ("src/lib.rs", "rust", "use std::process::exit;\nfn f(c: char) {\n    if c == '}' { exit(code) }\n}", END),
    ("Calc.java", "jvm", "class Calc {\n  static {\n    System.exit(0);\n  }\n}", LOADED),
    ("Calc.java", "jvm", "class Calc {\n  int add(int a, int b) {\n    System.exit(status);\n  }\n}", END),
    ("Calc.java", "jvm", "class Calc implements Runnable {\n  public void run() {\n    System.exit(0);\n  }\n}", END),
    ("Calc.kt", "jvm", "fun add() {\n  exitProcess(status)\n}", END),
    ("Calc.cs", "net", "class Calc\n{\n    static Calc()\n    {\n        Environment.Exit(0);\n    }\n}", LOADED),
    ("Calc.cs", "net", "class Calc\n{\n    int Add()\n    {\n        Environment.Exit(code);\n    }\n}", END),
    ("calc.php", "php", "<?php\nexit;", LOADED),
    ("calc.php", "php", "<?php\nfunction add($a) {\n  exit($code);\n}", END),
    ("calc.c", "c", "int add(int a) {\n  exit(EXIT_SUCCESS);\n}", END),
    ("calc.swift", "swift", "func add() {\n  exit(0)\n}", END),
    ("calc.dart", "dart", "int add() {\n  exit(0);\n}", END),
]  # fmt: skip
GOOD = [
    ("server.js", "js", "process.on('SIGTERM', () => server.close(() => process.exit(0)));"),
    ("calc.js", "js", "process.once(`SIGINT`, () => {\n  server.close(() => {\n    process.exit(0);\n  });\n});"),
    ("bin/cli.js", "js", "#!/usr/bin/env node\nif (args.help) { usage(); process.exit(0); }"),
    ("server.js", "js", "function closed() {\n  process.exit(0);\n}"),
    ("calc.js", "js", "async function main() {\n  process.exit(await go());\n}"),
    ("calc.js", "js", "const gracefulShutdown = async () => {\n  process.exit(0);\n};"),
    ("calc.js", "js", "process.exit(1)\nthis.exit(0)\nexit(0)"),
    ("main.go", "go", "package main\n\nfunc main() {\n\tif h {\n\t\tusage()\n\t\tos.Exit(0)\n\t}\n\tos.Exit(run())\n}"),
    ("main.go", "go", "package main\n\nfunc usage() {\n\tos.Exit(0)\n}"),
    ("a_test.go", "go", "package a\n\nfunc TestMain(m *testing.M) {\n\tos.Exit(m.Run())\n}"),
    ("a.go", "go", "package a\n\nfunc fail() {\n\tos.Exit(1)\n}"),
    ("src/main.rs", "rust", "fn main() {\n    std::process::exit(run());\n}"),
    ("src/main.rs", "rust", "fn run(a: Args) -> ! {\n    std::process::exit(if a.ok { 0 } else { 1 })\n}"),
    ("src/lib.rs", "rust", "fn f() { process::exit(101) }\nfn exit(code: i32) {}\nself.exit(x)"),
    ("Main.java", "jvm", "class Main {\n  public static void main(String[] a) {\n    System.exit(status);\n  }\n}"),
    ("login.php", "php", "<?php\nheader('Location: /');\nexit;"),
    ("a.php", "php", "<?php\nfunction go() {\n  http_response_code(204);\n  exit();\n}"),
    ("main.c", "c", "int main(int argc, char **argv) {\n  exit(0);\n}\nstatic void usage(void)\n{\n  exit(0);\n}"),
    ("a.rb", "ruby", "exit"),
    ("a.c", "c", "int add;"),
]  # fmt: skip


def told(path, language, text, *, noticed=False):
    return [what for _, what in endings(path, text, language, test=".test." in path, noticed=noticed)]


@pytest.mark.parametrize(("path", "language", "text", "what"), BAD)
def test_an_end_that_may_be_a_success_is_told(path, language, text, what):
    """By a number, a name or an expression; and whether the file only has to be loaded."""
    assert told(path, language, text) == [what]


@pytest.mark.parametrize(("path", "language", "text", "what"), BAD)
def test_where_every_check_misses_its_end_only_loading_counts(path, language, text, what):
    """A function that ends the process makes such a check fail."""
    assert told(path, language, text, noticed=True) == ([LOADED] if what == LOADED else [])


@pytest.mark.parametrize(("path", "language", "text"), GOOD)
def test_ordinary_programs_end_themselves(path, language, text):
    """In main, in a handler of a signal, after a redirect, as a failure."""
    assert told(path, language, text) == []


def test_every_language_has_its_end():
    """No line of the table goes untried."""
    assert {language for _, language, _, _ in BAD} == set(EXITS)


@pytest.mark.parametrize(
    "text",
    [
        "{" * 100_000 + "process.exit(0)",
        "}" * 100_000 + "process.exit(0)",
        "`" + "\\" * 99_999 + "process.exit(0)",
    ],
)
def test_hostile_texts_get_an_answer(text):
    """Depth and length do not matter."""
    assert isinstance(told("a.js", "js", text), list)
