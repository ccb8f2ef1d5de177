"""Licences by what their texts say."""

import re
from collections.abc import Iterator

from steersman.judges.facts.finding import FactFinding, FactReader, ProjectSource, is_exactly_in

# Words that only this licence has, the more particular ones first.
_LICENCE_PHRASES = (
    ("AGPL-3.0", "gnu affero general public license"),
    ("LGPL", "gnu lesser general public license version"),
    ("LGPL", "gnu lesser general public license"),
    ("GPL-3.0", "gnu general public license version 3"),
    ("GPL-2.0", "gnu general public license version 2"),
    ("GPL", "gnu general public license"),
    ("Apache-2.0", "apache license version 2.0"),
    ("MPL-2.0", "mozilla public license version 2.0"),
    ("EPL-2.0", "eclipse public license - v 2.0"),
    ("BSL-1.0", "boost software license"),
    ("CC0-1.0", "cc0 1.0 universal"),
    ("Unlicense", "this is free and unencumbered software released into the public domain"),
    ("BSD-3-Clause", "may be used to endorse or promote products derived"),
    ("BSD-2-Clause", "redistribution and use in source and binary forms"),
    ("ISC", "permission to use, copy, modify, and/or distribute this software"),
    ("MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"),
)
_MAX_LICENCE_TEXT = 20_000  # characters: what a licence is stands at its beginning


def read_licence_file(source: ProjectSource) -> Iterator[FactFinding]:
    """Which licence it is; `unknown` where its words are none of a known one."""
    normalized_text = re.sub(r"[\s,]+", " ", source.text[:_MAX_LICENCE_TEXT]).casefold()
    name = next(
        (name for name, words in _LICENCE_PHRASES if re.sub(r"[\s,]+", " ", words) in normalized_text),
        "unknown",
    )
    line = next((n for n, text in enumerate(source.lines, 1) if text.strip()), 0)
    if line:
        yield FactFinding("licence", name, root=source.folder).at(line)


LICENCE_READERS = (
    FactReader(
        "license license.* license-* licence licence.* copying copying.* unlicense unlicense.*",
        read_licence_file,
        is_exactly_in(".", "LICENSES", "licenses"),
    ),
)
