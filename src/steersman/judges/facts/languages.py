"""Programming languages by the endings of file names."""


def _parse_language_endings(text: str) -> dict[str, str]:
    lines = (line.split(":") for line in text.strip().splitlines())
    return {ending: name.strip() for name, endings in lines for ending in endings.split()}


LANGUAGE_BY_ENDING = _parse_language_endings("""
python: py pyi pyx
javascript: js mjs cjs jsx
typescript: ts mts cts tsx
go: go
rust: rs
java: java
kotlin: kt kts
scala: scala sc
groovy: groovy
clojure: clj cljs cljc
c: c h
c++: cc cpp cxx hpp hh hxx
c#: cs
f#: fs fsx
visual-basic: vb
ruby: rb rake
php: php
swift: swift
objective-c: m mm
dart: dart
elixir: ex exs
erlang: erl hrl
haskell: hs
ocaml: ml mli
lua: lua
perl: pl pm
r: r
julia: jl
zig: zig
nim: nim
shell: sh bash zsh
powershell: ps1 psm1
sql: sql
html: html htm
css: css scss sass less
vue: vue
svelte: svelte
protocol-buffers: proto
terraform: tf
assembly: s asm
fortran: f90 f95 f
cobol: cob cbl
solidity: sol
starlark: bzl
""")


def find_file_language(path: str) -> str | None:
    """The language of a file; None where its name has no ending that is known."""
    stem, dot, ending = path.rpartition("/")[2].rpartition(".")
    return LANGUAGE_BY_ENDING.get(ending.casefold()) if dot and stem else None
