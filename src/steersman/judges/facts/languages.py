"""Programming languages by the endings of file names."""

_LANGUAGE_ENDINGS = """
assembly: s asm | c: c h | c#: cs | c++: cc cpp cxx hpp hh hxx | clojure: clj cljs cljc | cobol: cob cbl
css: css scss sass less | dart: dart | elixir: ex exs | erlang: erl hrl | f#: fs fsx | fortran: f90 f95 f | go: go
groovy: groovy | haskell: hs | html: html htm | java: java | javascript: js mjs cjs jsx | julia: jl | kotlin: kt kts
lua: lua | nim: nim | objective-c: m mm | ocaml: ml mli | perl: pl pm | php: php | powershell: ps1 psm1
protocol-buffers: proto | python: py pyi pyx | r: r | ruby: rb rake | rust: rs | scala: scala sc | shell: sh bash zsh
solidity: sol | sql: sql | starlark: bzl | svelte: svelte | swift: swift | terraform: tf | typescript: ts mts cts tsx
visual-basic: vb | vue: vue | zig: zig
"""
LANGUAGE_BY_ENDING = {
    ending: language.strip()
    for language, _, endings in (
        entry.partition(":") for entry in _LANGUAGE_ENDINGS.strip().replace("\n", "|").split("|")
    )
    for ending in endings.split()
}


def find_file_language(path: str) -> str | None:
    """The language of a file; None where its name has no ending that is known."""
    stem, dot, ending = path.rpartition("/")[2].rpartition(".")
    return LANGUAGE_BY_ENDING.get(ending.casefold()) if dot and stem else None
